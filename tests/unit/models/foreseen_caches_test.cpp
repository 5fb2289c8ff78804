// What `strata data stats --model NAME` says of a model's caches is what the model's recipe keeps, when its encoders have the sizes and
// the type of the published ones. Encoders stand in for these: their shapes, and no weights.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/data/entry_shapes.hpp>
#include <strata/data/named_tensors.hpp>
#include <strata/models/flux1_recipe.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/sd15_recipe.hpp>
#include <strata/models/sdxl_recipe.hpp>

#include "../../../tools/data_models.hpp"

namespace {

namespace models = strata::models;
namespace data = strata::data;
using strata::storage::TensorOutline;

/// An autoencoder of so many channels, and its own loader.
struct Latents {
    std::int64_t channels;
    [[nodiscard]] std::string id() const { return "latents"; }
    [[nodiscard]] std::int64_t latent_channels() const { return channels; }
    [[nodiscard]] std::int64_t pixels_per_latent() const { return 8; }
    [[nodiscard]] at::ScalarType type() const { return at::kBFloat16; }
    [[nodiscard]] at::Tensor encode(const at::Tensor& x) const {
        return at::zeros({x.size(0), channels, x.size(2) / 8, x.size(3) / 8});
    }
    [[nodiscard]] at::Tensor decode(const at::Tensor& x) const { return x; }
    [[nodiscard]] Latents load(at::Device) const { return *this; }
};

/// A text encoder with every output that a recipe takes one of, and its own loader.
struct Text {
    std::int64_t length, numbers;
    [[nodiscard]] std::string id() const { return "text"; }
    [[nodiscard]] std::int64_t tokens() const { return length; }
    [[nodiscard]] std::int64_t width() const { return numbers; }
    [[nodiscard]] at::ScalarType type() const { return at::kBFloat16; }
    [[nodiscard]] Text load(at::Device) const { return *this; }
    [[nodiscard]] data::NamedTensors encode(std::span<const std::string> captions, at::Device) const {
        const auto B = static_cast<std::int64_t>(captions.size());
        const at::Tensor all = at::zeros({B, length, numbers}), one = at::zeros({B, numbers});
        return {{"tokens", all}, {"last_hidden_state", all}, {"hidden_states_m2", all}, {"mask", at::ones({B, length})},
                {"pooled", one}, {"text_embeds", one}};
    }
};

std::string shown(const std::vector<TensorOutline>& outlines) {
    std::string text;
    for (const TensorOutline& one : outlines) {
        text += one.name + " " + std::string{name_of(one.dtype)};
        for (const std::int64_t edge : one.shape) text += " " + std::to_string(edge);
        text += "; ";
    }
    return text;
}

/// What encoders made, as specifications.
std::vector<TensorOutline> outlines_of(const data::NamedTensors& tensors) {
    std::vector<data::TensorSpec> specs;
    for (const auto& [name, tensor] : tensors) specs.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
    return data::outlines_of(specs);
}

/// As the encoders compute.
template <class Options>
Options in_bf16() {
    Options options;
    if constexpr (requires { options.picture_type; }) options.picture_type = options.caption_type = at::kBFloat16;
    return options;
}

template <data::Recipe R>
void expect_foreseen(std::string_view name, const R& recipe) {
    const auto& known = strata::tools::known_models();
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == name; });
    ASSERT_NE(found, known.end()) << name;
    const strata::pictures::PictureSize size{.width = 128, .height = 192};
    EXPECT_EQ(shown(found->recipe.picture_tensors(size)), shown(data::outlines_of(recipe.picture_tensors(size))))
        << name;
    auto encoders = recipe.load_caption_encoders(at::kCPU);
    const std::vector<std::string> captions{"a fox"};
    const auto encoded = recipe.encode_captions(encoders, captions);
    ASSERT_EQ(encoded.size(), 1U);
    EXPECT_EQ(shown(found->recipe.caption_tensors), shown(outlines_of(encoded[0]))) << name;
    EXPECT_EQ(found->recipe.dropped_caption, recipe.dropped_caption()) << name;
    if (!found->recipe.picture_id.empty()) {
        EXPECT_EQ(found->recipe.picture_id, recipe.picture_id());
        EXPECT_EQ(found->recipe.caption_id, recipe.caption_id());
    }
}

TEST(ForeseenCaches, AreWhatTheRecipesKeep) {
    expect_foreseen("small_flux", models::FluxRecipe<>{});
    expect_foreseen("flux", models::Flux1Recipe{Latents{16}, Text{512, 4096}, Text{77, 768}});
    expect_foreseen(
        "sdxl", models::SdxlRecipe{Latents{4}, Text{77, 768}, Text{77, 1280}, in_bf16<models::SdxlRecipeOptions>()});
    expect_foreseen("sd15", models::Sd15Recipe{Latents{4}, Text{77, 768}, in_bf16<models::Sd15RecipeOptions>()});
    EXPECT_EQ(strata::tools::known_models().size(), 4U) << "one is compared with no recipe";
}

}  // namespace
