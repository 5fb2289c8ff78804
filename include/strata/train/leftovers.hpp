#pragma once
// strata/train/leftovers.hpp - what earlier runs left in a trainer's folder by exported_weights(), and which of it --fresh removes.

#include <filesystem>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/options/export_options.hpp>

namespace strata::train {

/// The key in the metadata of files under which a run says that it left them.
inline constexpr std::string_view export_key = "strata.export";
inline constexpr std::string_view usual_weights_name = "model.safetensors";

/// Beside the weights: model_ema.safetensors; an adapter's in a folder of its own with the name that programs look for.
[[nodiscard]] std::filesystem::path file_of_average(const std::filesystem::path& file, bool is_adapter);

struct Leftovers {
    std::vector<std::filesystem::path> goes;   ///< in the order of removal: an index before its shards
    std::vector<std::filesystem::path> stays;  ///< until the run that starts has its own to put there
    std::vector<std::filesystem::path>
        names;  ///< where runs leave weights in this folder, and so where this one may put its own
};

/// Weights and adapters, with their averages, under their usual names and under that of `options`. What goes lies in the folder itself (a link
/// out of it leads to other places, and is not followed), is a file and no link, and says that a run left it; and a run has worked in the folder.
/// What lies at `options.path` outside of it stays: others may be reading it.
///
///   options  of the run that starts
/// Local; reads headers.
[[nodiscard]] Leftovers find_leftovers(const std::filesystem::path& folder, const ExportOptions& options);

/// Refuses to start over where that would take away, or end with other weights in place of, what the run begins with.
///
///   begins_with  files, indices and folders of weights, as weights::WeightFiles takes them; empty ones and such that are not there are none
/// Local; reads names, and indices. Throws Errc::bad_reference with all of them.
void check_bases(const std::filesystem::path& folder, const Leftovers& left,
                 const std::vector<std::filesystem::path>& begins_with);

/// check_bases(), and removes what goes, and a folder of averages that is empty then.
/// Returns what stays. Local, for rank 0. Throws Errc::bad_reference before anything is removed, and io_failed.
std::vector<std::filesystem::path> remove_leftovers(const std::filesystem::path& folder, const ExportOptions& options,
                                                    const std::vector<std::filesystem::path>& begins_with);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/leftovers.ipp>
#endif
