#pragma once
// strata/weights/remove_weights.hpp - remove_weights(): what save_weights() wrote, one file or many, goes as one.

#include <filesystem>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::weights {

/// Removes what save_weights() wrote to `path`: the file, or shards with their index. The index goes first: whoever looks for the weights finds
/// all of them or none, also after a removal that broke off; what one has left, shards without an index, goes as well.
///
///   path      ends in .safetensors; nothing need be there
///   is_meant  called with the metadata of each file: one that it refuses stays, and so does one that cannot be read, and an index
///             none of whose shards goes
/// Returns whether there was something. Local; reads headers. Throws Errc::io_failed, and what is_meant throws.
bool remove_weights(const std::filesystem::path& path,
                    core::FunctionRef<bool(const storage::SafetensorsMetadata&)> is_meant);

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/remove_weights.ipp>
#endif
