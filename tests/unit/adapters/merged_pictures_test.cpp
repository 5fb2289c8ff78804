// What a merged adapter draws is what the unmerged one draws: Flux, SDXL and SD 1.5, through samplers with guidance.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/core/error.hpp>
#include <strata/diffusion/sampler.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/unet_drawing.hpp>
#include <strata/zero/in_units.hpp>

#include "../models/golden_cases.hpp"

namespace {

using namespace strata;
using adapters::Adapted;

/// Sizes of golden/flux.json.
models::FluxOptions flux_options() {
    return {.token_values = 16,
            .output_values = 16,
            .text_width = 32,
            .pooled_width = 24,
            .heads = 4,
            .rotary_axes = {4, 6, 6},
            .double_blocks = 2,
            .single_blocks = 2};
}
/// Sizes of golden/unet_sdxl.json.
models::UnetOptions sdxl_options() {
    models::UnetOptions options;
    options.levels = {{16, 2, 1, false}, {32, 4, 1, true}, {32, 4, 2, true}};
    options.cross_attention_dim = 24;
    options.norm_groups = 8;
    options.linear_projection = true;
    options.addition_time_dim = 8;
    options.addition_input_dim = 68;
    return options;
}
/// Into attentions and out of them go convolutions.
models::UnetOptions sd15_options() {
    models::UnetOptions options;
    options.levels = {{16, 2, 1, true}, {32, 2, 1, true}, {32, 2, 1, false}};
    options.cross_attention_dim = 12;
    options.norm_groups = 8;
    return options;
}

constexpr models::SamplerOptions sampling{.steps = 6, .guidance = 4.0, .seed = 5};

/// Two prompts with classifier-free guidance.
at::Tensor draw(models::Flux& model) {
    torch::manual_seed(21);
    const auto caption = [] { return models::TextEmbedding{at::randn({5, 32}), at::randn({24})}; };
    const std::vector<models::TextEmbedding> prompts{caption(), caption()};
    return models::sample_flow(model, prompts, caption(), 4, 8, 6, sampling);
}
at::Tensor draw(models::DiffusionUnet& model, std::int64_t text_width, std::int64_t pooled_width) {
    const at::NoGradGuard no_grad;
    torch::manual_seed(22);
    const auto& objective = model.objective();
    const diffusion::Sampler sampler{objective.schedule(), objective.options().prediction,
                                     models::unet_solver({}, objective.schedule(), sampling)};
    const models::Drawing drawing{sampler, {.scale = sampling.guidance}, sampling.seed, {4, 8, 8}};
    const at::Tensor text_BSE = at::randn({4, 5, text_width});  // of two prompts, and twice that of the empty caption
    text_BSE.narrow(0, 3, 1).copy_(text_BSE.narrow(0, 2, 1));
    const bool has_addition = pooled_width > 0;
    const at::Tensor pooled_BP = has_addition ? at::randn({4, pooled_width}) : at::Tensor{};
    const at::Tensor ids_B6 = has_addition ? at::full({4, 6}, 64.0) : at::Tensor{};
    return models::draw_latents(drawing, 0, 2, [&](const at::Tensor& x_BCHW, double timestep) {
        return model.forward(x_BCHW, at::full({x_BCHW.size(0)}, timestep), text_BSE, {pooled_BP, ids_B6});
    });
}
at::Tensor draw(models::SdxlUnet& model) { return draw(model, 24, 20); }
at::Tensor draw(models::Sd15Unet& model) { return draw(model, 12, 0); }

/// Every layer that can have an adapter has one, of which no parameter is as it began.
template <class Kind>
Adapted adapted_everywhere(torch::nn::Module& model, const typename Kind::Options& options) {
    Adapted adapted = adapters::adapt<Kind>(model, options, {"*"});
    const at::NoGradGuard no_grad;
    for (const auto& layer : adapted.layers())
        for (at::Tensor& parameter : layer.layer->adapter()->parameters())
            parameter.add_(at::randn_like(parameter) * 0.05);
    return adapted;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).abs().max() / b.abs().max()).item<double>();
}

/// Draws with the adapter, merges it, and draws again.
template <class Kind, class Model>
void expect_same_pictures(const std::function<std::shared_ptr<Model>()>& make, const typename Kind::Options& options) {
    SCOPED_TRACE(__PRETTY_FUNCTION__);
    torch::manual_seed(20);
    const std::shared_ptr<Model> model = make();
    model->eval();
    const at::Tensor plain = draw(*model);
    Adapted adapted = adapted_everywhere<Kind>(*model, options);
    const at::Tensor unmerged = draw(*model);
    EXPECT_TRUE(unmerged.isfinite().all().template item<bool>());
    EXPECT_GT(distance(unmerged, plain), 1e-3) << "it would not be seen";
    adapted.merge();
    EXPECT_FALSE(adapted.acts()->on);
    EXPECT_LT(distance(draw(*model), unmerged), 1e-5);
}
template <class Model>
void expect_same_pictures_of_all_kinds(const std::function<std::shared_ptr<Model>()>& make) {
    expect_same_pictures<Lora>(make, {.rank = 3, .alpha = 2});
    expect_same_pictures<Lora>(make, {.rank = 3, .use_dora = true});
    expect_same_pictures<Lokr>(make, {.rank = 2, .alpha = 1});
    expect_same_pictures<Lokr>(make, {.full_matrix = true});
}

TEST(MergedPictures, OfFluxAreThoseOfTheUnmerged) {
    expect_same_pictures_of_all_kinds<models::Flux>([] { return std::make_shared<models::Flux>(flux_options()); });
}
TEST(MergedPictures, OfSdxlAreThoseOfTheUnmerged) {
    expect_same_pictures_of_all_kinds<models::SdxlUnet>(
        [] { return std::make_shared<models::SdxlUnet>(sdxl_options()); });
}
TEST(MergedPictures, OfStableDiffusion15AreThoseOfTheUnmerged) {
    expect_same_pictures_of_all_kinds<models::Sd15Unet>(
        [] { return std::make_shared<models::Sd15Unet>(sd15_options()); });
}
TEST(MergedPictures, OfTheReferencesWeightsAreThoseOfTheUnmerged) {
    STRATA_NEED_CASES(flux, "flux");
    STRATA_NEED_CASES(sdxl, "unet_sdxl");
    expect_same_pictures_of_all_kinds<models::Flux>([&] {
        auto model = std::make_shared<models::Flux>(flux_options());
        flux.fill(*model);
        return model;
    });
    expect_same_pictures_of_all_kinds<models::SdxlUnet>([&] {
        auto model = std::make_shared<models::SdxlUnet>(sdxl_options());
        sdxl.fill(*model);
        return model;
    });
}

TEST(MergedPictures, WeightsInBf16AreRoundedOnce) {
    torch::manual_seed(23);
    models::Sd15Unet model{sd15_options()};
    Adapted adapted = adapted_everywhere<Lora>(model, {.rank = 3, .use_dora = true});
    model.to(at::kBFloat16);
    std::vector<at::Tensor> sums;  // in fp32
    for (const auto& layer : adapted.layers())
        sums.push_back(layer.layer->adapter()->merged(layer.layer->base_weight()));
    adapted.merge();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        EXPECT_EQ(sums[i].scalar_type(), at::kFloat);
        EXPECT_TRUE(adapted.layers()[i].layer->base_weight().equal(sums[i].to(at::kBFloat16)))
            << adapted.layers()[i].path;
    }
}

TEST(MergedPictures, WeightsWithoutMemoryAreOneErrorAndNothingChanges) {
    const auto model = in_units([] { return std::make_shared<models::Flux>(flux_options()); });
    Adapted adapted = adapters::adapt<Lora>(*model, {.rank = 2}, {"x_embedder", "to_q"});
    const at::Tensor outside = adapted.layers().front().layer->base_weight().clone();
    try {
        adapted.merge();
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::wrong_call_order) << error.what();
        EXPECT_NE(error.problem().find("transformer_blocks.0.attn.to_q"), std::string::npos) << error.what();
        EXPECT_NE(std::string{error.what()}.find("with_whole_model()"), std::string::npos) << error.what();
    }
    EXPECT_TRUE(adapted.acts()->on);
    EXPECT_TRUE(adapted.layers().front().layer->base_weight().equal(outside));
}

}  // namespace
