// A recipe whose Batch has another name gets ST0146.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <strata/data/picture_source.hpp>
#include <strata/storage/local.hpp>

using namespace strata;

struct Encoders {};

struct Mine {
#ifdef STRATA_BAD
    using Micro = at::Tensor;
#else
    using Batch = at::Tensor;
#endif
    using PictureEncoders = Encoders;
    using CaptionEncoders = Encoders;
    std::string picture_id() const;
    std::string caption_id() const;
    std::int64_t alignment() const;
    std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize&) const;
    std::vector<data::TensorSpec> caption_tensors() const;
    PictureEncoders load_picture_encoders(at::Device) const;
    CaptionEncoders load_caption_encoders(at::Device) const;
    std::vector<data::NamedTensors> encode_pictures(PictureEncoders&, const data::PictureBatch&) const;
    std::vector<data::NamedTensors> encode_captions(CaptionEncoders&, std::span<const std::string>) const;
    std::optional<std::string> dropped_caption() const;
    at::Tensor collate(std::span<const data::Example>) const;
};

bool use() { return sizeof(data::PictureSource<Mine, Local>) > 0; }
