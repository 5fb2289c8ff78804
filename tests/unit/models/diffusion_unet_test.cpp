// SdxlUnet, Sd15Unet and their recipes: what is learnt from, and what a picture is fed as.

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/core/sampling_method.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/linear_codec.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/models/sd15_recipe.hpp>
#include <strata/models/sdxl_recipe.hpp>
#include <strata/models/unet_drawing.hpp>
#include <strata/testing/recipe_conformance.hpp>
#include <strata/train/trainable.hpp>

namespace {

using namespace strata::models;
namespace data = strata::data;
namespace diffusion = strata::diffusion;

static_assert(strata::Trainable<SdxlUnet> && strata::Trainable<Sd15Unet>);

UnetOptions tiny_options(bool has_addition) {
    UnetOptions options;
    options.levels = {{16, 2, 1, false}, {32, 2, 1, true}};
    options.layers_per_block = 1;
    options.cross_attention_dim = 12;
    options.norm_groups = 8;
    options.linear_projection = has_addition;
    if (has_addition) {
        options.addition_time_dim = 8;
        options.addition_input_dim = 6 * 8 + 10;
    }
    return options;
}

UnetBatch some_batch(std::int64_t B, bool has_addition) {
    UnetBatch batch;
    batch.latents_BCHW = at::randn({B, 4, 8, 6});
    batch.text_BSE = at::randn({B, 3, 12});
    if (has_addition) {
        batch.pooled_BP = at::randn({B, 10});
        batch.time_ids_B6 = at::randint(0, 1024, {B, 6}).to(at::kFloat);
    }
    return batch;
}

UnetBatch one_of(const UnetBatch& batch, std::int64_t i) {
    return {batch.latents_BCHW.narrow(0, i, 1),
            batch.text_BSE.narrow(0, i, 1),
            batch.pooled_BP.narrow(0, i, 1),
            batch.time_ids_B6.narrow(0, i, 1),
            {},
            {}};
}

diffusion::DdpmObjective objective(diffusion::Prediction prediction) {
    return diffusion::DdpmObjective{diffusion::DdpmSchedule{},
                                    {.prediction = prediction, .min_snr_gamma = 5, .noise = {.offset = 0.1}}};
}

TEST(DiffusionUnet, TheLossIsTheWeightedErrorOfWhatIsPredicted) {
    torch::manual_seed(1);
    SdxlUnet model{tiny_options(true), objective(diffusion::Prediction::v)};
    const UnetBatch batch = some_batch(3, true);
    torch::manual_seed(2);
    const double loss = model.loss(batch).item<double>();
    torch::manual_seed(2);
    const diffusion::Noised noised = model.objective().draw(batch.latents_BCHW, diffusion::NoiseSource::of_process());
    double expected = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
        const auto timestep = noised.timestep_B[i].item<std::int64_t>();
        const double alpha = model.objective().schedule().alphas_cumprod()[static_cast<std::size_t>(timestep)];
        const UnetBatch one = one_of(batch, i);
        const at::Tensor noise = (noised.input[i] - batch.latents_BCHW[i] * std::sqrt(alpha)) / std::sqrt(1 - alpha);
        const at::Tensor v = noise * std::sqrt(alpha) - batch.latents_BCHW[i] * std::sqrt(1 - alpha);
        const at::Tensor predicted = model.forward(noised.input.narrow(0, i, 1), noised.timestep_B.narrow(0, i, 1),
                                                   one.text_BSE, {one.pooled_BP, one.time_ids_B6})[0];
        const double snr = alpha / (1 - alpha);
        expected += std::min(snr, 5.0) / (snr + 1) * (predicted - v).square().mean().item<double>() / 3;
    }
    EXPECT_NEAR(loss, expected, 1e-4 * expected);
}

TEST(DiffusionUnet, EveryParameterLearnsAndTheErrorFalls) {
    for (const bool is_sdxl : {true, false}) {
        torch::manual_seed(3);
        const auto train = [&](auto&& model) {
            const UnetBatch batch = some_batch(4, is_sdxl);
            torch::optim::Adam optimizer{model.parameters(), torch::optim::AdamOptions{5e-3}};
            const double before = model.evaluation_loss(batch).template item<double>();
            for (int step = 0; step < 30; ++step) {
                optimizer.zero_grad();
                model.evaluation_loss(batch).backward();
                if (step == 0) {
                    for (const auto& parameter : model.named_parameters())
                        EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
                }
                optimizer.step();
            }
            EXPECT_LT(model.evaluation_loss(batch).template item<double>(), 0.9 * before);
        };
        if (is_sdxl)
            train(SdxlUnet{tiny_options(true)});
        else
            train(Sd15Unet{tiny_options(false)});
    }
}

TEST(DiffusionUnet, EvaluationIsTheSameInAnyBatchAndDrawsNothing) {
    torch::manual_seed(4);
    SdxlUnet model{tiny_options(true), objective(diffusion::Prediction::epsilon)};
    const UnetBatch batch = some_batch(3, true);
    const at::NoGradGuard no_gradients;
    torch::manual_seed(5);
    const double next = at::randn({1}).item<double>();
    torch::manual_seed(5);
    const double together = model.evaluation_loss(batch).item<double>();
    EXPECT_EQ(at::randn({1}).item<double>(), next);
    double alone = 0;
    for (std::int64_t i = 0; i < 3; ++i) alone += model.evaluation_loss(one_of(batch, i)).item<double>() / 3;
    EXPECT_NEAR(together, alone, 1e-5 * together);
}

template <class Call>
std::string refusal_of(Call&& call, strata::Errc code) {
    try {
        call();
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), code);
        return error.what();
    }
    return "accepted";
}

TEST(DiffusionUnet, OptionsOfTheOtherKindAreRefused) {
    const auto code = strata::Errc::bad_model_options;
    EXPECT_NE(refusal_of([] { SdxlUnet{tiny_options(false)}; }, code).find("make an Sd15Unet"), std::string::npos);
    EXPECT_NE(refusal_of([] { Sd15Unet{tiny_options(true)}; }, code).find("make an SdxlUnet"), std::string::npos);
}

/// Tensors that follow from a caption's length and the encoder's width.
struct StandIn {
    std::int64_t width;
    data::NamedTensors encode(std::span<const std::string> captions, at::Device device) const {
        std::vector<at::Tensor> rows;
        for (const std::string& caption : captions)
            rows.push_back(at::full({width}, static_cast<double>(caption.size() + 1) + 0.1, at::kFloat).to(device));
        const at::Tensor rows_BD = at::stack(rows);
        const at::Tensor tokens_BLD = rows_BD.unsqueeze(1).expand({-1, 7, -1}).contiguous();
        return {{"hidden_states_m2", tokens_BLD.cpu()},
                {"last_hidden_state", -tokens_BLD.cpu()},
                {"text_embeds", (rows_BD * 2).cpu()}};
    }
};
using Latents = KeptAutoencoder<LinearCodec>;
using Words = DeferredText<StandIn>;
using Sdxl = SdxlRecipe<Latents, Words, Words>;
using Sd15 = Sd15Recipe<Latents, Words>;
static_assert(data::Recipe<Sdxl> && data::Recipe<Sd15>);

Words words(std::int64_t width, at::ScalarType type = at::kFloat) {
    return {{.id = "stand-in " + std::to_string(width), .tokens = 7, .width = width, .type = type},
            [width](at::Device) { return StandIn{width}; }};
}
Sdxl sdxl(std::int64_t l = 4, std::int64_t g = 6, at::ScalarType type = at::kFloat,
          const SdxlRecipeOptions& options = {}) {
    return {Latents{{}, type}, words(l, type), words(g, type), options};
}
Sd15 sd15(std::int64_t l = 4) { return {Latents{{}}, words(l)}; }

template <class Recipe>
std::vector<data::NamedTensors> encoded(const Recipe& recipe, const std::vector<std::string>& captions) {
    auto encoders = recipe.load_caption_encoders(at::kCPU);
    return recipe.encode_captions(encoders, captions);
}

TEST(DiffusionUnet, RecipesConform) {
    using strata::testing::recipe_failures;
    EXPECT_EQ(recipe_failures(sdxl()), std::vector<std::string>{});
    EXPECT_EQ(recipe_failures(sdxl(4, 6, at::kBFloat16)), std::vector<std::string>{});
    EXPECT_EQ(recipe_failures(sd15()), std::vector<std::string>{});
}

/// A picture of 900 x 400, resized to 288 x 128, of which 128 x 128 at (12, 80) are kept.
const data::Geometry geometry{{900, 400}, {{128, 128}, 288, 128, 80, 12}};

TEST(DiffusionUnet, SdxlIsToldSizeCropAndBothEncoders) {
    const Sdxl recipe = sdxl(4, 6, at::kBFloat16);
    const auto entries = encoded(recipe, {"a", "bcd"});
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].at("tokens").sizes(), (at::IntArrayRef{7, 10}));
    EXPECT_EQ(entries[0].at("tokens").scalar_type(), at::kBFloat16);
    const data::NamedTensors picture{{"latents", at::ones({16, 16, 16}, at::kBFloat16)}};
    const std::vector<data::Example> examples{
        {.picture = picture, .caption = entries[0], .geometry = geometry, .text = "a", .name = "one"},
        {.picture = picture,
         .caption = entries[1],
         .geometry = geometry,
         .text = "bcd",
         .is_dropped = true,
         .name = "two"}};
    const UnetBatch batch = recipe.collate(examples);
    EXPECT_EQ(batch.latents_BCHW.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(batch.time_ids_B6[0], at::tensor({400.0f, 900.0f, 12.0f, 80.0f, 128.0f, 128.0f})));
    EXPECT_TRUE(at::equal(batch.time_ids_B6[1], batch.time_ids_B6[0]));
    EXPECT_NEAR(batch.text_BSE[0][0][0].item<double>(), 2.1, 0.02);
    EXPECT_NEAR(batch.pooled_BP[0][0].item<double>(), 4.2, 0.02);
    EXPECT_EQ(batch.pooled_BP.size(1), 6);
    EXPECT_EQ(batch.text_BSE[1].abs().sum().item<double>() + batch.pooled_BP[1].abs().sum().item<double>(), 0);
    EXPECT_EQ(batch.captions, (std::vector<std::string>{"a", ""}));
    EXPECT_EQ(batch.samples, (std::vector<std::string>{"one", "two"}));

    // Tokens of the first encoder stand first.
    const auto of_l = at::full({1, 7, 4}, 1.0), of_g = at::full({1, 7, 6}, 2.0);
    EXPECT_EQ(side_by_side(of_l, of_g)[0][0][3].item<double>(), 1);
    EXPECT_EQ(side_by_side(of_l, of_g)[0][0][4].item<double>(), 2);
}

TEST(DiffusionUnet, ADroppedCaptionIsZerosOrTheEmptyOne) {
    EXPECT_EQ(sdxl().dropped_caption(), std::nullopt);
    const Sdxl recipe = sdxl(4, 6, at::kFloat, {.dropped_is_zeros = false});
    EXPECT_EQ(recipe.dropped_caption(), "");
    EXPECT_EQ(sd15().dropped_caption(), "");
    const auto entries = encoded(recipe, {""});
    const data::NamedTensors picture{{"latents", at::ones({16, 16, 16})}};
    const std::vector<data::Example> examples{
        {.picture = picture, .caption = entries[0], .geometry = geometry, .text = "", .is_dropped = true, .name = "x"}};
    EXPECT_NEAR(recipe.collate(examples).text_BSE[0][0][0].item<double>(), 1.1, 1e-6);
}

TEST(DiffusionUnet, Sd15TakesTheLastHiddenStateAndNothingElse) {
    const Sd15 recipe = sd15();
    const auto entries = encoded(recipe, {"a"});
    EXPECT_EQ(entries.at(0).size(), 1U);
    const data::NamedTensors picture{{"latents", at::ones({16, 16, 16})}};
    const std::vector<data::Example> examples{
        {.picture = picture, .caption = entries[0], .geometry = geometry, .text = "a", .name = "x"}};
    const UnetBatch batch = recipe.collate(examples);
    EXPECT_NEAR(batch.text_BSE[0][0][0].item<double>(), -2.1, 1e-6);
    EXPECT_FALSE(batch.pooled_BP.defined() || batch.time_ids_B6.defined());
}

/// What ids name decides what is found in a cache.
TEST(DiffusionUnet, IdsNameEncodersAndTypes) {
    EXPECT_NE(sdxl().caption_id(), sdxl(4, 8).caption_id());
    EXPECT_NE(sdxl().caption_id(), sdxl(6, 4).caption_id());
    EXPECT_NE(sdxl().caption_id(), sdxl(4, 6, at::kBFloat16).caption_id());
    EXPECT_NE(sdxl().picture_id(), sdxl(4, 6, at::kBFloat16).picture_id());
    EXPECT_NE(sd15().caption_id(), sd15(6).caption_id());
}

/// Nothing of an encoder is there before something is encoded, nor behind it.
TEST(DiffusionUnet, EncodersAreLoadedWhereSomethingIsEncoded) {
    int loaded = 0;
    const auto counted = [&](std::int64_t width) {
        return Words{{.id = "counted", .tokens = 7, .width = width, .type = at::kFloat}, [&loaded, width](at::Device) {
                         ++loaded;
                         return StandIn{width};
                     }};
    };
    const Sdxl recipe{Latents{{}}, counted(4), counted(6)};
    EXPECT_NE(recipe.caption_id(), "");
    EXPECT_EQ(loaded, 0);
    EXPECT_EQ(encoded(recipe, {"a"}).size(), 1U);
    EXPECT_EQ(loaded, 2);
}

/// Keeps what it is told, and predicts zeros.
struct Spy {
    diffusion::DdpmObjective its_objective = diffusion::DdpmObjective{};
    std::vector<double> timesteps{};
    at::Tensor text{}, pooled{}, ids{}, first{};
    [[nodiscard]] const diffusion::DdpmObjective& objective() const { return its_objective; }
    at::Tensor forward(const at::Tensor& x, const at::Tensor& timestep, const at::Tensor& context,
                       const UnetAddition& addition) {
        if (timesteps.empty()) first = x;
        timesteps.push_back(timestep[0].item<double>());
        text = context;
        pooled = addition.pooled_BP;
        ids = addition.time_ids_B6;
        return at::zeros_like(x);
    }
};

template <class Recipe>
std::vector<at::Tensor> draw(const Recipe& recipe, Spy& spy, const SamplerOptions& options,
                             const std::string& negative = "") {
    auto encoders = recipe.load_caption_encoders(at::kCPU);
    const auto prompts = recipe.encode_captions(encoders, std::vector<std::string>{"abc"});
    return recipe.draw(spy, prompts, negative_caption(recipe, encoders, negative), {48, 32}, options, 3);
}

TEST(DiffusionUnet, ADrawnPictureIsToldItsSizeAndLedAwayFromZerosOrTheNegativePrompt) {
    Spy spy;
    const auto pictures = draw(sdxl(), spy, {.steps = 4, .guidance = 5, .seed = 8});
    ASSERT_EQ(pictures.size(), 1U);
    EXPECT_EQ(pictures[0].sizes(), (at::IntArrayRef{3, 32, 48}));
    EXPECT_EQ(spy.timesteps, (std::vector<double>{751, 501, 251, 1})) << "Euler's, leading, with an offset of 1";
    EXPECT_TRUE(at::equal(spy.first[0], sample_noise(8, 3, 16, 4, 6)));
    EXPECT_TRUE(at::equal(spy.first[0], spy.first[1]));
    EXPECT_NEAR(spy.text[0][0][0].item<double>(), 4.1, 1e-6);
    EXPECT_EQ(spy.text[1].abs().sum().item<double>() + spy.pooled[1].abs().sum().item<double>(), 0) << "zeros";
    for (const int row : {0, 1})
        EXPECT_TRUE(at::equal(spy.ids[row], at::tensor({32.0f, 48.0f, 0.0f, 0.0f, 32.0f, 48.0f}))) << row;

    Spy led;
    static_cast<void>(draw(sdxl(), led, {.steps = 2, .guidance = 5}, "blurry"));
    EXPECT_NEAR(led.text[1][0][0].item<double>(), 7.1, 1e-6);
    Spy kept;
    static_cast<void>(draw(sdxl(4, 6, at::kFloat, {.dropped_is_zeros = false}), kept, {.steps = 2, .guidance = 5}));
    EXPECT_NEAR(kept.text[1][0][0].item<double>(), 1.1, 1e-6) << "the empty caption";
    Spy alone;
    static_cast<void>(draw(sd15(), alone, {.steps = 4, .guidance = 1}));
    EXPECT_EQ(alone.text.size(0), 1) << "guidance 1 needs no second half";
    EXPECT_FALSE(alone.ids.defined() || alone.pooled.defined());
}

TEST(DiffusionUnet, PicturesAreDrawnAsTheAuthorsDoUnlessAnotherMethodIsAskedFor) {
    const diffusion::DdpmSchedule schedule;
    const diffusion::SolverOptions authors{.solver = diffusion::Solver::ddim, .steps_offset = 0};
    EXPECT_EQ(unet_solver(authors, schedule, {.steps = 7}).solver, diffusion::Solver::ddim);
    EXPECT_EQ(unet_solver(authors, schedule, {.steps = 7}).steps, 7);
    const auto other = unet_solver(authors, schedule, {.steps = 7, .method = strata::SamplingMethod::unipc});
    EXPECT_EQ(other.solver, diffusion::Solver::unipc);
    EXPECT_EQ(other.steps_offset, 0) << "levels are those that the authors visit";
    const diffusion::DdpmSchedule rescaled{{.zero_terminal_snr = true}};
    EXPECT_EQ(unet_solver(authors, rescaled, {}).spacing, diffusion::Spacing::trailing);

    for (const auto& [name, method] : strata::sampling_methods) {  // whatever the authors did
        Spy spy{objective(diffusion::Prediction::v)};
        const Sd15 recipe{Latents{{}}, words(4), {.solver = {.solver = diffusion::Solver::unipc, .order = 3}}};
        const SamplerOptions options{.steps = 5, .guidance = 2, .method = method, .rescale = 0.5};
        const auto pictures = draw(recipe, spy, options);
        EXPECT_EQ(spy.timesteps.size(), 5U) << name;
        EXPECT_TRUE(pictures.at(0).isfinite().all().item<bool>()) << name << ": predictions without any deviation";
        EXPECT_TRUE(at::equal(pictures.at(0), draw(recipe, spy, options).at(0)))
            << name << ": what is random follows from the seed";
    }
}

}  // namespace
