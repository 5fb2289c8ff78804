// Galleries while a tiny SDXL and a tiny Flux train: the same pictures at stage 3 as at stage 0, on any number of ranks, of
// the trained weights, of their average, and of the model without its adapter; and what log and report say of them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <strata/adapters/lora.hpp>
#include <strata/core/error.hpp>
#include <strata/data/named_tensors.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/flux1_recipe.hpp>
#include <strata/models/linear_codec.hpp>
#include <strata/models/sdxl_recipe.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/strata.hpp>
#include <strata/train/gallery.hpp>
#include <strata/train/picture_grid.hpp>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
namespace fs = std::filesystem;

/// Tensors that follow from a caption's letters; what is alive of it is counted.
class Letters {
public:
    explicit Letters(std::int64_t width) : width_{width} { ++alive; }
    Letters(const Letters& other) : width_{other.width_} { ++alive; }
    Letters& operator=(const Letters&) = delete;
    ~Letters() { --alive; }
    [[nodiscard]] std::string id() const { return "letters " + std::to_string(width_); }
    [[nodiscard]] data::NamedTensors encode(std::span<const std::string> captions, at::Device) const {
        std::vector<at::Tensor> tokens, masks;
        for (const std::string& caption : captions) {
            const at::Tensor one = at::zeros({5, width_});
            for (std::size_t i = 0; i < caption.size(); ++i)
                one[static_cast<std::int64_t>(i % 5)][static_cast<std::int64_t>(i) % width_] += caption[i] / 100.0;
            tokens.push_back(one + 0.1);
            masks.push_back(at::arange(5) <= static_cast<std::int64_t>(caption.size()));
        }
        const at::Tensor tokens_BSE = at::stack(tokens);
        const at::Tensor pooled_BE = tokens_BSE.sum(1);
        return {{"tokens", tokens_BSE},
                {"mask", at::stack(masks)},
                {"pooled", pooled_BE},
                {"hidden_states_m2", tokens_BSE},
                {"text_embeds", pooled_BE}};
    }
    static inline int alive = 0;

private:
    std::int64_t width_;
};
using Deferred = models::DeferredText<Letters>;
using Texts = std::vector<std::string>;

Deferred letters(std::int64_t width) {
    return {{.id = "letters", .tokens = 5, .width = width, .type = at::kFloat},
            [width](at::Device) { return Letters{width}; }};
}

struct OfSdxl {
    using Model = models::SdxlUnet;
    using Recipe = models::SdxlRecipe<models::KeptAutoencoder<models::LinearCodec>, Deferred, Deferred>;
    static Model model() {
        models::UnetOptions options;
        options.in_channels = options.out_channels = 16;
        options.levels = {{16, 2, 1, false}, {32, 2, 1, true}};
        options.layers_per_block = 1;
        options.cross_attention_dim = 12;
        options.norm_groups = 8;
        options.linear_projection = true;
        options.addition_time_dim = 8;
        options.addition_input_dim = 6 * 8 + 8;
        return Model{options};
    }
    static Recipe recipe() { return {models::KeptAutoencoder{models::LinearCodec{}}, letters(4), letters(8)}; }
    static models::UnetBatch batch() {
        models::UnetBatch batch;
        batch.latents_BCHW = at::randn({1, 16, 4, 4});
        batch.text_BSE = at::randn({1, 5, 12});
        batch.pooled_BP = at::randn({1, 8});
        batch.time_ids_B6 = at::randint(0, 64, {1, 6}).to(at::kFloat);
        return batch;
    }
};

struct OfFlux {
    using Model = models::Flux;
    using Recipe = models::Flux1Recipe<models::KeptAutoencoder<models::LinearCodec>, Deferred, Deferred>;
    static Model model() {
        return Model{{.token_values = 64,
                      .output_values = 64,
                      .text_width = 16,
                      .pooled_width = 12,
                      .heads = 2,
                      .rotary_axes = {4, 6, 6},
                      .double_blocks = 1,
                      .single_blocks = 1}};
    }
    static Recipe recipe() { return {models::KeptAutoencoder{models::LinearCodec{}}, letters(16), letters(12)}; }
    static models::FluxBatch batch() {
        models::FluxBatch batch;
        batch.latents_BCHW = at::randn({1, 16, 4, 4});
        batch.text_BTE = at::randn({1, 5, 16});
        batch.pooled_BE = at::randn({1, 12});
        return batch;
    }
};

struct Gallery : strata_test::TrainerRuns {
    /// Prompts, sizes and images that no number of ranks above one divides.
    static train::GalleryOptions options_of_gallery() {
        return {.prompts = {"a red apple", "an orange", "two pears", "one fig", ""},
                .negative_prompt = "blurry",
                .sizes = {{32, 16}, {16, 16}},
                .sampler = {.steps = 2,
                            .guidance = 3,
                            .seed = 5,
                            .method = SamplingMethod::euler_ancestral,
                            .rescale = 0.5,
                            .real_guidance = 2},
                .every_steps = 2};
    }

    /// Two steps; returns the last grid, on rank 0.
    ///
    ///   look        at the trained model and its recipe at the end, while its parameters are whole
    ///   trains_all  under adapters, the weights beneath as well
    template <class Of, class... Policies>
    std::string run_with_gallery(const std::string& name, const train::GalleryOptions& options,
                                 const std::function<void(typename Of::Model&, const typename Of::Recipe&)>& look = {},
                                 bool trains_all = false) {
        in_session(name, [&](Session& session) {
            torch::manual_seed(3);
            const auto recipe = std::make_shared<const typename Of::Recipe>(Of::recipe());
            const int encoders = Letters::alive;
            train::Gallery<typename Of::Recipe> gallery{session, recipe, options};
            EXPECT_EQ(Letters::alive, encoders) << "text encoders that nobody needs any more";
            auto model = std::make_shared<typename Of::Model>(Of::model());
            {
                const at::NoGradGuard no_gradients;  // what starts as zero takes part as well
                for (at::Tensor& parameter : model->parameters()) parameter.add_(at::randn_like(parameter) * 0.02);
            }
            using Trained = Trainer<typename Of::Model, Policies...>;
            typename Trained::Options given{.max_steps = 2, .schedule = {.lr = 1e-2}, .engine = {.max_grad_norm = 1}};
            if constexpr (Trained::setup::adaptation::enabled) given.adapter.targets = "to_q,to_k,to_v,to_out.0";
            Trained trainer{session, model, given};
            if (trains_all) trainer.set_trainable([](std::string_view) { return true; });
            gallery.follow(trainer);
            trainer.fit(FunctionSource{[](std::int64_t) { return Of::batch(); }, 10, 1});
            EXPECT_TRUE(model->is_training());
            if (look) trainer.with_whole_model([&] { look(*model, *recipe); });
        });
        comm.barrier();
        return comm.rank() == 0 ? text_of(root / name / "samples/step_00000002.png") : "";
    }

    /// The grid of pictures that one rank draws alone, prompt after prompt.
    template <class Recipe, class Model>
    static std::string drawn_alone(Model& model, const Recipe& recipe, const train::GalleryOptions& options) {
        auto encoders = recipe.load_caption_encoders(at::kCPU);
        const auto prompts = recipe.encode_captions(encoders, options.prompts);
        const auto empty = models::negative_caption(recipe, encoders, options.negative_prompt);
        std::vector<at::Tensor> cells;
        model.eval();
        for (std::size_t i = 0; i < prompts.size(); ++i)
            for (const pictures::PictureSize& size : options.sizes)
                cells.push_back(recipe
                                    .draw(model, std::span{prompts}.subspan(i, 1), empty, size, options.sampler,
                                          static_cast<std::int64_t>(i))
                                    .at(0));
        const auto png = train::encode_picture_grid(cells, 4);
        return {reinterpret_cast<const char*>(png.data()), png.size()};
    }

    /// The pixels of a grid's columns; pictures are 16 wide, and 4 pixels from each other.
    using Columns = std::vector<std::vector<std::uint8_t>>;
    static Columns columns(const std::string& png) {
        const pictures::Picture grid = pictures::decode_image(std::as_bytes(std::span{png}));
        EXPECT_EQ(grid.width % 20, 4);
        Columns found(static_cast<std::size_t>(grid.width / 20));
        for (std::int64_t i = 0; i < grid.width * grid.height; ++i)
            if (const std::int64_t x = i % grid.width; x % 20 >= 4)
                for (std::int64_t channel = 0; channel < grid.channels; ++channel)
                    found[static_cast<std::size_t>(x / 20)].push_back(
                        grid.pixels[static_cast<std::size_t>(i * grid.channels + channel)]);
        return found;
    }
    static Columns every_second(const std::string& png, std::size_t from) {
        const auto all = columns(png);
        Columns found;
        for (std::size_t i = from; i < all.size(); i += 2) found.push_back(all[i]);
        return found;
    }

    [[nodiscard]] std::vector<nlohmann::json> samples_in(const std::string& name) const {
        std::ifstream in{root / name / "metrics.jsonl"};
        std::vector<nlohmann::json> found;
        for (std::string line; std::getline(in, line);)
            if (auto one = nlohmann::json::parse(line); one.contains("samples")) found.push_back(std::move(one));
        return found;
    }
};

TEST_F(Gallery, StageThreeDrawsWhatStageZeroDrawsAndOneRankAlone) {
    const train::GalleryOptions options = options_of_gallery();
    const auto expect_same = [&]<class Of>(const std::string& name, Of) {
        std::string alone;
        const std::string zero =
            run_with_gallery<Of, ZeroStage<0>>(name + "0", options, [&](auto& model, const auto& recipe) {
                if (comm.rank() == 0) alone = drawn_alone(model, recipe, options);
            });
        const std::string three = run_with_gallery<Of, ZeroStage<3>>(name + "3", options);
        if (comm.rank() != 0) return;
        EXPECT_FALSE(zero.empty());
        EXPECT_TRUE(zero == alone) << name;
        EXPECT_TRUE(zero == three) << name;
    };
    expect_same("sdxl", OfSdxl{});
    expect_same("flux", OfFlux{});
}

TEST_F(Gallery, TheAverageStandsBesideTheTrainedWeightsAndLogAndReportSaySo) {
    train::GalleryOptions options = options_of_gallery();
    options.prompts.resize(3);
    options.sizes = {{16, 16}};
    options.images = 3;
    options.at_start = true;
    options.negative_prompt.clear();
    const std::string both = run_with_gallery<OfSdxl, ZeroStage<3>, Ema<Cpu>>("both", options);
    options.at_start = false;
    options.average = config::EmaValidation::none;
    const std::string trained = run_with_gallery<OfSdxl, ZeroStage<3>, Ema<Cpu>>("trained", options);
    options.average = config::EmaValidation::ema_only;
    const std::string average = run_with_gallery<OfSdxl, ZeroStage<3>, Ema<Cpu>>("average", options);
    if (comm.rank() != 0) return;
    EXPECT_EQ(columns(both).size(), 6U);
    EXPECT_EQ(every_second(both, 0), columns(trained));
    EXPECT_EQ(every_second(both, 1), columns(average));
    EXPECT_NE(columns(trained), columns(average));

    const auto lines = samples_in("both");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0]["step"], 0);
    EXPECT_EQ(lines[1]["step"], 2);
    const auto& noted = lines[1]["samples"];
    EXPECT_EQ(noted["file"], "samples/step_00000002.png");
    EXPECT_EQ(noted["weights"].get<Texts>(), (Texts{"trained", "average"}));
    EXPECT_EQ(noted["prompts"].get<Texts>(), options.prompts);
    EXPECT_EQ(noted["seed"], 5);
    EXPECT_EQ(noted["images"], 3);
    EXPECT_GE(noted["seconds"].get<double>(), 0);
    EXPECT_TRUE(fs::exists(root / "both/samples/step_00000000.png"));
    EXPECT_EQ(samples_in("average").at(0)["samples"]["weights"].get<Texts>(), Texts{"average"});
    const std::string report = text_of(root / "both/report.html");
    EXPECT_NE(report.find("<span>two pears</span>"), std::string::npos);
    EXPECT_NE(report.find("the trained weights, their moving average"), std::string::npos);
    EXPECT_NE(report.find("repeat(1,1fr)"), std::string::npos);
}

TEST_F(Gallery, WhatIsDrawnWithoutTheAdapterStandsLeft) {
    train::GalleryOptions options = options_of_gallery();
    options.prompts.resize(3);
    options.sizes = {{16, 16}};
    options.columns = 1;  // a row for each prompt, however many pictures it has
    options.at_start = true;
    const std::string three = run_with_gallery<OfSdxl, ZeroStage<3>, Adapter<Lora>, Ema<Cpu>>("three", options);
    const std::string zero = run_with_gallery<OfSdxl, ZeroStage<0>, Adapter<Lora>, Ema<Cpu>>("zero", options);
    run_with_gallery<OfSdxl, ZeroStage<0>>("plain", options);
    run_with_gallery<OfSdxl, ZeroStage<2>, Adapter<Lora>>("all", options, {}, true);
    options.without_adapter = false;
    run_with_gallery<OfSdxl, ZeroStage<3>, Adapter<Lora>>("with", options);
    if (comm.rank() != 0) return;
    const auto beginning = [&](const std::string& name) {
        return columns(text_of(root / name / "samples/step_00000000.png"));
    };
    const auto plain = beginning("plain").at(0);
    EXPECT_EQ(beginning("three"), (Columns{plain, plain, plain})) << "an adapter begins by changing nothing";
    EXPECT_TRUE(zero == three);
    const auto shown = columns(three);
    ASSERT_EQ(shown.size(), 3U);
    EXPECT_EQ(shown[0], plain);
    EXPECT_NE(shown[1], plain);
    EXPECT_NE(shown[2], plain);
    EXPECT_NE(shown[1], shown[2]);
    EXPECT_EQ(samples_in("three").at(1)["samples"]["weights"].get<Texts>(),
              (Texts{"without adapter", "trained", "average"}));

    const auto trained_beneath = columns(text_of(root / "all/samples/step_00000002.png"));
    EXPECT_EQ(beginning("all").at(0), plain);
    EXPECT_NE(trained_beneath.at(0), plain) << "drawn again, where the weights beneath are trained";
    EXPECT_EQ(samples_in("with").at(1)["samples"]["weights"].get<Texts>(), Texts{"trained"});
    EXPECT_EQ(columns(text_of(root / "with/samples/step_00000002.png")), Columns{shown[1]});
}

TEST_F(Gallery, ARunThatGoesOnDrawsNoBeginning) {
    train::GalleryOptions options = options_of_gallery();
    options.prompts.resize(1);
    options.at_start = true;
    run_with_gallery<OfFlux, ZeroStage<0>>("again", options);
    run_with_gallery<OfFlux, ZeroStage<0>>("again", options);  // all steps are done
    if (comm.rank() == 0) {
        EXPECT_EQ(samples_in("again").size(), 2U);
    }
}

TEST_F(Gallery, SizesThatTheModelCannotDrawAreRefused) {
    train::GalleryOptions options = options_of_gallery();
    options.sizes.push_back({40, 16});  // Flux takes 2 x 2 latents of 8 pixels
    const Error error = error_of([&] { run_with_gallery<OfFlux, ZeroStage<0>>("refused", options); });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_NE(error.problem().find("40 x 16"), std::string::npos) << error.what();
}

}  // namespace
