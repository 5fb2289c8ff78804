#pragma once
// strata/data/detail/sample_work.hpp - SampleWork: a sample on its way through the steps of a source.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/data/named_tensors.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/datasets/sample.hpp>
#include <strata/pictures/conditioning.hpp>
#include <strata/pictures/frame.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/content_hash.hpp>

namespace strata::data::detail {

/// The picture is at fault and not the cache: filling goes on without it, and with on_broken_sample replace training.
class PictureFailure : public Error {
public:
    PictureFailure(const Error& error, std::size_t set, const datasets::Sample& which)
        : Error{error}, dataset{set}, sample{&which} {}

    std::size_t dataset;
    const datasets::Sample* sample;
};

/// One of the files of a sample: its picture, or a conditioning picture.
struct PictureWork {
    pictures::ConditioningKind kind = pictures::ConditioningKind::picture;
    storage::ContentHash content;  ///< of its file, where its tensors are cached and it is known

    std::vector<std::byte> file;
    std::optional<pictures::ImageHeader> header;
    pictures::Picture decoded;
    at::Tensor pixels;  ///< (3, H, W), of a mask (1, H, W)
};

/// What is wanted of a sample, what of it is not there yet, and what was made.
struct SampleWork {
    // Of the picture: as it is shown, in which frame, and with caching each_epoch in which epoch.
    std::size_t dataset = 0;
    const datasets::Sample* sample = nullptr;  ///< nullptr: only the caption is wanted
    pictures::Frame frame;
    std::int64_t epoch = 0;
    std::vector<PictureWork> parts;  ///< the picture, then its conditioning pictures: datasets::Contents::Part
    const datasets::Sample* replaced = nullptr;  ///< whose turn it takes

    // Of the caption, which `fetch` draws where the visit has none yet.
    std::size_t texts = 0;
    std::optional<std::string> caption;
    bool wants_caption = true;
    bool is_dropped = false;
    std::uint64_t random = 0;  ///< of the visit

    std::size_t task = 0;  ///< which of a list, before the first step
    /// The caches were looked into, and the outcomes below say why it is to be made.
    bool is_looked_up = false;
    CacheOutcome picture_outcome = CacheOutcome::found;
    CacheOutcome caption_outcome = CacheOutcome::found;

    NamedTensors picture_tensors;
    NamedTensors caption_tensors;

    /// The picture, with its conditioning pictures, is wanted.
    void show(const datasets::Sample& which) {
        sample = &which;
        parts.clear();
        parts.resize(1 + which.conditioning.size());
        for (std::size_t c = 0; c < which.conditioning.size(); ++c) parts[c + 1].kind = which.conditioning[c].kind;
    }
    /// It was read and framed, and is to be encoded.
    [[nodiscard]] bool has_pixels() const { return !parts.empty() && parts.front().pixels.defined(); }
};

/// The size that a picture is decoded to at least; {0, 0} of a mask, which is decoded whole.
[[nodiscard]] inline pictures::PictureSize whole_pixels(const pictures::Frame& frame,
                                                        pictures::ConditioningKind kind) noexcept {
    if (kind == pictures::ConditioningKind::mask) return {};
    return {static_cast<std::int64_t>(frame.width), static_cast<std::int64_t>(frame.height)};
}

/// Of memory, by reading and decoding the sample's files; an upper bound until their headers are known.
[[nodiscard]] std::int64_t bytes_taken(const SampleWork& work);
/// file -> decoded -> pixels. Throws what decode_image() throws.
void decode(PictureWork& part, const pictures::Frame& frame, const std::string& place);
void frame(PictureWork& part, const pictures::Frame& frame);

}  // namespace strata::data::detail

#ifndef STRATA_COMPILED
#include <strata/data/impl/sample_work.ipp>
#endif
