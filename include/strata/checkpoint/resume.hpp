#pragma once
// strata/checkpoint/resume.hpp - open_newest(): the newest checkpoint that is whole, and what was wrong with those after it.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/folder_keepers.hpp>
#include <strata/core/error.hpp>

namespace strata::checkpoint {

/// A checkpoint that open_newest() has opened.
struct Opened {
    std::filesystem::path folder;
    Manifest manifest;
    std::vector<std::string> notes;  ///< a sentence for each checkpoint that was passed over; on its keeper
};

namespace detail {

/// A checkpoint that a keeper has.
struct Candidate {
    std::int64_t step = 0;
    int holder = 0;
};

/// Of each rank's steps with a space behind each.
[[nodiscard]] std::vector<Candidate> candidates_of(const std::vector<std::string>& steps);

/// What the keepers find, newest first, and of one step that of the lowest rank first. Equal on all ranks.
template <comm::Communicator Comm>
std::vector<Candidate> newest_first(Comm& comm, const std::filesystem::path& folder,
                                    const comm::FolderKeepers& keepers) {
    std::string mine;
    comm::agree(comm, [&] {
        if (!keepers.keeps(comm.rank())) return;
        for (const auto& [step, path] : checkpoints_by_step(folder)) mine += std::to_string(step) + ' ';
    });
    return candidates_of(comm.all_gather_varied(mine));
}

/// Takes damaged checkpoints out of the way of later saves, and says so. For rank 0.
[[nodiscard]] std::vector<std::string> pass_over(
    const std::vector<std::pair<std::filesystem::path, std::string>>& damaged);
/// None of several checkpoints can be resumed from.
[[nodiscard]] Error none_is_whole(const std::filesystem::path& folder,
                                  const std::vector<std::pair<std::filesystem::path, std::string>>& damaged);

}  // namespace detail

/// Opens the newest checkpoint in `folder` as open() does, whichever keeper has it. One that is damaged is passed over and, when
/// another is whole, kept under another name (set_aside()). Nothing is renamed where none is.
///
///   keepers  which ranks see the same folder
///   returns  nothing where there is no checkpoint
/// Collective. Throws Error on all ranks: corrupt_checkpoint when all are damaged, checkpoint_mismatch.
template <comm::Communicator Comm>
std::optional<Opened> open_newest(Comm& comm, const std::filesystem::path& folder, const Manifest& expected,
                                  std::span<const NamedTensor> buffers, const comm::FolderKeepers& keepers = {}) {
    std::vector<std::pair<std::filesystem::path, std::string>> damaged;  // and why
    std::vector<std::pair<std::filesystem::path, std::string>> damaged_here;
    for (const auto& [step, holder] : detail::newest_first(comm, folder, keepers)) {
        Opened opened{detail::final_name(folder, step), {}, {}};
        try {
            opened.manifest = open(comm, opened.folder, expected, buffers, keepers, holder);
        } catch (const Error& error) {
            if (!is_damage(error.code())) throw;
            damaged.emplace_back(opened.folder, error.problem());
            if (holder == comm.rank()) damaged_here.push_back(damaged.back());
            continue;
        }
        // Mended by now, where another keeper had the same step whole.
        std::erase_if(damaged_here, [&](const auto& one) { return one.first == opened.folder; });
        opened.notes = detail::pass_over(damaged_here);
        return opened;
    }
    if (damaged.empty()) return std::nullopt;
    throw detail::none_is_whole(folder, damaged);
}

}  // namespace strata::checkpoint

#ifndef STRATA_COMPILED
#include <strata/checkpoint/impl/resume.ipp>
#endif
