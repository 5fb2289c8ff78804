// What webhooks hear of a whole run: its begin, its steps, its checkpoints, its end, and what went wrong on which rank; and no bit changes.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/health/health_monitor.hpp>
#include <strata/train/run_events.hpp>
#include <strata/train/session.hpp>

#include "../support/fake_http_server.hpp"
#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;

struct TrainerEvents : strata_test::TrainerRuns {
    /// Each rank has a server of its own, so that it knows what it has told itself.
    FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(200); }};

    [[nodiscard]] std::vector<webhooks::WebhookOptions> to_server() const {
        webhooks::WebhookOptions options;
        options.name = "raw";
        options.url = server.url();
        options.allow_private_addresses = true;
        options.stage_interval_seconds = options.status_interval_seconds = 0;
        options.closing_seconds = 600;
        return {options};
    }
    void run_with_events(const std::string& name, const Make& make = plain) {
        in_session(name, [&](Session& session) {
            session.events().set(to_server());
            session.output();
            session.phases()("pictures listed", 10, 10);
            try {
                Options given = options(4);
                given.checkpoint_every = 2;
                given.exported.weights = true;
                Trainer<strata_test::SmallNet, ZeroStage<2>> trainer{session, strata_test::SmallNet{}, given};
                static_cast<void>(trainer.fit(FunctionSource{make, 10, 8}));
            } catch (...) {
                session.events().failed(std::current_exception());
                throw;
            }
        });
    }
    [[nodiscard]] std::vector<nlohmann::json> heard() const {
        std::vector<nlohmann::json> all;
        for (const FakeRequest& request : server.seen()) all.push_back(nlohmann::json::parse(request.body));
        return all;
    }
    /// "checkpoint_save running" and so on, in their order.
    [[nodiscard]] std::vector<std::string> stages() const {
        std::vector<std::string> all;
        for (const auto& event : heard())
            if (event["type"] == "lifecycle.stage")
                all.push_back(event["stage"]["key"].get<std::string>() + " " +
                              event["stage"]["status"].get<std::string>());
        return all;
    }
    [[nodiscard]] int count_of(const std::string& type) const {
        int count = 0;
        for (const auto& event : heard()) count += event["type"] == type ? 1 : 0;
        return count;
    }
};

TEST_F(TrainerEvents, AWholeRunIsToldByRankZeroAndChangesNoBit) {
    run_with_events("told");
    if (comm.rank() == 0) {
        EXPECT_GE(count_of("training.status"), 1);
        EXPECT_EQ(count_of("training.checkpoint"), 2);
        EXPECT_EQ(count_of("error"), 0);
        const auto all = heard();
        ASSERT_GE(all.size(), 5U);
        EXPECT_EQ(all.back()["stage"]["key"], "training_complete");
        EXPECT_EQ(stages(),
                  (std::vector<std::string>{
                      "init_data_backend running", "init_data_backend completed", "init_load_base_model running",
                      "init_load_base_model completed", "init_prepare_models completed", "checkpoint_save running",
                      "checkpoint_save completed", "checkpoint_save running", "checkpoint_save completed",
                      "model_save running", "model_save completed", "training_complete completed"}));
        EXPECT_EQ(all.back()["world"], comm.world());
        for (const auto& event : all) {
            EXPECT_EQ(event["job_id"], all.front()["job_id"]);
            if (event["type"] == "training.checkpoint") {
                const std::string path = event["checkpoint"]["path"];
                EXPECT_TRUE(std::filesystem::exists(path)) << path;
                EXPECT_EQ(event["checkpoint"]["is_final"], event["checkpoint"]["label"] == "step 4");
            }
        }
    } else {
        EXPECT_EQ(server.requests(), 0);
    }
    comm_barrier();
    EXPECT_FALSE(std::filesystem::exists(root / "told" / "webhooks")) << "the queue is empty";
    Options given = options(4);
    given.checkpoint_every = 2;
    run<ZeroStage<2>>("silent", given);
    EXPECT_EQ(losses("told"), losses("silent"));
}

TEST_F(TrainerEvents, AFailureIsToldByEveryRankThatHasIt) {
    const Error error = error_of([&] {
        run_with_events("fails", [](std::int64_t micro_batch) {
            auto rows = strata_test::some_rows();
            if (micro_batch == 2) rows.breaks_forward = true;
            return rows;
        });
    });
    EXPECT_NE(error.code(), Errc{});
    ASSERT_EQ(count_of("error"), 1);
    for (const auto& event : heard()) {
        if (event["type"] != "error") continue;
        EXPECT_EQ(event["rank"], comm.rank());
        EXPECT_EQ(event["severity"], "error");
        EXPECT_NE(event["message"].get<std::string>().find("the model has no answer"), std::string::npos) << event;
    }
    EXPECT_EQ(stages().back(), "training_abort failed");
}

TEST_F(TrainerEvents, ACallThatFailsOnOneGpuIsToldWithTheTypeOfItsException) {
    const bool is_last = comm.rank() == comm.world() - 1;
    const Error error = error_of([&] {
        in_session("faulty", [&](Session& session) {
            session.events().set(to_server());
            try {
                health::GpuReading healthy;
                healthy.name = "NVIDIA H100";
                session.watch_health({}, health::HealthSources{.gpu = [healthy] { return std::optional{healthy}; }},
                                     "GPU 0 (NVIDIA H100)");
                Trainer<strata_test::SmallNet, ZeroStage<2>> trainer{session, strata_test::SmallNet{}, options(4)};
                static_cast<void>(trainer.fit(FunctionSource{
                    [&](std::int64_t micro_batch) {
                        if (is_last && micro_batch == 2)
                            throw std::out_of_range{"CUDA error: an illegal memory access was encountered"};
                        return strata_test::some_rows();
                    },
                    10, 8}));
            } catch (...) {
                train::end_badly(session, std::current_exception());
            }
        });
    });
    EXPECT_EQ(error.code(), Errc::gpu_fault) << error.what();
    EXPECT_EQ(count_of("gpu.fault"), is_last ? 1 : 0);
    for (const auto& event : heard()) {
        if (event["type"] != "gpu.fault") continue;
        EXPECT_EQ(event["fault"]["type"], "cuda_error");
        EXPECT_EQ(event["fault"]["exception_type"], "std::out_of_range");
        EXPECT_EQ(event["fault"]["gpu"]["name"], "NVIDIA H100");
    }
}

}  // namespace
