// The stages of a run, as webhooks hear of them: which begin, which end, and which one it was that failed.

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/train/run_events.hpp>
#include <strata/train/run_stage.hpp>

#include "../../support/fake_http_server.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::train::RunEvents;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using Lines = std::vector<std::string>;

/// What one rank tells a server that takes everything.
struct Told {
    strata_test::TemporaryFolder folder;
    FakeHttpServer server{[](const FakeRequest&) { return FakeReply::answer(204); }};
    RunEvents events;

    explicit Told(int rank = 0) {
        strata::webhooks::WebhookOptions options;
        options.name = "raw";
        options.url = server.url();
        options.allow_private_addresses = true;
        options.stage_interval_seconds = 0;
        options.closing_seconds = 600;
        events.set({options});
        events.begin(folder.path(), {.rank = rank, .world = 2}, {});
    }
    void fail(const std::runtime_error& failure) { events.failed(std::make_exception_ptr(failure)); }
    /// "init_vae_cache running", and of other events their type. A stage that goes on may be told twice or once: what is old when it would be sent is not.
    Lines lines() {
        events.end();
        Lines lines;
        for (const FakeRequest& request : server.seen()) {
            const nlohmann::json body = nlohmann::json::parse(request.body);
            std::string line = body["type"];
            if (body.contains("stage"))
                line = body["stage"]["key"].get<std::string>() + " " + body["stage"]["status"].get<std::string>();
            if (lines.empty() || lines.back() != line) lines.push_back(line);
        }
        return lines;
    }
};

TEST(RunEvents, AStageIsCompleteWhenTheNextOneOrTrainingBegins) {
    Told told;
    for (std::int64_t done = 1; done <= 3; ++done) told.events.phase_goes_on({.what = "pictures listed", .done = done});
    told.events.phase_goes_on({.what = "pictures examined", .done = 1, .total = 3});
    told.events.phase_goes_on({.what = "latents looked up", .done = 1, .total = 3});
    told.events.phase_goes_on({.what = "captions", .done = 1, .total = 3, .seconds_left = 2});
    told.events.stage_begins(strata::train::model_stage);
    told.events.training_begins(0, 4);
    told.events.training_ends(4, 4);
    EXPECT_EQ(told.lines(),
              (Lines{"init_data_backend running", "init_data_backend completed", "init_vae_cache running",
                     "init_vae_cache completed", "init_load_base_model running", "init_load_base_model completed",
                     "init_prepare_models completed", "training_complete completed"}));
}

TEST(RunEvents, APhaseGivesItsStageItsProgress) {
    Told told;
    told.events.phase_goes_on({.what = "captions", .done = 1, .total = 4, .seconds_left = 2.5});
    EXPECT_EQ(told.lines(), (Lines{"init_vae_cache running"}));
    const nlohmann::json body = nlohmann::json::parse(told.server.seen().front().body);
    EXPECT_EQ(
        body["stage"]["progress"],
        (nlohmann::json{{"label", "captions"}, {"current", 1}, {"total", 4}, {"percent", 25.0}, {"eta_seconds", 2.5}}));
    EXPECT_EQ(body["title"], "Filling the caches");
}

TEST(RunEvents, WhatIsDoneDuringAStageEndsItOrFailsIt) {
    Told told;
    int calls = 0;
    told.events.during(strata::train::weights_stage, [&] { ++calls; });
    EXPECT_THROW(told.events.during(strata::train::checkpoint_stage, [] { throw std::runtime_error{"no room"}; }),
                 std::runtime_error);
    told.events.training_ends(2, 4);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(told.lines(), (Lines{"model_save running", "model_save completed", "checkpoint_save running",
                                   "checkpoint_save failed", "training_abort completed"}));
}

TEST(RunEvents, AFailureFailsTheStageThatItComesFromAndTheRun) {
    Told told;
    told.events.stage_begins(strata::train::model_stage);
    told.fail(std::runtime_error{"no such weight"});
    EXPECT_EQ(told.lines(),
              (Lines{"init_load_base_model running", "init_load_base_model failed", "error", "training_abort failed"}));
    const nlohmann::json last = nlohmann::json::parse(told.server.seen().back().body);
    EXPECT_EQ(last["message"], "no such weight");
    EXPECT_EQ(last["severity"], "error");
}

TEST(RunEvents, OtherRanksTellOfTheirFailuresAlone) {
    Told told{1};
    int calls = 0;
    told.events.phase_goes_on({.what = "latents", .done = 1, .total = 4});
    told.events.during(strata::train::checkpoint_stage, [&] { ++calls; });
    told.fail(std::runtime_error{"no GPU"});
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(told.lines(), (Lines{"error", "training_abort failed"}));
}

TEST(RunEvents, WhoIsAskedToStopHasNotFailed) {
    Told told;
    told.events.phase_goes_on({.what = "latents", .done = 1, .total = 4});
    told.events.failed(std::make_exception_ptr(strata::Error{strata::Errc::interrupted, "stopped", "go on"}));
    EXPECT_EQ(told.lines(), (Lines{"init_vae_cache running"}));
}

TEST(RunEvents, WithoutWebhooksStagesAreNothing) {
    RunEvents events;
    int calls = 0;
    events.stage_begins(strata::train::model_stage);
    events.during(strata::train::checkpoint_stage, [&] { ++calls; });
    events.training_begins(0, 4);
    EXPECT_EQ(calls, 1);
}

}  // namespace
