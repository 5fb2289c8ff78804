#pragma once
// strata/checkpoint/impl/size.ipp - the sum of files, their headers and their lines in the manifest.

#include <strata/checkpoint/size.hpp>

namespace strata::checkpoint {

STRATA_INLINE std::uint64_t bytes_on_disk(std::span<const zero::StateOutline> outline,
                                          std::span<const NamedTensor> model, int copies) {
    // A header's entry is about 110 bytes and a name, a run's record in the manifest about 120: twice that.
    constexpr std::uint64_t entry = 256, record = 256;
    constexpr std::uint64_t file = 16 << 10;  // its last block, its inode, and its share of the folder's
    std::uint64_t bytes = file;
    for (const zero::StateOutline& run : outline)
        bytes += static_cast<std::uint64_t>(run.numel) * sizeof(float) + entry + record + 2 * run.kind.size();
    std::uint64_t of_model = model.empty() ? 0 : file;
    for (const NamedTensor& named : model)
        of_model += static_cast<std::uint64_t>(named.tensor.numel() * named.tensor.element_size()) + entry + record +
                    2 * named.name.size();
    bytes += of_model * static_cast<std::uint64_t>(copies);
    return bytes + bytes / 500;  // maps of extents, and on older file systems of blocks
}

}  // namespace strata::checkpoint
