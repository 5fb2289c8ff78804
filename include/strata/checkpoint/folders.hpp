#pragma once
// strata/checkpoint/folders.hpp - the folders that checkpoints are: their names, and what is done with them as a whole.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::checkpoint {

/// Removes what a killed run left unfinished. Local: for the rank that keeps the folder.
void remove_unfinished(const std::filesystem::path& folder);

/// Removes all but the `count` newest checkpoints, and what a killed run left unfinished. The newest one stays whatever
/// `count` says. Local: for the rank that keeps the folder.
void keep_newest(const std::filesystem::path& folder, std::int64_t count);

/// Gives a checkpoint another name, under which nothing looks for it, and returns that. Local: for the rank that keeps the folder. Throws io_failed.
///
///   prefix  of that name
std::filesystem::path set_aside(const std::filesystem::path& checkpoint, std::string_view prefix = "damaged_");

namespace detail {

/// All checkpoints in a folder by step, which their names say.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints_by_step(
    const std::filesystem::path& folder);
[[nodiscard]] std::filesystem::path final_name(const std::filesystem::path& folder, std::int64_t step);
[[nodiscard]] std::filesystem::path partial_name(const std::filesystem::path& folder, std::int64_t step);
/// Of a checkpoint with its final name.
[[nodiscard]] std::filesystem::path partial_name(const std::filesystem::path& checkpoint);
/// Name, size and check sum. Throws corrupt_checkpoint where it cannot be read.
[[nodiscard]] FileRecord record_of(const std::filesystem::path& file);
/// The error about one of a checkpoint's files: "the checkpoint file FILE `what`".
[[nodiscard]] Error corrupt(const std::filesystem::path& file, const std::string& what);
/// The last step of a save: the folder's bytes are on disk, and it has its name.
void publish(const std::filesystem::path& partial, const std::filesystem::path& final_folder);

}  // namespace detail

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/folders.ipp>
#endif
