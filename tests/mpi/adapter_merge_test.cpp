// A trainer of ZeroStage<3> merges its adapters into weights that every rank has shards of: the model computes what it did with them beside it.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/core/error.hpp>

#include "adapter_runs.hpp"

namespace {

using namespace strata;

struct AdapterMerge : strata_test::AdapterRuns {
    /// Of the same batch on every rank, whatever their generators have given away.
    static torch::Tensor drawn(Flux& model) {
        const torch::NoGradGuard no_grad;
        const at::Tensor numbers = torch::arange(4 * 6 * 4 + 5 * 32 + 24, torch::kFloat).mul(0.7).sin();
        return model.forward(numbers.narrow(0, 0, 96).view({1, 4, 6, 4}), numbers.narrow(0, 96, 160).view({1, 5, 32}),
                             numbers.narrow(0, 256, 24).view({1, 24}), torch::full({1}, 0.5));
    }
    static double apart(const torch::Tensor& a, const torch::Tensor& b) {
        return ((a - b).abs().max() / b.abs().max()).item<double>();
    }

    template <class Kind, class... Policies>
    void expect_the_same(const std::string& name, const typename Kind::Options& kind) {
        SCOPED_TRACE(name);
        using Trained = Trainer<Flux, Adapter<Kind>, ZeroStage<3>, Policies...>;
        auto given = adapter_options<Trained>(3);
        given.adapter.kind = kind;
        train<Trained>(name, given, [&](Trained& trainer) {
            Flux& model = trainer.model();
            model.eval();
            const torch::Tensor unmerged = drawn(model);
            torch::Tensor plain;
            trainer.without_adapter([&] { plain = drawn(model); });
            EXPECT_GT(apart(plain, unmerged), 1e-3) << "it would not be seen";
            if (comm.world() > 1) {
                EXPECT_EQ(error_of([&] { trainer.adapted().merge(); }).code(), Errc::wrong_call_order);
            }
            EXPECT_TRUE(trainer.adapted().acts()->on);
            trainer.with_whole_model([&] {
                EXPECT_LT(apart(drawn(model), unmerged), 1e-6);
                trainer.adapted().merge();
                EXPECT_FALSE(trainer.adapted().acts()->on);
                EXPECT_LT(apart(drawn(model), unmerged), 1e-5);
            });
            EXPECT_LT(apart(drawn(model), unmerged), 1e-5) << "the shards keep what all ranks wrote";
            trainer.adapted().acts()->on = true;
            EXPECT_GT(apart(drawn(model), unmerged), 1e-3) << "on top of the merged weights they act once more";
        });
    }
};

TEST_F(AdapterMerge, OfShardedUnitsComputesWhatTheUnmergedDoes) {
    expect_the_same<Lora>("lora", {.rank = 3, .alpha = 2, .dropout = 0.1});
    expect_the_same<Lora>("dora", {.rank = 3, .use_dora = true});
    expect_the_same<Lokr>("lokr", {.rank = 2, .alpha = 1});
}

}  // namespace
