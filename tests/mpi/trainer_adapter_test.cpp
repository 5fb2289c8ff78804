// Adapters under every stage: the same bits, and nothing but adapters has gradients and state.

#include <cstdint>
#include <string>
#include <vector>

#include "adapter_runs.hpp"

namespace {

using namespace strata;
using zero::MemoryKind;
using zero::Place;

struct TrainerAdapter : strata_test::AdapterRuns {
    struct Trace {
        std::vector<double> losses;
        std::vector<float> weights;
        friend bool operator==(const Trace&, const Trace&) = default;
    };

    template <class... Policies>
    Trace trace(const std::string& name, const MakeFlux& make = strata_test::some_latents) {
        using Trained = Trainer<Flux, Adapter<Lora>, Policies...>;
        Trace found;
        train<Trained>(
            name, adapter_options<Trained>(4), [&](Trained& t) { found.weights = weights_of(t); }, make);
        found.losses = losses(name);
        return found;
    }
    /// Of every second micro-batch, on odd ranks the others, the target is what the model predicts without adapter.
    [[nodiscard]] MakeFlux sometimes_regular() const {
        return [this](std::int64_t micro_batch) {
            auto batch = strata_test::some_latents(micro_batch);
            batch.is_regularisation_data = (micro_batch + comm.rank()) % 2 != 0;
            return batch;
        };
    }
};

TEST_F(TrainerAdapter, StagesTiersAndRecomputationGiveTheSameBits) {
    const Trace zero = trace<ZeroStage<0>>("s0");
    ASSERT_EQ(zero.losses.size(), 4U);
    EXPECT_EQ(zero, trace<ZeroStage<1>>("s1"));
    EXPECT_EQ(zero, trace<ZeroStage<2>>("s2"));
    EXPECT_EQ(zero, trace<ZeroStage<3>>("s3"));
    EXPECT_EQ(zero, (trace<ZeroStage<3>, Recompute<Blocks>>("again")));
    EXPECT_EQ(zero, (trace<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>("disk")));
}

TEST_F(TrainerAdapter, RanksMayHaveRegularisationDataAtDifferentTimes) {
    const Trace zero = trace<ZeroStage<0>>("s0", sometimes_regular());
    EXPECT_NE(zero, trace<ZeroStage<0>>("plain"));
    EXPECT_EQ(zero, trace<ZeroStage<3>>("s3", sometimes_regular()));
    EXPECT_EQ(zero, (trace<ZeroStage<3>, Recompute<Blocks>>("again", sometimes_regular())));
}

TEST_F(TrainerAdapter, WhatItPredictsWithoutItIsRightAtFirstAndPullsItBackLater) {
    using Trained = Trainer<Flux, Adapter<Lora>, ZeroStage<3>>;
    auto given = adapter_options<Trained>(3);
    given.adapter.kind.dropout = 0;
    const auto regular = [](std::int64_t micro_batch) {
        auto batch = strata_test::some_latents(micro_batch);
        batch.is_regularisation_data = true;
        return batch;
    };
    train<Trained>("run", given, {}, regular);
    EXPECT_EQ(losses("run"), (std::vector<double>{0, 0, 0})) << "an adapter begins by changing nothing";
}

TEST_F(TrainerAdapter, BaseWeightsStayAsTheyWereAndHaveNoState) {
    using Trained = Trainer<Flux, Adapter<Lora>, ZeroStage<3>>;
    const auto given = adapter_options<Trained>(3);
    train<Trained>("run", given, [&](Trained& trainer) {
        torch::manual_seed(1);
        const Flux as_made{strata_test::small_flux_options()};
        std::int64_t base = 0, adapters = 0;
        trainer.with_whole_model([&] {
            const auto made = as_made.named_parameters();
            for (const auto& item : trainer.model().named_parameters()) {
                if (const auto* const before = made.find(item.key())) {
                    EXPECT_TRUE(torch::equal(*before, item.value())) << item.key();
                    EXPECT_FALSE(item.value().requires_grad()) << item.key();
                    base += item.value().numel();
                } else {
                    EXPECT_NE(item.key().find(".lora."), std::string::npos) << item.key();
                    adapters += item.value().numel();
                }
            }
        });
        EXPECT_EQ(adapters, trainer.adapted().numel());
        const auto bytes = [&](MemoryKind kind) { return trainer.memory().of(kind, Place::device).now; };
        std::printf("base %lld adapters %lld parameters %lld state %lld gradients %lld\n", (long long)base,
                    (long long)adapters, (long long)bytes(MemoryKind::parameters), (long long)bytes(MemoryKind::state),
                    (long long)bytes(MemoryKind::gradients));
    });
}

TEST_F(TrainerAdapter, WithoutAdapterIsTheFrozenModel) {
    using Trained = Trainer<Flux, Adapter<Lora>, ZeroStage<2>, Ema<>>;
    const auto given = adapter_options<Trained>(3);
    train<Trained>("run", given, [&](Trained& trainer) {
        torch::manual_seed(1);
        Flux as_made{strata_test::small_flux_options()};
        trainer.model().eval();
        as_made.eval();
        const torch::NoGradGuard no_grad;
        const auto batch = strata_test::some_latents(0);
        const auto drawn = [&](Flux& model) {
            return model.forward(batch.latents_BCHW, batch.text_BTE, batch.pooled_BE, torch::full({2}, 0.5));
        };
        const auto frozen = drawn(as_made);
        EXPECT_FALSE(torch::equal(drawn(trainer.model()), frozen));
        trainer.without_adapter([&] { EXPECT_TRUE(torch::equal(drawn(trainer.model()), frozen)); });
        const auto own = drawn(trainer.model());
        EXPECT_FALSE(torch::equal(own, frozen)) << "it is on again";
        trainer.with_average([&] {
            EXPECT_FALSE(torch::equal(drawn(trainer.model()), own));
            EXPECT_FALSE(torch::equal(drawn(trainer.model()), frozen));
        });
        trainer.adapted().merge();
        EXPECT_TRUE(torch::allclose(drawn(trainer.model()), own, 1e-5, 1e-5));
    });
}

TEST_F(TrainerAdapter, UpdatesInBackward) {
    using Waits = Trainer<Flux, Adapter<Lora>, ZeroStage<3>>;
    using Goes = Trainer<Flux, Adapter<Lora>, ZeroStage<3>, Update<InBackward>>;
    auto waits = adapter_options<Waits>(3);
    auto goes = adapter_options<Goes>(3);
    waits.engine.max_grad_norm = goes.engine.max_grad_norm = 0;
    train<Waits>("waits", waits);
    train<Goes>("goes", goes);
    EXPECT_EQ(losses("waits"), losses("goes"));
}

}  // namespace
