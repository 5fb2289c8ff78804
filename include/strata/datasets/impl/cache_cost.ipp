#pragma once
// strata/datasets/impl/cache_cost.ipp - the length of a file that is not written.

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <strata/datasets/cache_cost.hpp>
#include <strata/datasets/cache_identity.hpp>
#include <strata/datasets/latent_caching.hpp>

namespace strata::datasets {

namespace detail {

/// Bytes of an identity as JSON has it: pack_entry() writes other bytes than printable ASCII as "\xNN", and JSON
/// doubles the backslash.
inline std::size_t escaped_length(std::string_view identity) noexcept {
    std::size_t length = 0;
    for (const char c : identity) {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_plain = byte >= 0x20 && byte < 0x7F && c != '\\';
        length += !is_plain ? 5 : c == '"' ? 2 : 1;
    }
    return length;
}

}  // namespace detail

STRATA_INLINE std::uint64_t entry_bytes(const std::vector<storage::TensorOutline>& tensors, std::string_view identity) {
    std::string header = R"({"__metadata__":{"crc32c":"00000000","identity":""})";
    std::uint64_t end = 0;
    for (const storage::TensorOutline& tensor : tensors) {
        const std::uint64_t begin = end;
        std::uint64_t numel = 1;
        std::string shape;
        for (const std::int64_t edge : tensor.shape) {
            numel *= static_cast<std::uint64_t>(edge);
            shape += (shape.empty() ? "" : ",") + std::to_string(edge);
        }
        end += numel * storage::bits_of(tensor.dtype) / 8;
        header.append(",\"").append(tensor.name).append(R"(":{"dtype":")").append(storage::name_of(tensor.dtype));
        header.append(R"(","shape":[)").append(shape);
        header += R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    }
    const std::uint64_t length = header.size() + 1 + detail::escaped_length(identity);  // with the last brace
    return 8 + (length + 7) / 8 * 8 + end;
}

STRATA_INLINE CacheCost latent_cost(const PictureSet& set, const Bucket& bucket, const EntryShapes& recipe) {
    const LatentCaching caching = latent_caching(set.settings);
    if (caching == LatentCaching::none) return {};
    double entries = 0;
    double bytes = 0;
    for (const pictures::Shape& shape : bucket.shapes) {
        // An epoch makes an entry if one of a picture's turns is in it and draws this size.
        const double hit = set.settings.probability * shape.weight;
        const double share =
            caching == LatentCaching::each_epoch ? 1 - std::pow(1 - hit, static_cast<double>(bucket.repeats + 1)) : 1;
        const std::vector<storage::TensorOutline> tensors = recipe.picture_tensors(shape.size);
        std::set<std::string> different;  // of what is known of files
        for (const std::size_t i : bucket.samples) {
            const Sample& sample = set.samples[i];
            const pictures::Frame frame = set.framer.frame(sample.size, shape.size);
            const std::string identity = caching == LatentCaching::each_epoch
                                             ? latent_identity(recipe.picture_id, sample.content, frame, 0)
                                             : latent_identity(recipe.picture_id, sample.content, frame);
            if (sample.content && !different.insert(identity).second) continue;
            entries += share;
            bytes += share * static_cast<double>(entry_bytes(tensors, identity));
        }
    }
    return {std::llround(entries), static_cast<std::uint64_t>(std::llround(bytes))};
}

STRATA_INLINE CacheCost text_cost(const std::set<std::string>& captions, const EntryShapes& recipe) {
    CacheCost cost;
    for (const std::string& caption : captions)
        cost += {1, entry_bytes(recipe.caption_tensors, text_identity(recipe.caption_id, caption))};
    return cost;
}

}  // namespace strata::datasets
