#pragma once
// strata/data/impl/sample_work.ipp - a file to a picture to pixels.

#include <span>

#include <ATen/ops/empty.h>

#include <strata/data/detail/sample_work.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/mask.hpp>
#include <strata/pictures/resample.hpp>

namespace strata::data::detail {

STRATA_INLINE std::int64_t bytes_taken(const SampleWork& work) {
    if (work.picture_outcome == CacheOutcome::found) return 0;  // its entry was found when it was read
    std::int64_t bytes = 0;
    for (std::size_t p = 0; p < work.parts.size(); ++p) {
        const PictureWork& part = work.parts[p];
        if (part.header) {
            bytes += static_cast<std::int64_t>(part.file.size()) +
                     pictures::decode_bytes(*part.header, whole_pixels(work.frame, part.kind));
            continue;
        }
        const auto foresee = [&](const auto& file) {
            bytes += static_cast<std::int64_t>(file.bytes) + pictures::decode_bytes_of(file.key, file.size);
        };
        if (p == 0)
            foresee(*work.sample);
        else
            foresee(work.sample->conditioning[p - 1]);
    }
    return bytes;
}

STRATA_INLINE void decode(PictureWork& part, const pictures::Frame& frame, const std::string& place) {
    part.decoded = pictures::decode_image(part.file, *part.header, whole_pixels(frame, part.kind), place);
    std::vector<std::byte>{}.swap(part.file);
}

STRATA_INLINE void frame(PictureWork& part, const pictures::Frame& frame) {
    part.pixels = at::empty({pictures::channels_of(part.kind), frame.target.height, frame.target.width}, at::kFloat);
    const std::span<float> values{static_cast<float*>(part.pixels.data_ptr()),
                                  static_cast<std::size_t>(part.pixels.numel())};
    if (part.kind == pictures::ConditioningKind::mask)
        pictures::resize_mask_into(part.decoded, frame, values);
    else
        pictures::resize_and_crop_into(part.decoded, frame, values);
    part.decoded = {};
}

}  // namespace strata::data::detail
