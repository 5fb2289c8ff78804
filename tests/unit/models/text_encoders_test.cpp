// T5Encoder and ClipText against the reference implementations, their configurations, and both behind their tokenizers.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include <strata/models/text_encoders.hpp>

#include "../../support/made_tokenizers.hpp"
#include "../../support/temporary_folder.hpp"
#include "golden_cases.hpp"

namespace {

namespace models = strata::models;
namespace tokenizers = strata::tokenizers;
using models::ClipActivation;
using models::ClipText;
using models::ClipTextOptions;
using models::ClipTextOutput;
using models::T5Encoder;
using models::T5Options;
using strata_test::thrown_by;

/// Numbers such that every token and every parameter matters.
void randomise(torch::nn::Module& model) {
    torch::manual_seed(3);
    const at::NoGradGuard no_gradients;
    for (at::Tensor& parameter : model.parameters())
        parameter.add_(at::randn(parameter.sizes()).to(parameter.scalar_type()) * 0.15);
}

T5Options small_t5() { return {110, 32, 8, 48, 3, 2, 32, 128, 1e-6}; }
ClipTextOptions small_clip() {
    ClipTextOptions options{522, 32, 48, 3, 4, 16, 12, true, ClipActivation::quick_gelu, 1e-5, 2};
    return options;
}

at::Tensor ids(std::initializer_list<std::int64_t> numbers) {
    return at::tensor(std::vector<std::int64_t>(numbers)).view({1, -1});
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

std::set<std::string> names_of(const torch::nn::Module& model) {
    std::set<std::string> names;
    for (const auto& parameter : model.named_parameters()) names.insert(parameter.key());
    return names;
}

// ---- T5Encoder --------------------------------------------------------------------------------------------------

TEST(TextEncoders, T5MakesTheNumbersOfTheReference) {
    STRATA_NEED_CASES(golden, "t5");
    T5Encoder model{models::parse_t5_config(golden_json("t5").at("config").dump(), "t5.json")};
    golden.fill(model);
    for (const std::string& tag : golden.tags()) {
        SCOPED_TRACE(tag);
        const at::Tensor mask =
            golden.has("in." + tag + ".attention_mask") ? golden.input(tag, "attention_mask") : at::Tensor{};
        golden.expect(tag, model, {{"last_hidden_state", model.forward(golden.input(tag, "input_ids"), mask)}}, {});
    }
}

TEST(TextEncoders, T5InBf16StaysNearFp32) {
    STRATA_NEED_CASES(golden, "t5");
    const T5Options options = models::parse_t5_config(golden_json("t5").at("config").dump(), "t5.json");
    T5Encoder model{options, at::kBFloat16};
    golden.fill(model);
    const at::Tensor out = model.forward(golden.input("c2", "input_ids"));
    EXPECT_EQ(out.scalar_type(), at::kBFloat16);
    golden.expect_near("out.c2.last_hidden_state", out, 3e-2);
}

TEST(TextEncoders, T5HasTheBucketsOfTheReference) {
    EXPECT_EQ(models::distance_bucket(0, 32, 128), 0);
    EXPECT_EQ(models::distance_bucket(-7, 32, 128), 7);
    EXPECT_EQ(models::distance_bucket(7, 32, 128), 23);
    EXPECT_EQ(models::distance_bucket(-11, 32, 128), 8);
    EXPECT_EQ(models::distance_bucket(-12, 32, 128), 9);
    EXPECT_EQ(models::distance_bucket(1000, 32, 128), 31);
    // 15 of 30 for each direction, 7 of them for one distance each.
    EXPECT_EQ(models::distance_bucket(-6, 30, 128), 6);
    EXPECT_EQ(models::distance_bucket(-7, 30, 128), 7);
    EXPECT_EQ(models::distance_bucket(6, 30, 128), 21);
    EXPECT_EQ(models::distance_bucket(-1000, 30, 128), 14);
    EXPECT_EQ(models::distance_bucket(1000, 30, 128), 29);
    EXPECT_EQ(
        models::parse_t5_config(R"({"feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 30})", "c")
            .distance_buckets,
        30);
    STRATA_NEED_CASES(golden, "t5");
    const nlohmann::json table = golden_json("t5").at("bucket_table");
    std::int64_t distance = table.at("relative_position(key-query) from").get<std::int64_t>();
    for (const nlohmann::json& bucket : table.at("bucket"))
        EXPECT_EQ(models::distance_bucket(distance++, 32, 128), bucket.get<std::int64_t>()) << distance - 1;
    EXPECT_EQ(distance - 1, table.at("to").get<std::int64_t>());
}

TEST(TextEncoders, T5HasTheNamesOfItsFiles) {
    const std::set<std::string> names = names_of(T5Encoder{small_t5()});
    for (const char* name :
         {"shared.weight", "encoder.block.0.layer.0.SelfAttention.q.weight",
          "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
          "encoder.block.0.layer.0.layer_norm.weight", "encoder.block.2.layer.1.DenseReluDense.wi_0.weight",
          "encoder.block.2.layer.1.DenseReluDense.wi_1.weight", "encoder.block.2.layer.1.DenseReluDense.wo.weight",
          "encoder.final_layer_norm.weight"})
        EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_EQ(names.size(), 3 * 9 + 3U);
}

TEST(TextEncoders, T5MaskHidesPaddingAndItsLackDoesNot) {
    T5Encoder model{small_t5()};
    randomise(model);
    const at::NoGradGuard no_gradients;
    const at::Tensor text = ids({4, 6, 5, 1}), padded = ids({4, 6, 5, 1, 0, 0});
    const at::Tensor mask = ids({1, 1, 1, 1, 0, 0});
    const at::Tensor alone = model.forward(text);
    EXPECT_LT(largest_difference(model.forward(padded, mask).narrow(1, 0, 4), alone), 1e-5);
    EXPECT_GT(largest_difference(model.forward(padded).narrow(1, 0, 4), alone), 1e-2);
    EXPECT_TRUE(model.forward(padded, at::zeros_like(mask)).isfinite().all().item<bool>());
    EXPECT_EQ(thrown_by([&] { (void)model.forward(padded, ids({1, 1})); }).code, strata::Errc::bad_value);
}

TEST(TextEncoders, T5RefusesWhatItDoesNotImplementAllAtOnce) {
    const auto refused = thrown_by([] {
        (void)models::parse_t5_config(
            R"({"model_type": "umt5", "feed_forward_proj": "relu", "d_model": -1, "num_heads": "many",
            "relative_attention_num_buckets": 3, "architectures": ["BertModel"], "no_such_key": 1})",
            "config.json");
    });
    EXPECT_EQ(refused.code, strata::Errc::bad_model_config);
    for (const char* part : {"'model_type' is \"umt5\"", "'feed_forward_proj' is \"relu\"", "'d_model' is -1",
                             "'num_heads' is", "'relative_attention_num_buckets' is 3",
                             "'architectures' names none of T5EncoderModel", "'no_such_key' is not known"})
        EXPECT_TRUE(refused.says(part)) << part << "\n" << refused.message;
    EXPECT_TRUE(thrown_by([] { (void)models::parse_t5_config("{}", "c"); }).says("'feed_forward_proj' is missing"));
    EXPECT_EQ(thrown_by([] {
                  T5Encoder{T5Options{0, 32, 8, 48, 0, 2, 3, 128, 1e-6}};
              }).code,
              strata::Errc::bad_model_options);
    // The file that T5 v1.1 XXL was published with.
    const T5Options xxl = models::parse_t5_config(
        R"({"architectures": ["T5EncoderModel"], "classifier_dropout": 0.0, "d_ff": 10240, "d_kv": 64, "d_model": 4096,
            "decoder_start_token_id": 0, "dense_act_fn": "gelu_new", "dropout_rate": 0.1, "eos_token_id": 1,
            "feed_forward_proj": "gated-gelu", "initializer_factor": 1.0, "is_encoder_decoder": true, "is_gated_act": true,
            "layer_norm_epsilon": 1e-06, "model_type": "t5", "num_decoder_layers": 24, "num_heads": 64, "num_layers": 24,
            "output_past": true, "pad_token_id": 0, "relative_attention_max_distance": 128,
            "relative_attention_num_buckets": 32, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
            "transformers_version": "4.43.3", "use_cache": true, "vocab_size": 32128})",
        "config.json");
    EXPECT_EQ(xxl, T5Options{});
}

// ---- ClipText ---------------------------------------------------------------------------------------------------

void expect_clip(const char* name, const char* summary) {
    const GoldenCases golden{name};
    const nlohmann::json json = golden_json(name);
    for (const auto& [tag, facts] : json.at("cases").items()) {
        SCOPED_TRACE(std::string{name} + " " + tag);
        ClipTextOptions options = models::parse_clip_text_config(json.at("config").dump(), name);
        options.has_projection = golden.has("text_projection.weight");
        options.eos = facts.at("eos_token_id").get<std::int64_t>();
        ClipText model{options};
        golden.fill(model);
        const at::Tensor mask = facts.contains("attention_mask") ? golden.input(tag, "attention_mask") : at::Tensor{};
        const ClipTextOutput out = model.forward(golden.input(tag, "input_ids"), mask);
        golden.expect(tag, model,
                      {{"last_hidden_state", out.last_hidden_state},
                       {"hidden_states_m2", out.hidden_states_m2()},
                       {summary, options.has_projection ? out.text_embeds : out.pooled}},
                      {});
        for (std::size_t i = 0; i < out.hidden_states.size(); ++i)
            golden.expect_near("mid." + tag + ".hidden_states." + std::to_string(i), out.hidden_states[i], 1e-5);
    }
}

TEST(TextEncoders, ClipMakesTheNumbersOfTheReference) {
    if (!std::filesystem::exists(Golden::path("clip_l.safetensors")))
        GTEST_SKIP() << Golden::path("clip_l.safetensors") << " is not there: nothing to compare with";
    expect_clip("clip_l", "pooler_output");
    expect_clip("clip_g", "text_embeds");
}

TEST(TextEncoders, ClipInBf16StaysNearFp32) {
    STRATA_NEED_CASES(golden, "clip_g");
    ClipTextOptions options = models::parse_clip_text_config(golden_json("clip_g").at("config").dump(), "clip_g");
    options.has_projection = true;
    options.eos = 2;
    ClipText model{options, at::kBFloat16};
    golden.fill(model);
    const ClipTextOutput out = model.forward(golden.input("c0_argmax_padeos", "input_ids"));
    EXPECT_EQ(out.text_embeds.scalar_type(), at::kBFloat16);
    golden.expect_near("out.c0_argmax_padeos.last_hidden_state", out.last_hidden_state, 3e-2);
    golden.expect_near("out.c0_argmax_padeos.hidden_states_m2", out.hidden_states_m2(), 3e-2);
    golden.expect_near("out.c0_argmax_padeos.text_embeds", out.text_embeds, 3e-2);
}

TEST(TextEncoders, ClipTokensSeeThoseBeforeThemAlone) {
    ClipText model{small_clip()};
    randomise(model);
    const at::NoGradGuard no_gradients;
    const ClipTextOutput one = model.forward(ids({500, 4, 6, 5, 521, 0})),
                         other = model.forward(ids({500, 4, 6, 9, 521, 7}));
    EXPECT_LT(largest_difference(one.last_hidden_state.narrow(1, 0, 3), other.last_hidden_state.narrow(1, 0, 3)), 1e-6);
    EXPECT_GT(largest_difference(one.last_hidden_state.narrow(1, 3, 1), other.last_hidden_state.narrow(1, 3, 1)), 1e-2);
    EXPECT_EQ(thrown_by([&] { (void)model.forward(at::zeros({1, 17}, at::kLong)); }).code, strata::Errc::bad_value);
}

TEST(TextEncoders, ClipTakesTheRowOfTheEndOfTheText) {
    ClipTextOptions options = small_clip();
    const at::Tensor text = ids({500, 521, 7, 521, 521, 9});
    const auto row = [&](std::int64_t eos) {
        options.eos = eos;
        ClipText model{options};
        randomise(model);
        const at::NoGradGuard no_gradients;
        const ClipTextOutput out = model.forward(text);
        for (std::int64_t i = 0; i < 6; ++i)
            if (at::equal(out.pooled, out.last_hidden_state.select(1, i))) return i;
        return std::int64_t{-1};
    };
    EXPECT_EQ(row(2), 1);  // the first of the largest
    EXPECT_EQ(row(7), 2);
    EXPECT_EQ(row(521), 1);  // the first of several
    EXPECT_EQ(row(13), 0);   // none
}

TEST(TextEncoders, ClipRefusesWhatItDoesNotImplementAllAtOnce) {
    const auto refused = thrown_by([] {
        (void)models::parse_clip_text_config(
            R"({"model_type": "clip", "hidden_act": "relu", "hidden_size": 30, "num_attention_heads": 4, "num_hidden_layers": 1, "strange": []})",
            "config.json");
    });
    EXPECT_EQ(refused.code, strata::Errc::bad_model_config);
    for (const char* part :
         {"'model_type' is \"clip\"", "'hidden_act' is \"relu\"", "'num_attention_heads' is 4, and 'hidden_size' 30",
          "'num_hidden_layers' is 1", "'strange' is not known"})
        EXPECT_TRUE(refused.says(part)) << part << "\n" << refused.message;
    ClipTextOptions uneven = small_clip();
    uneven.width = 30;
    EXPECT_TRUE(thrown_by([&] { ClipText{uneven}; }).says("ClipTextOptions::width is 30 and heads is 4"));
    // The file of the text encoder of Stable Diffusion, SDXL and Flux.1, and of bigG.
    ClipTextOptions large = models::parse_clip_text_config(
        R"({"_name_or_path": "openai/clip-vit-large-patch14", "architectures": ["CLIPTextModel"], "attention_dropout": 0.0,
            "bos_token_id": 0, "dropout": 0.0, "eos_token_id": 2, "hidden_act": "quick_gelu", "hidden_size": 768,
            "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
            "max_position_embeddings": 77, "model_type": "clip_text_model", "num_attention_heads": 12,
            "num_hidden_layers": 12, "pad_token_id": 1, "projection_dim": 768, "torch_dtype": "float16",
            "transformers_version": "4.32.0.dev0", "vocab_size": 49408})",
        "config.json");
    EXPECT_EQ(large.eos, 2);
    large.eos = 49407;
    EXPECT_EQ(large, ClipTextOptions{});
    const ClipTextOptions big = models::parse_clip_text_config(
        R"({"architectures": ["CLIPTextModelWithProjection"], "hidden_act": "gelu", "projection_dim": 1280})", "c");
    EXPECT_TRUE(big.has_projection);
    EXPECT_EQ(big.activation, ClipActivation::gelu);
}

// ---- with their tokenizers --------------------------------------------------------------------------------------

struct Pair {
    explicit Pair(models::ClipTextEncoderOptions clip_options = {}, models::T5TextEncoderOptions t5_options = {}) {
        strata_test::cats_and_dogs().write(folder.path());
        strata::storage::write_file(folder.path() / "spiece.model", strata_test::small_pieces().bytes());
        auto clip = std::make_shared<ClipText>(small_clip());
        auto t5 = std::make_shared<T5Encoder>(small_t5());
        randomise(*clip);
        randomise(*t5);
        clip_encoder = std::make_unique<models::ClipTextEncoder>(clip_tokenizer(), clip, "weights", clip_options);
        t5_encoder = std::make_unique<models::T5TextEncoder>(t5_tokenizer(), t5, "weights", t5_options);
    }
    std::shared_ptr<const tokenizers::ClipTokenizer> clip_tokenizer(std::int64_t length = 16) const {
        tokenizers::ClipTokenizerOptions options;
        options.max_length = length;
        return std::make_shared<const tokenizers::ClipTokenizer>(folder.path(), options);
    }
    std::shared_ptr<const tokenizers::T5Tokenizer> t5_tokenizer() const {
        return std::make_shared<const tokenizers::T5Tokenizer>(folder.path(),
                                                               tokenizers::T5TokenizerOptions{12, false});
    }
    strata_test::TemporaryFolder folder;
    std::unique_ptr<models::ClipTextEncoder> clip_encoder;
    std::unique_ptr<models::T5TextEncoder> t5_encoder;
};

TEST(TextEncoders, CaptionsBecomeTheTensorsThatAreAskedFor) {
    const Pair pair{{true, true, true, true, at::kBFloat16}};
    const std::vector<std::string> captions{"cat dog", "", "cats"};
    const auto made = pair.clip_encoder->encode(captions, at::kCPU);
    ASSERT_EQ(made.size(), 4U);
    EXPECT_EQ(made.at("last_hidden_state").sizes(), (std::vector<std::int64_t>{3, 16, 32}));
    EXPECT_EQ(made.at("hidden_states_m2").sizes(), (std::vector<std::int64_t>{3, 16, 32}));
    EXPECT_EQ(made.at("pooled").sizes(), (std::vector<std::int64_t>{3, 32}));
    EXPECT_EQ(made.at("text_embeds").sizes(), (std::vector<std::int64_t>{3, 12}));
    for (const auto& [name, tensor] : made) {
        EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << name;
        EXPECT_FALSE(tensor.requires_grad()) << name;
        EXPECT_GT(largest_difference(tensor[0], tensor[2]), 0) << name;
    }
    const Pair few{{false, true, false, false, at::kFloat}};
    EXPECT_EQ(few.clip_encoder->encode(captions, at::kCPU).size(), 1U);

    const auto t5 = pair.t5_encoder->encode(captions, at::kCPU);
    EXPECT_EQ(t5.at("tokens").sizes(), (std::vector<std::int64_t>{3, 12, 32}));
    EXPECT_EQ(t5.at("mask").sum(1).to(at::kLong)[0].item<std::int64_t>(), 3);  // cat, dog, the end
    EXPECT_EQ(t5.at("mask").sum(1).to(at::kLong)[1].item<std::int64_t>(), 1);
    EXPECT_EQ(pair.t5_encoder->encode({}, at::kCPU).at("tokens").size(0), 0);
}

TEST(TextEncoders, ACaptionIsTheSameInAnyBatch) {
    const Pair pair;
    const std::vector<std::string> captions{"cat dog", "dog", "cats !!"}, one{"dog"};
    EXPECT_LT(largest_difference(pair.clip_encoder->encode(captions, at::kCPU).at("last_hidden_state")[1],
                                 pair.clip_encoder->encode(one, at::kCPU).at("last_hidden_state")[0]),
              1e-5);
    EXPECT_LT(largest_difference(pair.t5_encoder->encode(captions, at::kCPU).at("tokens")[1],
                                 pair.t5_encoder->encode(one, at::kCPU).at("tokens")[0]),
              1e-5);
}

TEST(TextEncoders, MaskedPaddingChangesTheTokensOfAText) {
    const Pair plain, masked{{}, {true, at::kFloat}};
    const std::vector<std::string> captions{"cat"};
    EXPECT_GT(largest_difference(plain.t5_encoder->encode(captions, at::kCPU).at("tokens").narrow(1, 0, 2),
                                 masked.t5_encoder->encode(captions, at::kCPU).at("tokens").narrow(1, 0, 2)),
              1e-3);
    EXPECT_NE(plain.t5_encoder->id(), masked.t5_encoder->id());
}

TEST(TextEncoders, AnIdNamesWhatNumbersDependOn) {
    const Pair one, same, kept{{true, true, false, false, at::kFloat}},
        type{{true, false, false, false, at::kBFloat16}};
    EXPECT_EQ(one.clip_encoder->id(), same.clip_encoder->id());
    EXPECT_EQ(one.t5_encoder->id(), same.t5_encoder->id());
    EXPECT_NE(one.clip_encoder->id(), kept.clip_encoder->id());
    EXPECT_NE(one.clip_encoder->id(), type.clip_encoder->id());
    const models::ClipTextEncoder other_weights{one.clip_tokenizer(), std::make_shared<ClipText>(small_clip()),
                                                "others"};
    EXPECT_NE(one.clip_encoder->id(), other_weights.id());
    const models::ClipTextEncoder other_length{one.clip_tokenizer(12), std::make_shared<ClipText>(small_clip()),
                                               "weights"};
    EXPECT_NE(one.clip_encoder->id(), other_length.id());
}

TEST(TextEncoders, PairsThatDoNotFitAreRefused) {
    const Pair pair;
    const auto refused = [&](const ClipTextOptions& options, std::int64_t length,
                             models::ClipTextEncoderOptions keep = {}) {
        const auto thrown = thrown_by([&] {
            models::ClipTextEncoder{pair.clip_tokenizer(length), std::make_shared<ClipText>(options), "weights", keep};
        });
        EXPECT_EQ(thrown.code, strata::Errc::bad_model_options);
        return thrown;
    };
    ClipTextOptions few = small_clip();
    few.vocabulary = 100;
    EXPECT_TRUE(refused(few, 16).says("522 tokens and texts of 16 does not go with a ClipText of 100 and 16"));
    EXPECT_TRUE(refused(small_clip(), 17).says("texts of 17"));
    ClipTextOptions plain = small_clip();
    plain.has_projection = false;
    EXPECT_TRUE(refused(plain, 16, {true, false, false, true, at::kFloat}).says("without projection"));
    EXPECT_TRUE(refused(small_clip(), 16, {false, false, false, false, at::kFloat}).says("ask for no tensor"));
    T5Options small = small_t5();
    small.vocabulary = 20;
    EXPECT_TRUE(thrown_by([&] {
                    models::T5TextEncoder{pair.t5_tokenizer(), std::make_shared<T5Encoder>(small), "w"};
                }).says("110 tokens does not go with a T5Encoder of 20"));
}

}  // namespace
