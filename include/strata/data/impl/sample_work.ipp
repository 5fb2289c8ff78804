#pragma once
// strata/data/impl/sample_work.ipp - a file to a picture to pixels.

#include <ATen/ops/empty.h>

#include <strata/data/detail/sample_work.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/resample.hpp>

namespace strata::data::detail {

STRATA_INLINE std::int64_t bytes_taken(const SampleWork& work) {
    if (work.picture_outcome == CacheOutcome::found) return 0;  // its entry was found when it was read
    if (work.header)
        return static_cast<std::int64_t>(work.file.size()) +
               pictures::decode_bytes(*work.header, whole_pixels(work.frame));
    return static_cast<std::int64_t>(work.sample->bytes) +
           pictures::decode_bytes_of(work.sample->key, work.sample->size);
}

STRATA_INLINE void decode(SampleWork& work, const std::string& place) {
    work.decoded = pictures::decode_image(work.file, *work.header, whole_pixels(work.frame), place);
    std::vector<std::byte>{}.swap(work.file);
}

STRATA_INLINE void frame(SampleWork& work) {
    const pictures::PictureSize& target = work.frame.target;
    work.pixels_3HW = at::empty({3, target.height, target.width}, at::kFloat);
    pictures::resize_and_crop_into(
        work.decoded, work.frame,
        {static_cast<float*>(work.pixels_3HW.data_ptr()), static_cast<std::size_t>(work.pixels_3HW.numel())});
    work.decoded = {};
}

}  // namespace strata::data::detail
