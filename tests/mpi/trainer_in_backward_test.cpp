// Runs with gradients on a tier, and with the update in backward: nothing tells them from a plain run but their memory; and
// what becomes of steps that fail.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::Rows;
using strata_test::SmallNet;
using strata_test::some_rows;
namespace fs = std::filesystem;

using AtOnce = Update<InBackward>;

struct TrainerInBackward : strata_test::TrainerRuns {
    void SetUp() override {
        strata_test::TrainerRuns::SetUp();
        on_disk([&] { fs::create_directories(root); });
    }
    /// Without a norm to clip to: what both can do.
    [[nodiscard]] Options unclipped(std::int64_t steps) const {
        Options given = options(steps);
        given.engine.max_grad_norm = 0;
        given.engine.tiers.nvme_path = root;
        return given;
    }
    void expect_the_run(const std::string& name, const std::string& whole, int step = 8) {
        SCOPED_TRACE(name);
        comm_barrier();
        const auto found = train::read_metrics(root / name / "metrics.jsonl");
        const auto wanted = train::read_metrics(root / whole / "metrics.jsonl");
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].loss, wanted[i].loss) << i;
            EXPECT_EQ(found[i].grad_norm, wanted[i].grad_norm) << i;
        }
        for (const char* file : {"model.safetensors", "model_ema.safetensors"})
            EXPECT_EQ(text_of(checkpoint(name, step) / file), text_of(checkpoint(whole, step) / file)) << file;
    }
    /// Rows of which the fifth micro-batch is bad on the last rank.
    enum class Fault { none, nan, gradient, store };
    [[nodiscard]] Make faulty(Fault fault) const {
        return [=, last = is_last()](std::int64_t i) {
            Rows rows = some_rows();
            if (i != 4 || !last) return rows;
            if (fault == Fault::nan) rows.y.fill_(std::numeric_limits<float>::quiet_NaN());
            if (fault == Fault::store) throw Error{Errc::store_unreachable, "the bucket went away", "look for it"};
            rows.breaks_gradient = fault == Fault::gradient;
            return rows;
        };
    }
};

TEST_F(TrainerInBackward, ItsRunsAreThoseOfTheUpdateAfterBackward) {
    run<ZeroStage<2>, Ema<>>("after", unclipped(8));
    run<ZeroStage<0>, Ema<>, AtOnce>("replicated", unclipped(8));
    run<AtOnce, ZeroStage<2>, Ema<>, OffloadTarget<Nvme>>("disk", unclipped(8));
    run<ZeroStage<3>, AtOnce, Ema<>, Recompute<Blocks>>("units", unclipped(8));
    for (const char* name : {"replicated", "disk", "units"}) expect_the_run(name, "after");
}

TEST_F(TrainerInBackward, RunsWithGradientsOnATierAreThoseWithout) {
    Options eight = options(8);  // with a norm to clip to
    eight.engine.gradient_accumulation_steps = 2;
    eight.engine.tiers.nvme_path = root;
    run<ZeroStage<2>, Ema<>>("plain", eight);
    run<ZeroStage<2>, Ema<>, OffloadTarget<Nvme, Gradients>>("disk", eight);
    run<ZeroStage<3>, Ema<>, OffloadTarget<Cpu, OptimizerState, Gradients>>("host", eight);
    for (const char* name : {"disk", "host"}) expect_the_run(name, "plain");
}

TEST_F(TrainerInBackward, ItResumesWithTheBitsOfARunThatNeverStopped) {
    run<ZeroStage<2>, Ema<>>("after", unclipped(8));
    run<ZeroStage<3>, Ema<>, AtOnce>("stopped", unclipped(4));
    run<ZeroStage<2>, Ema<>, AtOnce, OffloadTarget<Nvme>>("stopped", unclipped(8));
    expect_said("resuming from " + checkpoint("stopped", 4).string());
    expect_the_run("stopped", "after");
}

TEST_F(TrainerInBackward, AFailureThatTheFirstBucketShowsCostsNothing) {
    run<ZeroStage<2>, Ema<>>("after", unclipped(8));
    const auto expect = [&]<class... Policies>(const std::string& name, Fault fault, Errc code) {
        SCOPED_TRACE(name);
        const Error error = error_of([&] { run<Policies..., Ema<>, AtOnce>(name, unclipped(8), faulty(fault)); });
        EXPECT_EQ(error.code(), code);
        EXPECT_NE(error.problem().find("; step 4 is saved in " + checkpoint(name, 4).string()), std::string::npos)
            << error.what();
        run<Policies..., Ema<>, AtOnce>(name, unclipped(8));
        expect_the_run(name, "after");
    };
    expect.operator()<ZeroStage<2>>("loss2", Fault::nan, Errc::non_finite);
    expect.operator()<ZeroStage<3>>("loss3", Fault::nan, Errc::non_finite);
    expect.operator()<ZeroStage<2>>("store", Fault::store, Errc::store_unreachable);
}

TEST_F(TrainerInBackward, AFailureHalfWayGoesBackToTheNewestCheckpoint) {
    run<ZeroStage<2>, Ema<>>("after", unclipped(8));
    Options eight = unclipped(8);
    eight.checkpoint_every = 2;
    eight.engine.bucket_numel = 100;  // the layer whose gradient breaks is the last one that is updated
    const Error error = error_of([&] { run<ZeroStage<2>, Ema<>, AtOnce>("half", eight, faulty(Fault::gradient)); });
    EXPECT_EQ(error.code(), Errc::non_finite);
    EXPECT_EQ(error.problem().find("the gradient norm of step 5 is not finite; "), 0U) << error.what();
    EXPECT_NE(error.problem().find("step 4 is saved in"), std::string::npos) << "before it failed: " << error.what();
    run<ZeroStage<2>, Ema<>, AtOnce>("half", eight);
    expect_said("resuming from " + checkpoint("half", 4).string());
    expect_the_run("half", "after");

    eight.checkpoint_every = 3;
    const Error lost = error_of([&] { run<ZeroStage<2>, Ema<>, AtOnce>("lost", eight, faulty(Fault::gradient)); });
    EXPECT_NE(lost.problem().find("step 4 could not be saved (the update of its weights broke off half way)"),
              std::string::npos)
        << lost.what();
    run<ZeroStage<2>, Ema<>, AtOnce>("lost", eight);
    expect_said("resuming from " + checkpoint("lost", 3).string());
    expect_the_run("lost", "after");
}

TEST_F(TrainerInBackward, ANormToClipToIsRefusedBeforeAnythingIsWritten) {
    const Error error = error_of([&] { run<ZeroStage<2>, AtOnce>("refused", options(8)); });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_NE(error.problem().find("max_grad_norm is 0.5"), std::string::npos) << error.what();
    EXPECT_FALSE(fs::exists(root / "refused"));
    Options looks = unclipped(8);
    looks.gradient_norms.every = 1;
    const Error gone = error_of([&] { run<ZeroStage<2>, AtOnce>("refused", looks); });
    EXPECT_EQ(gone.code(), Errc::bad_value);
    EXPECT_NE(gone.problem().find("gradient_norms.every is 1"), std::string::npos) << gone.what();
    EXPECT_FALSE(fs::exists(root / "refused"));
}

}  // namespace
