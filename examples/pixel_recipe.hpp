#pragma once
// examples/pixel_recipe.hpp - what a model of pixels is fed: small pictures, a byte each, and the letters of captions.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/torch.h>

#include <strata/data/recipe.hpp>

class PixelRecipe {
public:
    struct Batch {
        torch::Tensor pixels_BCHW;         // fp32 in [-1, 1]
        torch::Tensor letters_BL;          // how often each of 26 letters is in the caption; 0 where it is dropped
        std::vector<std::string> samples;  // named where a loss is not finite
    };
    struct PictureEncoders {  // an autoencoder's weights, in a recipe that has one
        torch::nn::AvgPool2d shrink{4};
    };
    struct CaptionEncoders {};

    //! [cached]
    std::string picture_id() const { return "means of 4 x 4 pixels, bytes"; }  // what entries depend on
    std::string caption_id() const { return "letters counted, bfloat16"; }
    std::int64_t alignment() const { return 16; }  // edges of pictures are multiples of it

    std::vector<strata::data::TensorSpec> picture_tensors(const strata::pictures::PictureSize& size) const {
        return {{"pixels", torch::kUInt8, {3, size.height / 4, size.width / 4}}};
    }
    std::vector<strata::data::TensorSpec> caption_tensors() const { return {{"letters", torch::kBFloat16, {26}}}; }
    //! [cached]

    PictureEncoders load_picture_encoders(torch::Device) const { return {}; }
    CaptionEncoders load_caption_encoders(torch::Device) const { return {}; }

    std::vector<strata::data::NamedTensors> encode_pictures(PictureEncoders& encoders,
                                                            const strata::data::PictureBatch& pictures) const {
        const auto bytes = (encoders.shrink(pictures.pixels_B3HW) * 127.5 + 127.5).round().clamp(0, 255);
        std::vector<strata::data::NamedTensors> entries;
        for (const auto& one : bytes.to(torch::kUInt8).unbind()) entries.push_back({{"pixels", one}});
        return entries;
    }
    std::vector<strata::data::NamedTensors> encode_captions(CaptionEncoders&,
                                                            std::span<const std::string> captions) const {
        std::vector<strata::data::NamedTensors> entries;
        for (const std::string& caption : captions) {
            const auto letters = torch::zeros({26});
            for (const char c : caption)
                if ('a' <= c && c <= 'z') letters[c - 'a'] += 1;
            entries.push_back({{"letters", letters.to(torch::kBFloat16)}});
        }
        return entries;
    }

    //! [batch]
    std::optional<std::string> dropped_caption() const { return std::nullopt; }  // no text stands in: see below
    Batch collate(std::span<const strata::data::Example> examples) const {
        std::vector<torch::Tensor> pixels, letters;
        Batch batch;
        for (const auto& one : examples) {
            pixels.push_back(one.picture.at("pixels"));
            letters.push_back(one.caption.at("letters").to(torch::kFloat) * (one.is_dropped ? 0 : 1));
            batch.samples.push_back(one.name);
        }
        batch.pixels_BCHW = torch::stack(pixels).to(torch::kFloat) / 127.5 - 1;
        batch.letters_BL = torch::stack(letters);
        return batch;
    }
    //! [batch]
};
static_assert(strata::data::Recipe<PixelRecipe>);

// Where a GPU trains, the trainer looks for the tensors of a batch.
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, PixelRecipe::Batch>
void visit_tensors(Batch& batch, Call&& call) {
    call(batch.pixels_BCHW);
    call(batch.letters_BL);
}
