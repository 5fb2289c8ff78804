// LoRA over the references' tiny Flux and SDXL, and over weights made here: the same bits at every stage and tier, over a plain base and quantised ones.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lora.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/flux.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/zero/codecs/int8.hpp>
#include <strata/zero/codecs/nf4.hpp>
#include <strata/zero/memory_forecast.hpp>
#include <strata/zero/parameters.hpp>

#include "../unit/models/golden_cases.hpp"
#include "shared_folder.hpp"
#include "toy_engines.hpp"

namespace {

using namespace strata;
using zero::MemoryKind;
using zero::Place;

/// A model whose layers have adapters, and its loss of a batch that the generator makes.
struct Adapted {
    std::shared_ptr<torch::nn::Module> model;
    std::function<at::Tensor()> loss;
    std::int64_t trained = 0;  // elements
};
using Make = std::function<Adapted()>;
using Fill = std::function<void(torch::nn::Module&)>;

template <class Model>
Adapted adapted(const std::shared_ptr<Model>& model, const Fill& fill, std::function<at::Tensor()> loss) {
    if (fill) fill(*model);
    model->train();
    const auto done = adapters::adapt<Lora>(*model, {.rank = 4, .alpha = 2}, {"to_q", "to_k", "to_v", "to_out.0"});
    return {model, std::move(loss), done.numel()};
}

/// Sizes of golden/flux.json.
Adapted flux(const Fill& fill) {
    torch::manual_seed(31);
    const auto model = std::make_shared<models::Flux>(models::FluxOptions{.token_values = 16,
                                                                          .output_values = 16,
                                                                          .text_width = 32,
                                                                          .pooled_width = 24,
                                                                          .heads = 4,
                                                                          .rotary_axes = {4, 6, 6},
                                                                          .double_blocks = 2,
                                                                          .single_blocks = 2});
    return adapted(model, fill, [model = model.get()] {
        models::FluxBatch batch;
        batch.latents_BCHW = at::randn({2, 4, 4, 6});
        batch.text_BTE = at::randn({2, 5, 32});
        batch.pooled_BE = at::randn({2, 24});
        return model->loss(batch);
    });
}
/// Sizes of golden/unet_sdxl.json.
Adapted sdxl(const Fill& fill) {
    torch::manual_seed(32);
    models::UnetOptions options;
    options.levels = {{16, 2, 1, false}, {32, 4, 1, true}, {32, 4, 2, true}};
    options.cross_attention_dim = 24;
    options.norm_groups = 8;
    options.linear_projection = true;
    options.addition_time_dim = 8;
    options.addition_input_dim = 68;
    const auto model = std::make_shared<models::SdxlUnet>(options);
    return adapted(model, fill, [model = model.get()] {
        models::UnetBatch batch;
        batch.latents_BCHW = at::randn({1, 4, 8, 8});
        batch.text_BSE = at::randn({1, 3, 24});
        batch.pooled_BP = at::randn({1, 20});
        batch.time_ids_B6 = at::full({1, 6}, 64.0);
        return model->loss(batch);
    });
}

/// Elements of the largest unit.
std::int64_t largest_unit(const torch::nn::Module& model) {
    std::int64_t largest = 0;
    for (const auto& module : model.modules(false)) {
        if (dynamic_cast<const zero::UnitBase*>(module.get()) == nullptr) continue;
        std::int64_t numel = 0;
        for (const at::Tensor& parameter : module->parameters()) numel += parameter.numel();
        largest = std::max(largest, numel);
    }
    return largest;
}

struct Trace {
    std::vector<double> losses, norms;
    std::vector<float> adapters;
    bool operator==(const Trace&) const = default;
};

struct AdapterStages : testing::Test {
    comm::MpiComm comm;
    strata_test::SharedFolder<comm::MpiComm> disk{comm};

    /// Three steps. At every stage the meter has what was foreseen, and state of adapters alone.
    template <class... Policies>
    Trace train(const Make& make) {
        SCOPED_TRACE(__PRETTY_FUNCTION__);
        const Adapted tuned = make();
        using Composed = strata::Setup<Policies...>;
        typename strata_test::EngineOf<Policies...>::Options options;
        options.bucket_numel = 3000;
        options.max_grad_norm = 1.0;
        options.tiers.nvme_path = disk.path;
        const auto forecast = zero::forecast_memory<Composed>(zero::parameters_of(*tuned.model),
                                                              zero::ForecastFor{.world = comm.world()}, options);
        const std::int64_t largest = largest_unit(*tuned.model);
        strata_test::EngineOf<Policies...> engine{comm, zero::parameters_of(*tuned.model), options};
        for (const MemoryKind kind : {MemoryKind::parameters, MemoryKind::state}) {
            for (const Place place : {Place::device, Place::host, Place::disk})
                EXPECT_EQ(engine.memory().of(kind, place).now, forecast.made_of(kind)[place])
                    << zero::name_of(kind) << " on " << zero::name_of(place);
        }
        std::int64_t state = 0, elements = 0;
        for (const Place place : {Place::device, Place::host, Place::disk})
            state += engine.memory().of(MemoryKind::state, place).now;
        for (const zero::ParameterInfo& parameter : engine.layout()) {
            EXPECT_NE(parameter.name.find(".lora."), std::string::npos) << parameter.name;
            elements += std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1},
                                        std::multiplies<std::int64_t>{});
        }
        EXPECT_EQ(elements, tuned.trained);
        const std::int64_t of_one = Composed::sharding::stage == 0 ? 1 : comm.world();
        EXPECT_GE(of_one * state, 8 * tuned.trained) << "two numbers of AdamW for each";
        Trace trace;
        for (std::uint64_t step = 0; step < 3; ++step) {
            torch::manual_seed(100 * step + static_cast<std::uint64_t>(comm.rank()));
            const at::Tensor loss = tuned.loss();
            trace.losses.push_back(loss.item<double>());
            engine.backward(loss);
            for (const auto& item : tuned.model->named_parameters()) {
                if (item.key().find(".lora.") == std::string::npos) {
                    EXPECT_FALSE(item.value().grad().defined()) << item.key();
                }
            }
            trace.norms.push_back(engine.step(1e-2).grad_norm);
        }
        const std::int64_t gathered = engine.memory().of(MemoryKind::gathered, Place::device).peak;
        EXPECT_LE(gathered, forecast.most_of(MemoryKind::gathered)[Place::device]);
        // Two units in fp32, padded, and one more's packed bytes, which are at most what a byte and scales take.
        EXPECT_LE(gathered, 2 * 4 * (largest + 256) + 2 * largest) << "never the whole base";
        engine.with_whole_model([&] {
            for (const auto& item : tuned.model->named_parameters()) {
                if (item.key().find(".lora.") == std::string::npos) continue;
                const at::Tensor values = item.value().detach().contiguous();
                trace.adapters.insert(trace.adapters.end(), values.data_ptr<float>(),
                                      values.data_ptr<float>() + values.numel());
            }
        });
        return trace;
    }

    using OnDisk = OffloadTarget<Nvme, OptimizerState, Parameters>;
    using InRam = OffloadTarget<Cpu, OptimizerState, Parameters>;

    /// `quantised` as far from `plain` as stated: in each loss, through the plain one.
    static void expect_near(const Trace& quantised, const Trace& plain, double bound) {
        EXPECT_NE(quantised, plain);
        for (std::size_t i = 0; i < plain.losses.size(); ++i)
            EXPECT_LT(std::abs(quantised.losses[i] - plain.losses[i]), bound * plain.losses[i]) << i;
    }
    void expect_same_bits(const Make& make) {
        const Trace zero = train<ZeroStage<0>>(make);
        ASSERT_EQ(zero.losses.size(), 3U);
        EXPECT_EQ(zero, train<ZeroStage<1>>(make));
        EXPECT_EQ(zero, train<ZeroStage<2>>(make));
        EXPECT_EQ(zero, train<ZeroStage<3>>(make));
        EXPECT_EQ(zero, (train<ZeroStage<3>, OnDisk>(make)));

        const Trace eight = train<ZeroStage<3>, FrozenWeights<Int8>, Adapter<Lora>>(make);
        EXPECT_EQ(eight, (train<ZeroStage<3>, FrozenWeights<Int8>, Adapter<Lora>, OnDisk>(make)));
        expect_near(eight, zero, 0.01);
        const Trace four = train<ZeroStage<3>, FrozenWeights<Nf4>, Adapter<Lora>>(make);
        EXPECT_EQ(four, (train<ZeroStage<3>, FrozenWeights<Nf4>, Adapter<Lora>, InRam>(make)));
        expect_near(four, zero, 0.1);
    }
};

TEST_F(AdapterStages, FluxLearnsTheSameBits) {
    expect_same_bits([] { return flux({}); });
}
TEST_F(AdapterStages, SdxlLearnsTheSameBits) {
    expect_same_bits([] { return sdxl({}); });
}
TEST_F(AdapterStages, TheReferencesFluxLearnsTheSameBits) {
    STRATA_NEED_CASES(golden, "flux");
    expect_same_bits([&] { return flux([&](torch::nn::Module& model) { golden.fill(model); }); });
}
TEST_F(AdapterStages, TheReferencesSdxlLearnsTheSameBits) {
    STRATA_NEED_CASES(golden, "unet_sdxl");
    expect_same_bits([&] { return sdxl([&](torch::nn::Module& model) { golden.fill(model); }); });
}

}  // namespace
