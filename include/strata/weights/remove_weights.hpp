#pragma once
// strata/weights/remove_weights.hpp - written_weights(): the files that save_weights() wrote; remove_weights(): they go as one.

#include <filesystem>
#include <vector>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::weights {

/// What save_weights() wrote to `path`: shards with their index before them, and the one file in their place. What a removal that broke off
/// has left, shards without an index, is among it. Files alone: never a link, a folder, or what cannot be read; and where an index names a shard
/// that is not meant, or is a link, it and all that it names are somebody's own.
///
///   path      ends in .safetensors; nothing need be there
///   is_meant  called with the metadata of each file: one that it refuses is none of them
/// Local; reads headers. Throws what is_meant throws.
[[nodiscard]] std::vector<std::filesystem::path> written_weights(
    const std::filesystem::path& path, core::FunctionRef<bool(const storage::SafetensorsMetadata&)> is_meant);

/// Removes written_weights(). The index goes first: whoever looks for the weights finds all of them or none, also after a removal that broke off.
/// Returns whether there was something. Local; reads headers. Throws Errc::io_failed, and what is_meant throws.
bool remove_weights(const std::filesystem::path& path,
                    core::FunctionRef<bool(const storage::SafetensorsMetadata&)> is_meant);

/// Removes these files, one after the other. Local. Throws Errc::io_failed for the first that cannot be removed.
void remove_files(const std::vector<std::filesystem::path>& files);

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/remove_weights.ipp>
#endif
