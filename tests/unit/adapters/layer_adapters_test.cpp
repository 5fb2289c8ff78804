// LoRA, DoRA and LoKr of a layer against their formulas, in outputs and gradients; and what adapt() does to a model.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/core/error.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/layers.hpp>
#include <strata/models/unet_transformer.hpp>
#include <strata/zero/in_units.hpp>

namespace {

using namespace strata;
using adapters::LokrOptions;
using adapters::LoraOptions;

Error error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    return {Errc{}, "nothing was thrown", ""};
}

/// Every parameter of an adapter is random, also those that begin as zero.
void stir(torch::nn::Module& adapter) {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : adapter.parameters()) parameter.uniform_(-0.5, 0.5);
}

/// A layer with its adapter is a layer of another weight: outputs and all gradients of the adapter are those of that layer.
template <class Kind, class Layer>
void expect_formula(Layer& layer, const typename Kind::Options& options, const at::Tensor& x,
                    const std::function<at::Tensor(const torch::nn::Module&, const at::Tensor& W)>& weight_of) {
    auto& adaptable = static_cast<models::AdaptableLayer&>(layer);
    for (at::Tensor& parameter : layer.parameters()) parameter.requires_grad_(false);
    const at::Tensor plain = layer.forward(x);
    const auto acts = std::make_shared<models::AdapterSwitch>();
    const std::shared_ptr<models::LayerAdapter> adapter = Kind::make(adaptable.shape(), options);
    adaptable.attach(std::string{Kind::name}, adapter, acts);
    EXPECT_LT((layer.forward(x) - plain).abs().max().template item<double>(), 2e-6) << "it begins by changing nothing";

    stir(*adapter);
    at::Tensor input = x.clone().requires_grad_(true);
    const at::Tensor y = layer.forward(input);
    const at::Tensor g = at::randn_like(y);
    std::vector<at::Tensor> wanted_of = adapter->parameters();
    wanted_of.push_back(input);
    const auto grads = torch::autograd::grad({y}, wanted_of, {g});

    const at::Tensor W = weight_of(*adapter, adaptable.base_weight());
    const at::Tensor expected = adaptable.sum(input, W, adaptable.base_bias());
    EXPECT_TRUE(at::allclose(y, expected, 1e-4, 1e-5)) << (y - expected).abs().max();
    const auto expected_grads = torch::autograd::grad({expected}, wanted_of, {g});
    for (std::size_t i = 0; i < grads.size(); ++i)
        EXPECT_TRUE(at::allclose(grads[i], expected_grads[i], 1e-3, 1e-4))
            << i << (grads[i] - expected_grads[i]).abs().max();
    EXPECT_TRUE(at::allclose(adapter->merged(adaptable.base_weight()), W, 1e-5, 1e-6));

    acts->on = false;
    EXPECT_TRUE(at::equal(layer.forward(x), plain));
}

at::Tensor lora_weight(const torch::nn::Module& module, const at::Tensor& W) {
    const auto& lora = dynamic_cast<const adapters::LoraAdapter&>(module);
    const at::Tensor product = at::matmul(lora.up.flatten(1), lora.down.flatten(1)).view(W.sizes());
    const at::Tensor V = W + product * lora.options().scale();
    if (!lora.magnitude.defined()) return V;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(W.dim()), 1);
    rows[0] = W.size(0);
    const at::Tensor factor = W.flatten(1).norm(2, 1) / V.detach().flatten(1).norm(2, 1);
    return V * (lora.magnitude * factor).view(rows);
}

at::Tensor lokr_weight(const torch::nn::Module& module, const at::Tensor& W) {
    const auto& lokr = dynamic_cast<const adapters::LokrAdapter&>(module);
    at::Tensor first = lokr.w1.defined() ? lokr.w1 : at::matmul(lokr.w1_a, lokr.w1_b);
    at::Tensor second = lokr.w2.defined() ? lokr.w2 : at::matmul(lokr.w2_a, lokr.w2_b);
    if (W.dim() == 4) {
        first = first.view({first.size(0), first.size(1), 1, 1});
        second = second.view({W.size(0) / first.size(0), W.size(1) / first.size(1), W.size(2), W.size(3)});
    }
    return W + at::kron(first, second).view(W.sizes()) * lokr.scale();
}

TEST(LayerAdapters, LoraAndDoraOfLinearLayersAreTheirFormulas) {
    torch::manual_seed(3);
    for (const bool use_dora : {false, true}) {
        for (const bool has_bias : {false, true}) {
            models::Linear layer{12, 20, has_bias};
            layer.train();
            expect_formula<Lora>(layer, {.rank = 3, .alpha = 6, .dropout = 0, .use_dora = use_dora},
                                 at::randn({2, 5, 12}), lora_weight);
        }
        models::TokenProjection projection{16, true};
        expect_formula<Lora>(
            projection, {.rank = 2, .dropout = 0, .use_dora = use_dora}, at::randn({2, 7, 16}),
            [](const torch::nn::Module& module, const at::Tensor& W) { return lora_weight(module, W); });
    }
}

TEST(LayerAdapters, LoraAndDoraOfConvolutionsAreTheirFormulas) {
    torch::manual_seed(4);
    for (const bool use_dora : {false, true}) {
        models::Conv2d layer{6, 10, 3, 2, 1};
        expect_formula<Lora>(layer, {.rank = 4, .alpha = 1, .dropout = 0, .use_dora = use_dora},
                             at::randn({2, 6, 8, 6}), lora_weight);
    }
}

TEST(LayerAdapters, LokrIsItsFormula) {
    torch::manual_seed(5);
    for (const bool both : {false, true}) {
        models::Linear linear{24, 36, true};
        expect_formula<Lokr>(linear, {.rank = 1, .alpha = 3, .factor = -1, .decompose_both = both},
                             at::randn({2, 5, 24}), lokr_weight);
        models::Conv2d conv{8, 12, 3, 1, 1};
        expect_formula<Lokr>(conv, {.rank = 1, .factor = 4, .decompose_both = both, .full_matrix = !both},
                             at::randn({2, 8, 5, 6}), lokr_weight);
    }
}

TEST(LayerAdapters, FactorsOfLokrAreLycoris) {
    using Pair = std::pair<std::int64_t, std::int64_t>;
    EXPECT_EQ(adapters::kronecker_factors(128, -1), (Pair{8, 16}));
    EXPECT_EQ(adapters::kronecker_factors(250, -1), (Pair{10, 25}));
    EXPECT_EQ(adapters::kronecker_factors(360, 4), (Pair{4, 90}));
    EXPECT_EQ(adapters::kronecker_factors(512, 16), (Pair{16, 32}));
    EXPECT_EQ(adapters::kronecker_factors(7, -1), (Pair{1, 7}));
    EXPECT_EQ(adapters::kronecker_factors(320, 64), (Pair{16, 20})) << "64 divides, and is above the square root";
    EXPECT_EQ(adapters::kronecker_factors(360, 7), (Pair{6, 60}))
        << "7 does not divide: the largest below it that does";
}

TEST(LayerAdapters, DropoutIsInTrainingAlone) {
    torch::manual_seed(6);
    models::Linear layer{64, 64};
    layer.attach("lora", Lora::make(layer.shape(), {.rank = 4, .dropout = 0.5}),
                 std::make_shared<models::AdapterSwitch>());
    stir(*layer.adapter());
    const at::Tensor x = at::randn({3, 64});
    layer.train();
    EXPECT_FALSE(at::equal(layer.forward(x), layer.forward(x)));
    layer.eval();
    EXPECT_TRUE(at::equal(layer.forward(x), layer.forward(x)));
}

TEST(LayerAdapters, TwoInputsSideBySideAreOne) {
    torch::manual_seed(7);
    models::Linear layer{32, 16};
    const at::Tensor a = at::randn({2, 3, 12}), b = at::randn({2, 3, 20});
    layer.attach("lora", Lora::make(layer.shape(), {.rank = 4, .dropout = 0}),
                 std::make_shared<models::AdapterSwitch>());
    stir(*layer.adapter());
    EXPECT_TRUE(at::allclose(layer.forward_of_two(a, b), layer.forward(at::cat({a, b}, -1)), 1e-5, 1e-6));
    const Error twice = error_of(
        [&] { layer.attach("lora", Lora::make(layer.shape(), {}), std::make_shared<models::AdapterSwitch>()); });
    EXPECT_EQ(twice.code(), Errc::bad_value);
}

TEST(AdapterTargets, PatternsFitEndsOfPaths) {
    EXPECT_TRUE(adapters::fits("to_q", "blocks.0.attn.to_q"));
    EXPECT_TRUE(adapters::fits("attn.to_out.0", "blocks.0.attn.to_out.0"));
    EXPECT_TRUE(adapters::fits("blocks.*.to_*", "blocks.12.attn.to_k"));
    EXPECT_TRUE(adapters::fits("*", "x"));
    EXPECT_FALSE(adapters::fits("o_q", "blocks.0.attn.to_q"));
    EXPECT_FALSE(adapters::fits("attn", "blocks.0.attn.to_q"));
    EXPECT_FALSE(adapters::fits("blocks.1.*", "blocks.10.attn.to_q"));
    EXPECT_EQ(adapters::patterns_of(" a , b.c,, "), (std::vector<std::string>{"a", "b.c"}));
    EXPECT_EQ(adapters::targeted({"x.to_q", "x.to_k", "y.to_q"}, {"to_q"}, {"y.*"}), (std::vector<std::size_t>{0}));
}

TEST(AdapterTargets, AllThatFitsNothingIsInOneError) {
    const std::vector<std::string> paths{"b.0.attn.to_q", "b.0.attn.to_out.0"};
    const Error error = error_of([&] { (void)adapters::targeted(paths, {"to_q", "q_proj"}, {"nothing"}); });
    EXPECT_EQ(error.code(), Errc::bad_value);
    const std::string text = error.what();
    EXPECT_NE(text.find("'q_proj', 'nothing'"), std::string::npos) << text;
    EXPECT_NE(text.find("to_out.0, to_q"), std::string::npos) << text;
    EXPECT_EQ(error_of([&] { (void)adapters::targeted(paths, {"to_q"}, {"*"}); }).code(), Errc::bad_value);
    EXPECT_EQ(error_of([&] { (void)adapters::targeted({}, {"to_q"}, {}); }).code(), Errc::bad_value);
}

models::FluxOptions tiny_flux() {
    models::FluxOptions options;
    options.token_values = options.output_values = 16;
    options.text_width = 12;
    options.pooled_width = 8;
    options.heads = 2;
    options.rotary_axes = {4, 6, 6};
    options.double_blocks = options.single_blocks = 1;
    return options;
}

TEST(Adapt, OnlyAdaptersAreTrainedAndAMergedModelDrawsTheSame) {
    torch::manual_seed(8);
    models::Flux flux{tiny_flux()};
    flux.eval();
    const auto draw = [&] {
        const at::NoGradGuard no_grad;
        torch::manual_seed(9);
        return flux.forward(at::randn({2, 4, 4, 6}), at::randn({2, 3, 12}), at::randn({2, 8}), at::rand({2}));
    };
    const at::Tensor plain = draw();
    adapters::Adapted adapted =
        adapters::adapt<Lora>(flux, {.rank = 2}, {"to_q", "to_k", "to_v", "to_out.0", "proj_out"},
                              {"norm_out.linear", "single_transformer_blocks.*.to_k"});
    EXPECT_EQ(adapted.layers().size(),
              4U + 3 + 1);  // three and proj_out of the single block, and the model's own proj_out
    EXPECT_EQ(flux.adapter_switch(), adapted.acts());
    EXPECT_TRUE(at::allclose(draw(), plain, 1e-5, 1e-6)) << "two inputs are put side by side for an adapter";
    std::int64_t trained = 0;
    for (const auto& parameter : flux.named_parameters()) {
        EXPECT_EQ(parameter.value().requires_grad(), parameter.key().find(".lora.") != std::string::npos)
            << parameter.key();
        if (parameter.value().requires_grad()) trained += parameter.value().numel();
    }
    EXPECT_EQ(trained, adapted.numel());
    for (const auto& layer : adapted.layers()) stir(*layer.layer->adapter());
    const at::Tensor changed = draw();
    EXPECT_GT((changed - plain).abs().max().item<double>(), 1e-2);
    {
        const models::AdaptersOff off{adapted.acts()};
        EXPECT_TRUE(at::equal(draw(), plain));
    }
    EXPECT_TRUE(at::equal(draw(), changed));
    adapted.merge();
    EXPECT_TRUE(at::allclose(draw(), changed, 1e-5, 1e-5)) << (draw() - changed).abs().max();
}

TEST(Adapt, AModelMadeInUnitsNeedsNoWeightsForIt) {
    const auto flux = in_units([] { return std::make_shared<models::Flux>(tiny_flux()); });
    adapters::Adapted adapted = adapters::adapt<Lora>(*flux, {.rank = 2, .use_dora = true}, {"to_q", "ff.net.2"});
    EXPECT_EQ(adapted.layers().size(), 3U);
    for (const auto& layer : adapted.layers()) {
        for (const at::Tensor& parameter : layer.layer->adapter()->parameters()) EXPECT_TRUE(parameter.has_storage());
    }
}

TEST(Adapt, PicturesThatKeepTheModelAsItWasTeachItsOwnAnswer) {
    torch::manual_seed(10);
    models::Flux flux{tiny_flux()};
    adapters::Adapted adapted = adapters::adapt<Lora>(flux, {.rank = 2, .dropout = 0}, {"to_q", "to_v"});
    models::FluxBatch batch;
    batch.latents_BCHW = at::randn({2, 4, 4, 4});
    batch.text_BTE = at::randn({2, 3, 12});
    batch.pooled_BE = at::randn({2, 8});
    batch.is_regularisation_data = true;
    EXPECT_EQ(flux.loss(batch).item<double>(), 0.0) << "an adapter that changes nothing has nothing to learn";
    for (const auto& layer : adapted.layers()) stir(*layer.layer->adapter());
    const at::Tensor loss = flux.loss(batch);
    EXPECT_GT(loss.item<double>(), 0.0);
    loss.backward();
    for (const auto& layer : adapted.layers()) {
        for (const at::Tensor& parameter : layer.layer->adapter()->parameters())
            EXPECT_TRUE(parameter.grad().defined());
    }
}

}  // namespace
