// Numbers that are not finite: who is named, what is skipped, and what is never published.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::SmallNet;
namespace fs = std::filesystem;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct NamedRows : strata_test::Rows {
    std::vector<std::string> samples;
};
/// SmallNet on rows that have names, and a parameter that no loss reaches.
struct NamingNet : SmallNet {
    using Batch = NamedRows;
    torch::Tensor unused = register_parameter("unused", torch::ones({3}));
    torch::Tensor loss(const Batch& batch) { return SmallNet::loss(batch); }
};

/// For fp16, in which libtorch's CPU kernels know no matrices.
struct HalfNet : torch::nn::Module {
    using Batch = NamedRows;
    torch::Tensor weight = register_parameter("weight", torch::full({3}, 0.1));
    torch::Tensor unused = register_parameter("unused", torch::ones({3}));
    torch::Tensor loss(const Batch& batch) {
        const torch::Tensor guess = (batch.x * weight.to(torch::kFloat)).sum(1, true);
        return torch::mse_loss(guess, batch.y);
    }
};

enum class Fault { loss, gradient };

struct TrainerNonFinite : strata_test::TrainerRuns {
    using MakeNamed = std::function<NamedRows(std::int64_t)>;

    /// Rows that only the generator decides about, called r<rank>_<micro-batch>.
    [[nodiscard]] MakeNamed rows(const std::vector<std::int64_t>& spoilt = {}, Fault fault = Fault::loss) const {
        return [=, rank = std::to_string(comm.rank()), last = is_last()](std::int64_t i) {
            NamedRows made{strata_test::some_rows(), {"r" + rank + "_" + std::to_string(i)}};
            if (!last || std::find(spoilt.begin(), spoilt.end(), i) == spoilt.end()) return made;
            if (fault == Fault::loss) made.y.fill_(nan);
            made.breaks_gradient = fault == Fault::gradient;
            return made;
        };
    }
    template <class... Policies>
    FitResult train(const std::string& name, const Options& given, const MakeNamed& make) {
        FitResult result;
        in_session(name, [&](Session& session) {
            Trainer<NamingNet, Policies...> trainer{session, NamingNet{}, given};
            result = trainer.fit(FunctionSource{make, 10, 8});
            calls = trainer.model().calls.template item<std::int64_t>();
            mean = trainer.model().mean.template item<float>();
        });
        return result;
    }
    void train_half(const std::string& name, Options given, const MakeNamed& make, float unused = 1) {
        given.engine.loss_scale.initial = 256;
        given.engine.update.weight_decay = 0;
        in_session(name, [&](Session& session) {
            HalfNet net;
            {
                const torch::NoGradGuard no_grad;
                net.unused.fill_(unused);
            }
            Trainer<HalfNet, ZeroStage<2>, Precision<Fp16>> trainer{session, std::move(net), given};
            trainer.fit(FunctionSource{make, 10, 8});
        });
    }
    [[nodiscard]] static Options skipping(std::int64_t steps, std::int64_t limit = 10) {
        Options given = options(steps);
        given.engine.on_non_finite = OnNonFinite::skip;
        given.engine.non_finite_limit = limit;
        return given;
    }
    [[nodiscard]] std::string of_last_rank(const std::string& micro_batch) const {
        const std::string rank = std::to_string(comm.world() - 1);
        return (comm.world() > 1 ? "; its samples on rank " + rank : "; its samples") + ": r" + rank + "_" +
               micro_batch;
    }
    [[nodiscard]] std::vector<std::int64_t> skips(const std::string& name) const {
        comm_barrier();
        std::vector<std::int64_t> found;
        for (const auto& m : train::read_metrics(root / name / "metrics.jsonl")) found.push_back(m.skipped);
        return found;
    }
    float mean = 0;
};

TEST_F(TrainerNonFinite, ALossNamesTheSamplesOfTheRankThatMetIt) {
    Options given = options(6);
    given.engine.gradient_accumulation_steps = 2;
    const Error error = error_of([&] { train<ZeroStage<2>>("run", given, rows({5})); });
    EXPECT_EQ(error.code(), Errc::non_finite);
    EXPECT_EQ(error.problem(), "the loss of step 3 is not finite" + of_last_rank("5") + "; step 2 is saved in " +
                                   checkpoint("run", 2).string());
}

TEST_F(TrainerNonFinite, AGradientNamesTheSamplesOfAllRanks) {
    const Error error = error_of([&] { train<ZeroStage<3>>("run", options(6), rows({3}, Fault::gradient)); });
    EXPECT_EQ(error.code(), Errc::non_finite);
    for (int rank = 0; rank < comm.world(); ++rank)
        EXPECT_NE(error.problem().find("r" + std::to_string(rank) + "_3"), std::string::npos) << error.what();
    EXPECT_NE(error.problem().find("the gradient norm of step 4 is not finite; its samples"), std::string::npos)
        << error.what();
    EXPECT_NE(error.problem().find("; step 3 is saved in "), std::string::npos) << error.what();
}

TEST_F(TrainerNonFinite, StepsAreSkippedAndNothingElseIsAnother) {
    train<ZeroStage<2>>("whole", options(6), rows());
    const auto calls_in_all = calls;
    const float mean_in_all = mean;
    for (const Fault fault : {Fault::loss, Fault::gradient}) {
        const std::string name = fault == Fault::loss ? "loss" : "gradient";
        EXPECT_EQ((train<ZeroStage<2>>(name, skipping(6), rows({2, 3}, fault))).step, 6);
        expect_said("step 3 is skipped and tried again: its " +
                    std::string{fault == Fault::loss ? "loss" : "gradient norm"} + " is not finite; its samples");
        EXPECT_EQ(losses(name), losses("whole")) << "rows, noise and weights are those of a run without the two";
        EXPECT_EQ(skips(name), (std::vector<std::int64_t>{0, 0, 2, 0, 0, 0}));
        EXPECT_EQ(calls, calls_in_all) << "and so are buffers, which a NaN would not leave";
        EXPECT_EQ(mean, mean_in_all);
        EXPECT_EQ(text_of(checkpoint(name, 6) / "model.safetensors"),
                  text_of(checkpoint("whole", 6) / "model.safetensors"));
        const auto manifest = checkpoint::read_manifest(checkpoint(name, 6) / "manifest.json");
        EXPECT_EQ(manifest.samples, 8 * 8 * comm.world()) << "samples of skipped steps are used up";
    }
    EXPECT_EQ(text_of(root / "whole/metrics.jsonl").find("skipped"), std::string::npos);
}

TEST_F(TrainerNonFinite, ALossIsSkippedAtEveryPrecision) {
    train<ZeroStage<3>, Precision<Bf16>>("bf16 whole", options(4), rows());
    train<ZeroStage<3>, Precision<Bf16>>("bf16", skipping(4), rows({1}));
    EXPECT_EQ(losses("bf16"), losses("bf16 whole"));
    train_half("fp16 whole", skipping(4), rows());
    train_half("fp16", skipping(4), rows({1}));
    EXPECT_EQ(losses("fp16"), losses("fp16 whole")) << "no loss scale mends a loss, and none is changed for it";
    expect_said("its loss is not finite");
}

TEST_F(TrainerNonFinite, TheLimitCountsTriesInARow) {
    EXPECT_EQ((train<ZeroStage<2>>("apart", skipping(6, 2), rows({1, 2, 5, 6}))).step, 6);
    const Error error = error_of([&] { train<ZeroStage<2>>("run", skipping(6, 2), rows({1, 2, 3})); });
    EXPECT_EQ(error.code(), Errc::non_finite);
    EXPECT_EQ(error.problem(), "the loss of step 2 is not finite, after 2 tries that were skipped for the same reason" +
                                   of_last_rank("3") + "; step 1 is saved in " + checkpoint("run", 1).string());
    EXPECT_NE(error.fix().find("non_finite_limit"), std::string::npos) << error.what();
}

TEST_F(TrainerNonFinite, ARunResumesBehindSkippedSteps) {
    train<ZeroStage<2>>("whole", skipping(6), rows({2}));
    train<ZeroStage<2>>("run", skipping(3), rows({2}));
    train<ZeroStage<2>>("run", skipping(6), rows({2}));
    EXPECT_EQ(losses("run"), losses("whole"));
    EXPECT_EQ(skips("run"), skips("whole"));
}

// ---- weights -----------------------------------------------------------------------------------------------------------------

TEST_F(TrainerNonFinite, WeightsThatAnUpdateMadeInfiniteAreNotPublishedAndTheirParameterIsNamed) {
    Options given = options(4);
    given.checkpoint_every = 1;
    given.schedule = optim::Schedule::of([] {
        struct Rate {
            [[nodiscard]] double at(std::int64_t step) const { return step < 2 ? 1e-2 : 3e38; }
        };
        return Rate{};
    }());
    // Times 3e38 is too much for a float, while the gradient norm is finite all the way.
    given.engine.update.weight_decay = 100;
    const Error error = error_of([&] { train<ZeroStage<2>>("run", given, rows()); });
    EXPECT_EQ(error.code(), Errc::non_finite) << error.what();
    EXPECT_NE(error.problem().find(
                  "the weights are not finite, and such a checkpoint is never published: unused; step 3 is not saved"),
              std::string::npos)
        << error.what();
    EXPECT_NE(
        error.problem().find("step 3 is not saved, and the newest checkpoint is " + checkpoint("run", 2).string()),
        std::string::npos)
        << error.what();
    EXPECT_TRUE(fs::exists(checkpoint("run", 2) / "manifest.json"));
    EXPECT_FALSE(fs::exists(checkpoint("run", 3)));
}

TEST_F(TrainerNonFinite, AWeightThatItsPrecisionCannotHoldIsNotPublished) {
    const Error error = error_of([&] { train_half("run", options(2), rows(), 1e5F); });  // finite as a master
    EXPECT_EQ(error.code(), Errc::non_finite) << error.what();
    EXPECT_NE(error.problem().find("never published: unused does not fit into the Half of model.safetensors"),
              std::string::npos)
        << error.what();
    EXPECT_FALSE(fs::exists(checkpoint("run", 2)));
}

// ---- batches of different sizes --------------------------------------------------------------------------------------------------

TEST_F(TrainerNonFinite, BatchesThatDifferByRankAreRefusedOnAllBeforeAnythingIsWritten) {
    if (comm.world() == 1) return;
    const std::string last = std::to_string(comm.world() - 1);
    const auto refused = [&](std::int64_t epoch, std::int64_t samples) {
        return error_of([&] {
            in_session("run", [&](Session& session) {
                Trainer<SmallNet, ZeroStage<2>> trainer{session, SmallNet{}, options(2)};
                trainer.fit(FunctionSource{plain, is_last() ? epoch : 10, is_last() ? samples : 8});
            });
        });
    };
    const Error samples = refused(10, 4);
    EXPECT_EQ(samples.code(), Errc::uneven_batches);
    EXPECT_EQ(samples.problem(), "the source's samples_per_micro_batch is 4 on rank " + last +
                                     " and 8 on rank 0: every micro-batch counts the same in the mean of a step");
    const Error epochs = refused(9, 8);
    EXPECT_EQ(epochs.code(), Errc::uneven_batches);
    EXPECT_EQ(epochs.problem(), "the source's micro_batches_per_epoch is 9 on rank " + last +
                                    " and 10 on rank 0: ranks go through an epoch together");
    EXPECT_FALSE(fs::exists(root / "run/metrics.jsonl"));
}

}  // namespace
