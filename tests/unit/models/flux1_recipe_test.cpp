// Flux1Recipe: what is cached in which type, what a dropped caption is, and what a batch holds. The encoders stand in
// for AutoencoderKl, T5 and CLIP: they have their shapes and types, and no weights.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/models/flux.hpp>
#include <strata/models/flux1_recipe.hpp>
#include <strata/models/hashed_text.hpp>
#include <strata/models/linear_codec.hpp>
#include <strata/testing/recipe_conformance.hpp>

namespace {

namespace models = strata::models;
namespace data = strata::data;

/// Words of HashedText, padded to 12 tokens, in bf16 as T5 computes; what is alive of it is counted.
class Words {
public:
    class Encoder {
    public:
        explicit Encoder(int* alive) : alive_{alive} { ++*alive_; }
        ~Encoder() { --*alive_; }
        Encoder(const Encoder&) = delete;
        Encoder& operator=(const Encoder&) = delete;
        data::NamedTensors encode(std::span<const std::string> captions, at::Device) {
            const auto B = static_cast<std::int64_t>(captions.size());
            const at::Tensor tokens_BTE = at::zeros({B, 12, 128});
            const at::Tensor mask_BT = at::zeros({B, 12}, at::kLong);
            for (std::int64_t i = 0; i < B; ++i) {
                const std::string& caption = captions[static_cast<std::size_t>(i)];
                const at::Tensor tokens = models::HashedText{}.encode(caption).tokens;
                tokens_BTE[i].narrow(0, 1, tokens.size(0)).copy_(tokens);
                const auto words = std::min<std::int64_t>(
                    8, caption.empty() ? 0 : 1 + std::count(caption.begin(), caption.end(), ' '));
                mask_BT[i].narrow(0, 0, 1 + words).fill_(1);  // the end of a text is a token of it
            }
            return {{"tokens", tokens_BTE}, {"mask", mask_BT}};
        }

    private:
        int* alive_;
    };
    [[nodiscard]] std::string id() const { return "words, 12 tokens"; }
    [[nodiscard]] std::int64_t tokens() const { return 12; }
    [[nodiscard]] std::int64_t width() const { return 128; }
    [[nodiscard]] at::ScalarType type() const { return at::kBFloat16; }
    [[nodiscard]] Encoder load(at::Device) const { return Encoder{&alive}; }
    static inline int alive = 0;
};

struct Summaries {
    data::NamedTensors encode(std::span<const std::string> captions, at::Device) {
        std::vector<at::Tensor> pooled;
        for (const std::string& caption : captions) pooled.push_back(models::HashedText{}.encode(caption).pooled);
        return {{"pooled", at::stack(pooled)}};
    }
};
using Pooled = models::DeferredText<Summaries>;

using Latents = models::KeptAutoencoder<models::LinearCodec>;
using Recipe = models::Flux1Recipe<Latents, Words, Pooled>;
static_assert(data::Recipe<Recipe>);

Recipe recipe() {
    return {Latents{models::LinearCodec{}, at::kBFloat16}, Words{},
            Pooled{{.id = "summaries", .tokens = 0, .width = 128, .type = at::kFloat},
                   [](at::Device) { return Summaries{}; }}};
}

TEST(Flux1Recipe, Conforms) {
    EXPECT_EQ(strata::testing::recipe_failures(recipe()), std::vector<std::string>{});
    EXPECT_EQ(Words::alive, 0) << "encoders that nobody needs any more";
}

TEST(Flux1Recipe, EverythingIsCachedInTheTypeThatItsEncoderComputesIn) {
    EXPECT_EQ(recipe().alignment(), 16);
    const auto pictures = recipe().picture_tensors({64, 32});
    ASSERT_EQ(pictures.size(), 1U);
    EXPECT_EQ(pictures[0].type, at::kBFloat16);
    EXPECT_EQ(pictures[0].shape, (std::vector<std::int64_t>{16, 4, 8}));
    for (const data::TensorSpec& spec : recipe().caption_tensors()) {
        const bool is_tokens = spec.name == "tokens";
        EXPECT_EQ(spec.type, is_tokens ? at::kBFloat16 : spec.name == "mask" ? at::kBool : at::kFloat) << spec.name;
        if (is_tokens) {
            EXPECT_EQ(spec.shape, (std::vector<std::int64_t>{12, 128}));
        }
    }
    EXPECT_NE(recipe().caption_id().find("words, 12 tokens"), std::string::npos);
    EXPECT_NE(recipe().caption_id().find("summaries"), std::string::npos);
}

TEST(Flux1Recipe, ABatchHasTheMaskOfItsCaptionsAndLatentsInFp32) {
    const Recipe flux = recipe();
    auto encoders = flux.load_caption_encoders(at::kCPU);
    const std::vector<std::string> captions{"a red apple", *flux.dropped_caption()};
    const auto encoded = flux.encode_captions(encoders, captions);
    const data::NamedTensors picture{{"latents", at::randn({16, 4, 4}).to(at::kBFloat16)}};
    std::vector<data::Example> examples;
    for (std::size_t i = 0; i < 2; ++i)
        examples.push_back({picture, encoded[i], {}, captions[i], i == 1, "picture.png", i, false});
    const models::FluxBatch batch = flux.collate(examples);
    EXPECT_EQ(batch.latents_BCHW.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(batch.latents_BCHW[1], picture.at("latents").to(at::kFloat)));
    EXPECT_EQ(batch.text_BTE.scalar_type(), at::kBFloat16);
    EXPECT_EQ(batch.text_BTE.sizes(), (at::IntArrayRef{2, 12, 128}));
    EXPECT_EQ(batch.pooled_BE.sizes(), (at::IntArrayRef{2, 128}));
    EXPECT_TRUE(at::equal(batch.text_mask_BT.sum(1), at::tensor({4, 1}, at::kLong)))
        << "three words and the end, and of the dropped caption the end alone";
    EXPECT_EQ(batch.captions[1], "");
}

TEST(Flux1Recipe, ABatchOfARecipeWithoutMasksHasNone) {
    const models::FluxRecipe<> small;
    auto encoder = small.load_caption_encoders(at::kCPU);
    const std::vector<std::string> captions{"a red apple"};
    const auto encoded = small.encode_captions(encoder, captions);
    const data::NamedTensors picture{{"latents", at::randn({16, 4, 4})}};
    const std::vector<data::Example> examples{{picture, encoded[0], {}, captions[0], false, "picture.png", 0, false}};
    EXPECT_FALSE(small.collate(examples).text_mask_BT.defined());
}

/// A model that the stand-ins can feed.
models::FluxOptions small(bool has_guidance) {
    return {.token_values = 64,
            .output_values = 64,
            .text_width = 128,
            .pooled_width = 128,
            .heads = 2,
            .rotary_axes = {4, 6, 6},
            .double_blocks = 1,
            .single_blocks = 1,
            .has_guidance = has_guidance};
}

TEST(Flux1Recipe, EveryPromptHasAPictureOfItsOwnInAnyCompany) {
    const Recipe flux = recipe();
    auto encoders = flux.load_caption_encoders(at::kCPU);
    const std::vector<std::string> captions{"a red apple", "an orange", ""};
    const auto encoded = flux.encode_captions(encoders, captions);
    const auto draw = [&](models::Flux& model, std::size_t begin, std::size_t count, double guidance) {
        return flux.draw(model, std::span{encoded}.subspan(begin, count), encoded[2], {48, 32},
                         {.steps = 3, .guidance = guidance}, static_cast<std::int64_t>(begin));
    };
    for (const bool has_guidance : {true, false}) {  // told to the model, or without caption as well
        torch::manual_seed(1);
        models::Flux model{small(has_guidance)};
        const auto both = draw(model, 0, 2, 3.0);
        ASSERT_EQ(both.size(), 2U);
        EXPECT_EQ(both[0].sizes(), (at::IntArrayRef{3, 32, 48}));
        const auto alone = draw(model, 1, 1, 3.0);
        EXPECT_TRUE(at::equal(alone[0], both[1])) << "the same bits in any company";
        EXPECT_GT((both[0] - both[1]).abs().max().item<float>(), 1e-2F);
        EXPECT_GT((draw(model, 1, 1, 1.0)[0] - both[1]).abs().max().item<float>(), 1e-4F) << "guidance is heard";
        const auto guided = flux.draw(model, std::span{encoded}.subspan(1, 1), encoded[2], {48, 32},
                                      {.steps = 3, .guidance = 3.0, .real_guidance = 4}, 1);
        EXPECT_EQ(at::equal(guided[0], alone[0]), !has_guidance) << "classifier-free guidance beside the embedding";
    }
}

}  // namespace
