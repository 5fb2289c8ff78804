#pragma once
// strata/datasets/indexed_picture.hpp - IndexedPicture: what is known of a picture file of one version.

#include <cstdint>
#include <memory>

#include <strata/datasets/picture_fault.hpp>
#include <strata/datasets/sample.hpp>

namespace strata::datasets {

/// What is known of a picture file of one version. Judging it by minimum_image_size and the like comes later, so other
/// settings need no second look at the file.
struct IndexedPicture {
    Sample sample;                              ///< key, version and bytes; size and captions as far as they are known
    std::uint64_t size_source = 0;              ///< fingerprint of what size or size_fault was read from; 0: not yet
    std::uint64_t caption_source = 0;           ///< the same of the captions
    bool decoded = false;                       ///< somebody tried to decode all of its pixels
    std::unique_ptr<PictureFault> size_fault;   ///< instead of a size
    std::unique_ptr<PictureFault> pixel_fault;  ///< what became of decoding; none: it decodes, or was not tried
};

}  // namespace strata::datasets
