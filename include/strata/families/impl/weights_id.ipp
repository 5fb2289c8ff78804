#pragma once
// strata/families/impl/weights_id.ipp - a hash of samples of every tensor.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/core/text.hpp>
#include <strata/families/weights_id.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>
#include <strata/weights/weight_files.hpp>

namespace strata::families {

STRATA_INLINE std::string weights_id(const weights::WeightFiles& files) {
    constexpr std::uint64_t piece = 4096, pieces = 16;
    // A hash of hashes: a tensor's samples are hashed together, so that no more than 64 KiB are in memory.
    std::string all;
    std::vector<std::byte> bytes;
    for (const auto& [name, tensor] : files.tensors()) {
        all += name + ' ' + std::to_string(static_cast<int>(tensor.entry->dtype));
        for (const std::int64_t edge : tensor.entry->shape) all += ' ' + std::to_string(edge);
        const std::uint64_t size = tensor.bytes();
        if (size <= piece * pieces) {
            bytes.resize(static_cast<std::size_t>(size));
            if (size > 0) weights::WeightFiles::read(tensor, bytes);
        } else {
            bytes.resize(static_cast<std::size_t>(piece * pieces));
            for (std::uint64_t i = 0; i < pieces; ++i)
                weights::WeightFiles::read(tensor, std::span{bytes}.subspan(i * piece, piece),
                                           (size - piece) * i / (pieces - 1));
        }
        all += ' ' + storage::to_hex(storage::content_hash(bytes).bytes) + '\n';
    }
    return storage::to_hex(storage::content_hash(core::bytes_of(all)).bytes);
}

}  // namespace strata::families
