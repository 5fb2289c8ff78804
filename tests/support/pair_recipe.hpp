#pragma once
// tests/support/pair_recipe.hpp - a recipe of a model that paints a part of a picture anew: what it is shown is kept as it is.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/torch.h>

#include <strata/data/recipe.hpp>

namespace strata_test {

/// Takes a picture to begin with and a mask. Everything that is cached is the pixels themselves, so a test sees them.
class PairRecipe {
public:
    struct Batch {
        torch::Tensor pixels_BCHW, hint_BCHW, mask_B1HW;
        std::vector<std::string> samples;
    };
    struct PictureEncoders {};
    struct CaptionEncoders {};

    std::string picture_id() const { return "pixels, hint and mask"; }
    std::string caption_id() const { return "length of the caption"; }
    std::int64_t alignment() const { return 16; }
    //! [conditioning]
    std::vector<strata::pictures::ConditioningKind> conditioning() const {
        return {strata::pictures::ConditioningKind::picture, strata::pictures::ConditioningKind::mask};
    }
    //! [conditioning]
    std::vector<strata::data::TensorSpec> picture_tensors(const strata::pictures::PictureSize& size) const {
        return {{"pixels", torch::kFloat, {3, size.height, size.width}},
                {"hint", torch::kFloat, {3, size.height, size.width}},
                {"mask", torch::kFloat, {1, size.height, size.width}}};
    }
    std::vector<strata::data::TensorSpec> caption_tensors() const { return {{"length", torch::kFloat, {1}}}; }
    PictureEncoders load_picture_encoders(torch::Device) const { return {}; }
    CaptionEncoders load_caption_encoders(torch::Device) const { return {}; }
    //! [encode]
    std::vector<strata::data::NamedTensors> encode_pictures(PictureEncoders&,
                                                            const strata::data::PictureBatch& batch) const {
        std::vector<strata::data::NamedTensors> entries;
        for (std::int64_t i = 0; i < batch.pixels_B3HW.size(0); ++i)
            entries.push_back({{"pixels", batch.pixels_B3HW[i]},
                               {"hint", batch.conditioning.at(0)[i]},
                               {"mask", batch.conditioning.at(1)[i]}});
        return entries;
    }
    //! [encode]
    std::vector<strata::data::NamedTensors> encode_captions(CaptionEncoders&,
                                                            std::span<const std::string> captions) const {
        std::vector<strata::data::NamedTensors> entries;
        for (const std::string& caption : captions)
            entries.push_back({{"length", torch::full({1}, static_cast<double>(caption.size()))}});
        return entries;
    }
    std::optional<std::string> dropped_caption() const { return ""; }
    Batch collate(std::span<const strata::data::Example> examples) const {
        std::vector<torch::Tensor> pixels, hints, masks;
        Batch batch;
        for (const auto& one : examples) {
            pixels.push_back(one.picture.at("pixels"));
            hints.push_back(one.picture.at("hint"));
            masks.push_back(one.picture.at("mask"));
            batch.samples.push_back(one.name);
        }
        batch.pixels_BCHW = torch::stack(pixels);
        batch.hint_BCHW = torch::stack(hints);
        batch.mask_B1HW = torch::stack(masks);
        return batch;
    }
};
static_assert(strata::data::Recipe<PairRecipe>);

template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, PairRecipe::Batch>
void visit_tensors(Batch& batch, Call&& call) {
    call(batch.pixels_BCHW);
    call(batch.hint_BCHW);
    call(batch.mask_B1HW);
}

}  // namespace strata_test
