// FluxTransformer: the numbers of the reference, the formulas written out, masks, ids, and what is refused.

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/flux_transformer.hpp>
#include <strata/models/packing.hpp>
#include <strata/zero/unit.hpp>

#include "golden_cases.hpp"

namespace {

namespace models = strata::models;
using models::FluxInput;
using models::FluxOptions;
using models::FluxTransformer;

FluxOptions small(bool has_guidance = true) {
    return {.token_values = 16,
            .output_values = 16,
            .text_width = 32,
            .pooled_width = 24,
            .heads = 4,
            .rotary_axes = {4, 6, 6},
            .double_blocks = 2,
            .single_blocks = 2,
            .has_guidance = has_guidance};
}

FluxInput input_of(std::int64_t B, std::int64_t rows, std::int64_t columns, std::int64_t T, bool has_guidance = true) {
    FluxInput input;
    input.tokens_BIP = at::randn({B, rows * columns, 16});
    input.text_BTE = at::randn({B, T, 32});
    input.pooled_BE = at::randn({B, 24});
    input.sigma_B = at::rand({B});
    if (has_guidance) input.guidance_B = at::rand({B}) * 4;
    input.image_ids_I3 = models::grid_ids(rows, columns);
    return input;
}

/// Head norms that are all ones, and modulations of libtorch's size, hide mistakes.
void randomise(FluxTransformer& model) {
    const at::NoGradGuard no_gradients;
    for (at::Tensor& parameter : model.parameters()) parameter.add_(at::randn_like(parameter) * 0.1);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() /
           b.to(at::kDouble).abs().max().item<double>();
}

/// The sizes of the reference's cases.
FluxOptions golden_options() { return models::parse_flux_config(golden_json("flux").at("config").dump(), "flux.json"); }

FluxInput golden_input(const GoldenCases& golden, const std::string& tag) {
    return {.tokens_BIP = golden.input(tag, "hidden_states"),
            .text_BTE = golden.input(tag, "encoder_hidden_states"),
            .pooled_BE = golden.input(tag, "pooled_projections"),
            .sigma_B = golden.input(tag, "timestep"),
            .guidance_B = golden_options().has_guidance ? golden.input(tag, "guidance") : at::Tensor{},
            .image_ids_I3 = golden.input(tag, "img_ids"),
            .text_ids_T3 = golden.input(tag, "txt_ids"),
            .text_mask_BT = {}};
}

TEST(FluxTransformer, IsTheReferenceForwardAndBackward) {
    STRATA_NEED_CASES(golden, "flux");
    for (const auto type : {at::kFloat, at::kDouble}) {  // kernels, and the operations that they stand for
        FluxTransformer model{golden_options()};
        model.to(type);
        golden.fill(model);
        for (const std::string& tag : golden.tags()) {
            const FluxInput leaves = golden_input(golden, tag);
            FluxInput input = leaves;
            input.tokens_BIP = leaves.tokens_BIP.to(type);
            input.sigma_B = leaves.sigma_B.to(type);
            if (leaves.guidance_B.defined()) input.guidance_B = leaves.guidance_B.to(type);
            golden.expect(tag, model, {{"sample", model.forward(input)}},
                          {{"hidden_states", leaves.tokens_BIP},
                           {"encoder_hidden_states", leaves.text_BTE},
                           {"pooled_projections", leaves.pooled_BE}});
        }
    }
}

TEST(FluxTransformer, IdsThatAreMadeAreThoseOfTheReference) {
    STRATA_NEED_CASES(golden, "flux");
    FluxTransformer model{golden_options()};
    golden.fill(model);
    const at::NoGradGuard no_gradients;
    const nlohmann::json facts = golden_json("flux");
    for (const auto& [tag, of_case] : facts.at("cases").items()) {
        SCOPED_TRACE(tag);
        std::vector<at::Tensor> ids;
        for (const std::vector<std::int64_t> grid : of_case.at("grids"))  // rows, columns, number of the picture
            ids.push_back(models::grid_ids(grid.at(0), grid.at(1), grid.size() > 2 ? grid[2] : 0));
        EXPECT_TRUE(at::equal(at::cat(ids), golden("in." + tag + ".img_ids")));
        FluxInput input = golden_input(golden, tag);
        input.text_ids_T3 = at::Tensor{};
        EXPECT_LT(distance(model.forward(input), golden("out." + tag + ".sample")), 1e-5);
    }
}

/// bf16 keeps 8 bits: a rounding is up to 0.4 %. Four blocks deep the velocity is within 3 % of its largest value, and
/// a gradient of all parameters together within 5 % of its norm.
TEST(FluxTransformer, Bf16IsWithinItsBoundOfFp32) {
    torch::manual_seed(1);
    FluxTransformer model{small()};
    randomise(model);
    const at::NoGradGuard keep_out;
    const FluxInput input = input_of(2, 4, 6, 5);
    const auto run = [&] {
        const at::AutoGradMode on{true};
        model.zero_grad();
        const at::Tensor v = model.forward(input);
        (v * at::linspace(-1, 1, v.numel()).view(v.sizes())).mean().backward();
        std::vector<at::Tensor> gradients;
        for (const at::Tensor& parameter : model.parameters())
            gradients.push_back(parameter.grad().to(at::kFloat).flatten());
        return std::pair{v.detach(), at::cat(gradients)};
    };
    const auto [v, gradient] = run();
    for (at::Tensor& parameter : model.parameters()) {
        parameter.mutable_grad() = at::Tensor{};
        parameter.set_data(parameter.to(at::kBFloat16));
    }
    const auto [v_half, gradient_half] = run();
    EXPECT_EQ(v_half.scalar_type(), at::kFloat);
    EXPECT_LT(distance(v_half, v), 0.03);
    EXPECT_GT(distance(v_half, v), 1e-5) << "computed in fp32 after all";
    EXPECT_LT((gradient_half - gradient).norm().item<double>(), 0.05 * gradient.norm().item<double>());
}

/// The formulas of the architecture, written out over the model's parameters by their names.
class WrittenOut {
public:
    WrittenOut(const FluxTransformer& model, const FluxOptions& options) : options_{options} {
        for (const auto& entry : model.named_parameters()) weights_.insert(entry.key(), entry.value());
    }
    at::Tensor operator()(const FluxInput& in) const {
        const std::int64_t T = in.text_BTE.size(1);
        const auto embedded = [&](const std::string& name, const at::Tensor& x) {
            const std::string at = "time_text_embed." + name + "_embedder.";
            return layer(at + "linear_2", at::silu(layer(at + "linear_1", x)));
        };
        const at::Tensor c = at::silu(embedded("timestep", sinusoid(in.sigma_B)) +
                                      embedded("guidance", sinusoid(in.guidance_B)) + embedded("text", in.pooled_BE));
        at::Tensor image = layer("x_embedder", in.tokens_BIP);
        at::Tensor text = layer("context_embedder", in.text_BTE);
        const at::Tensor ids = at::cat({at::zeros({T, 3}), in.image_ids_I3}).to(at::kDouble);
        for (std::int64_t i = 0; i < options_.double_blocks; ++i) {
            const std::string at = "transformer_blocks." + std::to_string(i) + ".";
            const auto mod = layer(at + "norm1.linear", c).chunk(6, 1);
            const auto mod_text = layer(at + "norm1_context.linear", c).chunk(6, 1);
            const at::Tensor x = norm(image, mod[0], mod[1]);
            const at::Tensor y = norm(text, mod_text[0], mod_text[1]);
            const auto both = [&](const char* of_text, const char* of_image) {
                return at::cat({layer(at + "attn." + of_text, y), layer(at + "attn." + of_image, x)}, 1);
            };
            const auto heads = [&](const at::Tensor& z, const std::string& text_norm, const std::string& image_norm) {
                const at::Tensor h = split(z);
                return turned(at::cat({rms(h.narrow(2, 0, T), at + "attn." + text_norm),
                                       rms(h.narrow(2, T, h.size(2) - T), at + "attn." + image_norm)},
                                      2),
                              ids);
            };
            const at::Tensor a = attended(heads(both("add_q_proj", "to_q"), "norm_added_q", "norm_q"),
                                          heads(both("add_k_proj", "to_k"), "norm_added_k", "norm_k"),
                                          split(both("add_v_proj", "to_v")));
            const auto rest = [&](at::Tensor z, const at::Tensor& out, const auto& m, const std::string& ff) {
                z = z + m[2].unsqueeze(1) * out;
                const at::Tensor hidden = at::gelu(layer(at + ff + ".net.0.proj", norm(z, m[3], m[4])), "tanh");
                return z + m[5].unsqueeze(1) * layer(at + ff + ".net.2", hidden);
            };
            image = rest(image, layer(at + "attn.to_out.0", a.narrow(1, T, image.size(1))), mod, "ff");
            text = rest(text, layer(at + "attn.to_add_out", a.narrow(1, 0, T)), mod_text, "ff_context");
        }
        at::Tensor z = at::cat({text, image}, 1);
        for (std::int64_t i = 0; i < options_.single_blocks; ++i) {
            const std::string at = "single_transformer_blocks." + std::to_string(i) + ".";
            const auto mod = layer(at + "norm.linear", c).chunk(3, 1);
            const at::Tensor x = norm(z, mod[0], mod[1]);
            const auto head = [&](const char* name, const char* of) {
                return turned(rms(split(layer(at + "attn." + name, x)), at + "attn." + of), ids);
            };
            const at::Tensor a =
                attended(head("to_q", "norm_q"), head("to_k", "norm_k"), split(layer(at + "attn.to_v", x)));
            const at::Tensor hidden = at::gelu(layer(at + "proj_mlp", x), "tanh");
            z = z + mod[2].unsqueeze(1) * layer(at + "proj_out", at::cat({a, hidden}, 2));
        }
        const auto mod = layer("norm_out.linear", c).chunk(2, 1);
        return layer("proj_out", norm(z.narrow(1, T, image.size(1)), mod[1], mod[0]));
    }

private:
    at::Tensor layer(const std::string& name, const at::Tensor& x) const {
        return at::linear(x, weights_[name + ".weight"], weights_[name + ".bias"]);
    }
    static at::Tensor sinusoid(const at::Tensor& x) {
        const at::Tensor frequency = at::pow(10000.0, at::arange(128, at::kDouble) / -128.0);
        const at::Tensor angle = x.unsqueeze(1) * 1000 * frequency;
        return at::cat({angle.cos(), angle.sin()}, 1);
    }
    static at::Tensor norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale) {
        return at::layer_norm(x, {x.size(2)}, {}, {}, 1e-6) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1);
    }
    at::Tensor split(const at::Tensor& x) const { return x.unflatten(2, {options_.heads, -1}).transpose(1, 2); }
    at::Tensor rms(const at::Tensor& x, const std::string& name) const {
        return x / (x.square().mean(-1, true) + 1e-6).sqrt() * weights_[name + ".weight"];
    }
    at::Tensor turned(const at::Tensor& x, const at::Tensor& ids) const {
        std::vector<at::Tensor> angles;
        for (std::int64_t axis = 0; axis < 3; ++axis) {
            const auto width = static_cast<double>(options_.rotary_axes[static_cast<std::size_t>(axis)]);
            const at::Tensor even = at::arange(0, width, 2, at::kDouble);
            angles.push_back(at::outer(ids.select(1, axis), at::pow(10000.0, even / -width)));
        }
        const at::Tensor angle = at::cat(angles, 1);
        const at::Tensor z = at::view_as_complex(x.unflatten(-1, {-1, 2}).contiguous());
        return at::view_as_real(z * at::polar(at::ones_like(angle), angle)).flatten(-2);
    }
    static at::Tensor attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
        return at::matmul(scores.softmax(-1), v).transpose(1, 2).flatten(2);
    }

    FluxOptions options_;
    torch::OrderedDict<std::string, at::Tensor> weights_;
};

/// Other sizes than the reference's cases, heads that no kernel takes among them.
TEST(FluxTransformer, ComputesWhatIsWrittenOut) {
    for (const models::RotaryAxes& axes : {models::RotaryAxes{2, 4, 6}, {8, 12, 12}, {2, 2, 12}}) {
        torch::manual_seed(2);
        FluxOptions options = small();
        options.heads = 3;
        options.rotary_axes = axes;
        options.output_values = 5;
        FluxTransformer model{options};
        randomise(model);
        const at::NoGradGuard no_gradients;
        FluxInput input = input_of(2, 2, 3, 4);
        input.sigma_B *= 0.01;  // angles of a thousand and more show how their frequencies were rounded
        input.guidance_B *= 0.01;
        const at::Tensor v = model.forward(input);
        EXPECT_EQ(v.sizes(), (at::IntArrayRef{2, 6, 5}));
        model.to(at::kDouble);
        for (at::Tensor* tensor :
             {&input.tokens_BIP, &input.text_BTE, &input.pooled_BE, &input.sigma_B, &input.guidance_B})
            *tensor = tensor->to(at::kDouble);
        const at::Tensor expected = WrittenOut{model, options}(input);
        EXPECT_LT(distance(v, expected), 1e-5) << axes[0] << ", " << axes[1] << ", " << axes[2];
        EXPECT_LT(distance(model.forward(input), expected), 1e-6) << "all but sines and cosines in fp64";
    }
}

TEST(FluxTransformer, MaskedTextIsAsIfItWereNotThere) {
    torch::manual_seed(3);
    FluxTransformer model{small()};
    randomise(model);
    const at::NoGradGuard no_gradients;
    FluxInput input = input_of(2, 3, 4, 6);
    const at::Tensor all = model.forward(input);
    input.text_mask_BT = at::ones({2, 6}, at::kBool);
    EXPECT_LT(distance(model.forward(input), all), 1e-5) << "a mask that hides nothing";
    input.text_mask_BT[1].narrow(0, 4, 2).fill_(false);
    const at::Tensor masked = model.forward(input);
    EXPECT_LT(distance(masked[0], all[0]), 1e-5) << "the other picture's mask";
    EXPECT_GT(distance(masked[1], all[1]), 1e-3);
    FluxInput shorter = input;
    shorter.text_BTE = input.text_BTE.narrow(1, 0, 4);
    shorter.text_mask_BT = at::Tensor{};
    EXPECT_LT(distance(masked[1], model.forward(shorter)[1]), 1e-5);
}

TEST(FluxTransformer, MaskedTextGetsNoGradient) {
    torch::manual_seed(4);
    FluxTransformer model{small()};
    randomise(model);
    FluxInput input = input_of(1, 2, 3, 5);
    input.text_BTE.requires_grad_();
    input.text_mask_BT = at::ones({1, 5}, at::kBool);
    input.text_mask_BT.narrow(1, 3, 2).fill_(false);
    model.forward(input).square().sum().backward();
    EXPECT_EQ(input.text_BTE.grad().narrow(1, 3, 2).abs().max().item<float>(), 0.0F);
    EXPECT_GT(input.text_BTE.grad().narrow(1, 0, 3).abs().max().item<float>(), 0.0F);
    EXPECT_TRUE(input.text_BTE.grad().isfinite().all().item<bool>());
}

TEST(FluxTransformer, PicturesToLookAtLieInAPlaneOfTheirOwn) {
    torch::manual_seed(5);
    FluxTransformer model{small()};
    randomise(model);
    const at::NoGradGuard no_gradients;
    FluxInput input = input_of(1, 4, 2, 3);
    input.image_ids_I3 = at::cat({models::grid_ids(2, 2), models::grid_ids(2, 2, 1)});
    const at::Tensor apart = model.forward(input);
    input.image_ids_I3 = at::cat({models::grid_ids(2, 2), models::grid_ids(2, 2)});
    EXPECT_GT(distance(apart, model.forward(input)), 1e-4);
}

TEST(FluxTransformer, WithoutGuidanceItIsTheSameModelLessOneEmbedder) {
    torch::manual_seed(6);
    FluxTransformer with{small()}, without{small(false)};
    randomise(with);
    const at::NoGradGuard no_gradients;
    std::set<std::string> left;
    auto others = without.named_parameters();
    for (auto& entry : with.named_parameters()) {
        if (entry.key().find("guidance_embedder") != std::string::npos) {
            left.insert(entry.key());
            entry.value().zero_();
        } else {
            others[entry.key()].copy_(entry.value());
        }
    }
    EXPECT_EQ(left.size(), 4U);
    EXPECT_EQ(with.parameters().size(), without.parameters().size() + 4);
    FluxInput input = input_of(2, 2, 2, 3);
    const at::Tensor v = with.forward(input);
    input.guidance_B = at::Tensor{};
    EXPECT_TRUE(at::equal(without.forward(input), v));
}

TEST(FluxTransformer, GuidanceIsHeard) {
    torch::manual_seed(7);
    FluxTransformer model{small()};
    randomise(model);
    const at::NoGradGuard no_gradients;
    FluxInput input = input_of(1, 2, 2, 3);
    input.guidance_B = at::full({1}, 1.0);
    const at::Tensor one = model.forward(input);
    input.guidance_B = at::full({1}, 3.5);
    EXPECT_GT(distance(model.forward(input), one), 1e-4);
}

TEST(FluxTransformer, StartsAsLibtorchDrawsOrAsTheIdentity) {
    const at::NoGradGuard no_gradients;
    FluxOptions options = small();
    FluxTransformer drawn{options};
    options.start = models::FluxStart::identity;
    FluxTransformer identity{options};
    const FluxInput input = input_of(1, 2, 2, 3);
    EXPECT_GT(drawn.forward(input).abs().max().item<float>(), 1e-3F);
    EXPECT_EQ(identity.forward(input).abs().max().item<float>(), 0.0F);
    EXPECT_GT(drawn.named_parameters()["transformer_blocks.0.norm1.linear.weight"].abs().max().item<float>(), 0.0F);
}

TEST(FluxTransformer, EveryBlockIsAUnit) {
    FluxTransformer model{small()};
    int units = 0;
    for (const auto& module : model.modules(/*include_self=*/false))
        units += dynamic_cast<const strata::zero::UnitBase*>(module.get()) != nullptr ? 1 : 0;
    EXPECT_EQ(units, 4);
}

/// What `run` throws, which must be of that number.
template <class Run>
std::string refusal(strata::Errc code, const Run& run) {
    try {
        run();
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        return error.problem();
    }
    ADD_FAILURE() << "accepted";
    return {};
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\nin " << text;
}

TEST(FluxTransformer, AllSizesThatDoNotFitAreTold) {
    FluxOptions options = small();
    options.heads = 0;
    options.rotary_axes = {3, 6, 0};
    expect_parts(refusal(strata::Errc::bad_model_options, [&] { FluxTransformer{options}; }),
                 {"heads is 0", "has 3", "has 0"});
}

TEST(FluxTransformer, AllTensorsThatDoNotFitAreTold) {
    FluxTransformer model{small()};
    FluxInput input = input_of(2, 2, 3, 4);
    input.text_BTE = at::zeros({2, 4, 31});
    input.pooled_BE = at::Tensor{};
    input.guidance_B = at::Tensor{};
    input.image_ids_I3 = models::grid_ids(2, 2);
    input.text_mask_BT = at::ones({2, 5}, at::kBool);
    expect_parts(refusal(strata::Errc::bad_value, [&] { (void)model.forward(input); }),
                 {"text_BTE is (2, 4, 31), and not (2, 4, 32)", "pooled_BE is missing", "guidance_B is missing",
                  "image_ids_I3 is (4, 3), and not (6, 3)", "text_mask_BT is (2, 5), and not (2, 4)"});
    FluxTransformer plain{small(false)};
    expect_parts(refusal(strata::Errc::bad_value, [&] { (void)plain.forward(input_of(1, 2, 2, 3)); }),
                 {"guidance_B is given"});
}

TEST(FluxTransformer, ReadsTheConfigsThatArePublished) {
    EXPECT_EQ(
        models::parse_flux_config(R"({"_class_name": "FluxTransformer2DModel", "_diffusers_version": "0.30.0.dev0",
        "_name_or_path": "../checkpoints/flux-dev/transformer", "attention_head_dim": 128, "guidance_embeds": true,
        "in_channels": 64, "joint_attention_dim": 4096, "num_attention_heads": 24, "num_layers": 19,
        "num_single_layers": 38, "patch_size": 1, "pooled_projection_dim": 768})",
                                  "config.json"),
        FluxOptions{});
    EXPECT_EQ(models::parse_flux_config(R"({"_class_name": "FluxTransformer2DModel", "guidance_embeds": false})", "a")
                  .has_guidance,
              false);
    EXPECT_EQ(models::parse_flux_config(R"({"patch_size": 1, "in_channels": 16, "out_channels": null, "num_layers": 2,
        "num_single_layers": 2, "attention_head_dim": 16, "num_attention_heads": 4, "joint_attention_dim": 32,
        "pooled_projection_dim": 24, "guidance_embeds": true, "axes_dims_rope": [4, 6, 6]})",
                                        "b"),
              small());
    EXPECT_EQ(models::parse_flux_config(R"({"in_channels": 128, "out_channels": 64})", "c").output_values, 64);
}

TEST(FluxTransformer, TellsEverythingThatIsWrongWithAConfig) {
    const std::string problem = refusal(strata::Errc::bad_model_config, [] {
        (void)models::parse_flux_config(
            R"({"_class_name": "UNet2DConditionModel", "patch_size": 2, "num_layers": "many",
            "attention_head_dim": 96, "axes_dims_rope": [16, 55, 56], "qk_norm": "rms_norm"})",
            "transformer/config.json");
    });
    expect_parts(problem, {"transformer/config.json", "'_class_name'", "'patch_size'", "'num_layers'",
                           "'attention_head_dim' is 96, and axes_dims_rope add up to 127", "odd", "'qk_norm'"});
    expect_parts(refusal(strata::Errc::bad_model_config,
                         [] { (void)models::parse_flux_config(R"({"axes_dims_rope": [64, 64]})", "d"); }),
                 {"has 2 axes"});
}

}  // namespace
