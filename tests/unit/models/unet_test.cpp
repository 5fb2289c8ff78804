// Unet: the numbers of the reference, names and shapes of its parameters, odd sizes, and what must not change with the
// number format.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/unet.hpp>

#include "golden_cases.hpp"

namespace {

using namespace strata::models;

/// The U-Net of the reference's cases.
UnetOptions golden_options() {
    const auto file = strata::config::load_document(Golden::path("unet_sdxl.json"));
    return unet_options_of({file.source, *file.root.find("config"), {}});
}

struct GoldenUnet {
    explicit GoldenUnet(const GoldenCases& cases) : golden{&cases}, unet{golden_options()} { cases.fill(unet); }

    at::Tensor run(const std::string& tag, GoldenCases::Named& inputs) {
        for (const char* name : {"sample", "encoder_hidden_states", "text_embeds"})
            inputs[name] = golden->input(tag, name);
        return unet.forward(inputs["sample"], (*golden)("in." + tag + ".timestep"), inputs["encoder_hidden_states"],
                            {inputs["text_embeds"], (*golden)("in." + tag + ".time_ids")});
    }
    template <class Module>
    Module& part(const std::string& name) {
        const auto found = std::dynamic_pointer_cast<Module>(unet.named_modules("", false)[name]);
        if (!found) throw std::runtime_error{name + " is something else"};
        return *found;
    }

    const GoldenCases* golden;
    Unet unet;
};

/// A small U-Net of SD 1.5's kind: no addition, no attention in the last level but in the middle.
UnetOptions small_options(bool linear_projection) {
    UnetOptions options;
    options.levels = {{16, 2, 1, true}, {32, 2, 1, true}, {32, 2, 1, false}};
    options.cross_attention_dim = 12;
    options.norm_groups = 8;
    options.linear_projection = linear_projection;
    return options;
}

double distance(const at::Tensor& a, const at::Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

TEST(Unet, IsTheReferencesForwardsAndBackwards) {
    STRATA_NEED_CASES(golden, "unet_sdxl");
    GoldenUnet model{golden};
    for (const std::string& tag : golden.tags()) {
        SCOPED_TRACE(tag);
        GoldenCases::Named inputs;
        const at::Tensor sample = model.run(tag, inputs);
        golden.expect(tag, model.unet, {{"sample", sample}}, inputs);
    }
}

TEST(Unet, EveryStepIsTheReferences) {
    STRATA_NEED_CASES(golden, "unet_sdxl");
    GoldenUnet model{golden};
    const at::NoGradGuard no_gradients;
    const auto expect = [&](const std::string& name, const at::Tensor& tensor) {
        golden.expect_near("mid.c0." + name, tensor, 1e-5);
        return golden("mid.c0." + name);  // the next step begins at the reference's
    };
    const at::Tensor ids = golden("in.c0.time_ids");
    const at::Tensor id_features = expect("add_time_proj", unet_features(ids.flatten(), 8));
    const at::Tensor features = expect("time_proj", unet_features(golden("in.c0.timestep"), 16));
    at::Tensor time = expect("time_embedding", model.part<UnetEmbedding>("time_embedding").forward(features));
    time = time +
           expect("add_embedding", model.part<UnetEmbedding>("add_embedding")
                                       .forward(at::cat({golden("in.c0.text_embeds"), id_features.view({1, -1})}, 1)));
    const at::Tensor text = golden("in.c0.encoder_hidden_states");
    at::Tensor x = expect("conv_in", model.part<torch::nn::Conv2dImpl>("conv_in").forward(golden("in.c0.sample")));
    std::vector<at::Tensor> skips{x};
    x = expect("down_blocks.0.0", model.part<UnetDownBlock>("down_blocks.0").forward(x, time, text, skips));
    const at::Tensor residual = expect(
        "down_blocks.1.resnets.0", model.part<strata::Unit<ResnetBlock>>("down_blocks.1.resnets.0").forward(x, time));
    expect("down_blocks.1.attentions.0.0",
           model.part<SpatialTransformer>("down_blocks.1.attentions.0").forward(residual, text));
    x = expect("down_blocks.1.0", model.part<UnetDownBlock>("down_blocks.1").forward(x, time, text, skips));
    x = expect("down_blocks.2.0", model.part<UnetDownBlock>("down_blocks.2").forward(x, time, text, skips));
    x = expect("mid_block", model.part<UnetMidBlock>("mid_block").forward(x, time, text));
    for (const char* name : {"up_blocks.0", "up_blocks.1", "up_blocks.2"})
        x = expect(name, model.part<UnetUpBlock>(name).forward(x, time, text, skips));
    EXPECT_TRUE(skips.empty());
    expect("conv_norm_out", model.part<GroupNorm>("conv_norm_out").forward(x));
}

/// As norms of differences by norms. Measured: outputs 1.6 %, gradients of inputs, behind twice as many roundings, 4.0
/// to 6.9 %.
TEST(Unet, Bf16StaysWithinThreePercentOfFp32AndGradientsWithinTen) {
    STRATA_NEED_CASES(golden, "unet_sdxl");
    GoldenUnet model{golden};
    model.unet.to(at::kBFloat16);
    GoldenCases::Named inputs;
    const at::Tensor sample = model.run("c1", inputs);
    EXPECT_EQ(sample.scalar_type(), at::kFloat);
    EXPECT_LT(distance(sample.detach(), golden("out.c1.sample")), 0.03);
    (sample * golden("in.c1.loss_w.sample")).mean().backward();
    for (const auto& [name, input] : inputs)
        EXPECT_LT(distance(input.grad(), golden("grad.c1.in." + name)), 0.1) << name;
}

TEST(Unet, ParametersAreThoseThatAreListedWithoutIt) {
    UnetOptions with_addition = small_options(true);
    with_addition.levels = {{16, 2, 1, false}, {32, 4, 2, true}};
    with_addition.layers_per_block = 3;
    with_addition.addition_time_dim = 8;
    with_addition.addition_input_dim = 68;
    for (const UnetOptions& options : {small_options(false), small_options(true), with_addition}) {
        std::map<std::string, std::vector<std::int64_t>> listed;
        for (const UnetParameter& parameter : unet_parameters(options)) listed[parameter.name] = parameter.shape;
        Unet unet{options};
        std::map<std::string, std::vector<std::int64_t>> made;
        for (const auto& parameter : unet.named_parameters()) made[parameter.key()] = parameter.value().sizes().vec();
        EXPECT_EQ(made, listed);
        EXPECT_TRUE(unet.named_buffers().is_empty());
    }
}

/// SD 1.5's projections are convolutions 1x1, SDXL's are linear: the same numbers in another shape.
TEST(Unet, ConvolutionalProjectionsAreLinearOnesOfAnotherShape) {
    torch::manual_seed(1);
    Unet convolutional{small_options(false)};
    Unet linear{small_options(true)};
    {
        const at::NoGradGuard no_gradients;
        auto from = convolutional.named_parameters();
        for (auto& parameter : linear.named_parameters()) {
            const at::Tensor& other = from[parameter.key()];
            parameter.value().copy_(other.view(parameter.value().sizes()));
        }
    }
    const at::Tensor sample = at::randn({2, 4, 8, 12});
    const at::Tensor text = at::randn({2, 5, 12});
    const at::Tensor timestep = at::tensor({3, 700});
    const at::Tensor a = convolutional.forward(sample, timestep, text);
    const at::Tensor b = linear.forward(sample, timestep, text);
    EXPECT_TRUE(at::equal(a, b));
    a.sum().backward();
    b.sum().backward();
    auto gradients = linear.named_parameters();
    for (const auto& parameter : convolutional.named_parameters())
        EXPECT_TRUE(at::equal(parameter.value().grad().flatten(), gradients[parameter.key()].grad().flatten()))
            << parameter.key();
    // And the same as libtorch's own convolution.
    const auto projection = std::dynamic_pointer_cast<TokenProjection>(
        convolutional.named_modules("", false)["mid_block.attentions.0.proj_in"]);
    const at::Tensor x = at::randn({2, 32, 3, 5});
    auto parameters = projection->named_parameters();
    const at::Tensor expected = at::conv2d(x, parameters["weight"], parameters["bias"]);
    EXPECT_TRUE(at::allclose(projection->forward(x.flatten(2).transpose(1, 2)).transpose(1, 2).view_as(x), expected,
                             1e-5, 1e-6));
}

TEST(Unet, OddEdgesComeBackAsTheyWere) {
    torch::manual_seed(2);
    Unet unet{small_options(false)};
    for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{9, 7}, {1, 1}, {13, 8}, {6, 5}}) {
        const at::Tensor sample = at::randn({1, 4, h, w});
        const at::Tensor out = unet.forward(sample, at::tensor({500.0f}), at::randn({1, 3, 12}));
        EXPECT_EQ(out.sizes(), sample.sizes());
        EXPECT_TRUE(out.isfinite().all().item<bool>());
    }
}

TEST(Unet, WhatIsOfAnotherShapeIsRefused) {
    Unet unet{small_options(true)};
    UnetOptions options = small_options(true);
    options.addition_time_dim = 8;
    options.addition_input_dim = 68;
    Unet with_addition{options};
    const at::Tensor sample = at::randn({2, 4, 8, 8}), timestep = at::tensor({1, 2}), text = at::randn({2, 3, 12});
    const auto refusal = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), strata::Errc::bad_value);
            return error.what();
        }
        return "accepted";
    };
    const auto expect = [](const std::string& message, const std::string& words) {
        EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    expect(refusal([&] { unet.forward(sample.narrow(1, 0, 3), timestep, text); }), "sample of shape [2, 3, 8, 8]");
    expect(refusal([&] { unet.forward(sample, timestep.narrow(0, 0, 1), text); }), "takes one of shape [2]");
    expect(refusal([&] { unet.forward(sample, timestep, text.narrow(2, 0, 11)); }), "[2, S, 12]");
    expect(refusal([&] { with_addition.forward(sample, timestep, text); }), "pooled caption that is undefined");
    expect(refusal([&] {
               with_addition.forward(sample, timestep, text, {at::randn({2, 20}), at::randn({2, 5})});
           }),
           "[2, 6]");
}

TEST(Unet, OptionsThatDoNotFitAreToldTogether) {
    UnetOptions options = small_options(true);
    options.levels[1].channels = 36;
    options.levels[0].heads = 3;
    try {
        Unet{options};
        FAIL() << "accepted";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::bad_model_options);
        EXPECT_NE(error.problem().find("groups do not divide the channels of level 1: 36"), std::string::npos);
        EXPECT_NE(error.problem().find("heads do not divide the channels of level 0: 16"), std::string::npos);
    }
}

}  // namespace
