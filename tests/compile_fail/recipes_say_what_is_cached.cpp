// A recipe that says nothing of its captions gets ST0147.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <strata/data/picture_source.hpp>
#include <strata/storage/local.hpp>

using namespace strata;

struct Mine {
    struct Batch {
        at::Tensor pixels;
    };
    struct PictureEncoders {};
    struct CaptionEncoders {};
    std::string picture_id() const;
    std::string caption_id() const;
    std::int64_t alignment() const;
    std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize&) const;
#ifndef STRATA_BAD
    std::vector<data::TensorSpec> caption_tensors() const;
#endif
    PictureEncoders load_picture_encoders(at::Device) const;
    CaptionEncoders load_caption_encoders(at::Device) const;
    std::vector<data::NamedTensors> encode_pictures(PictureEncoders&, const data::PictureBatch&) const;
    std::vector<data::NamedTensors> encode_captions(CaptionEncoders&, std::span<const std::string>) const;
    std::optional<std::string> dropped_caption() const;
    Batch collate(std::span<const data::Example>) const;
};

bool use() { return sizeof(data::PictureSource<Mine, Local>) > 0; }
