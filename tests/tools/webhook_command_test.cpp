// `strata webhook test` as a person meets it: a line that says who took the event, or one sentence.

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../support/fake_http_server.hpp"
#include "../support/temporary_folder.hpp"
#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;
using strata_test::FakeHttpServer;
using strata_test::FakeReply;
using strata_test::FakeRequest;
using strata_test::Outcome;
using strata_test::Running;

struct WebhookCommand : ::testing::Test {
    strata_test::TemporaryFolder temporary;
    fs::path folder = temporary.path();

    Outcome strata(std::vector<std::string> words) {
        words.insert(words.begin(), {STRATA_TOOL, "webhook"});
        return Running{std::move(words), folder}.wait();
    }
    std::string file_of(const std::string& text) {
        std::ofstream{folder / "hooks.json"} << text;
        return folder / "hooks.json";
    }
};

TEST_F(WebhookCommand, SaysWhoTookTheEventAndWhoDidNot) {
    const FakeHttpServer server{[](const FakeRequest& request) {
        return FakeReply::answer(request.asks("good") ? 204 : 404, "Unknown Webhook /geheim-bad");
    }};
    const std::string good = R"({"webhook_type": "raw", "allow_private_addresses": true, "webhook_url": ")" +
                             server.url() + R"(/geheim-good"})";
    const Outcome taken = strata({"test", file_of(R"({"max_train_steps": 3, "webhook_config": )" + good + "}")});
    EXPECT_EQ(taken.status, 0) << taken.err;
    EXPECT_NE(taken.out.find("webhook 'raw' (" + server.url() + "): took the event "), std::string::npos) << taken.out;
    const std::string bad = R"({"webhook_type": "discord", "allow_private_addresses": true, "webhook_url": ")" +
                            server.url() + R"(/geheim-bad"})";
    const Outcome refused = strata({"test", file_of("[" + good + "," + bad + "]")});
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.out.find("webhook 'raw'"), std::string::npos) << refused.out;
    EXPECT_NE(refused.err.find("[ST2812] webhook 'discord' (" + server.url() + ") answers 404: Unknown Webhook ***"),
              std::string::npos)
        << refused.err;
    EXPECT_EQ((taken.out + refused.out + refused.err).find("geheim"), std::string::npos);
}

TEST_F(WebhookCommand, WhatIsNotAllowedOrNotUnderstoodIsOneSentence) {
    const Outcome forbidden =
        strata({"test", file_of(R"({"webhook_type": "raw", "webhook_url": "http://127.0.0.1:9/geheim"})")});
    EXPECT_EQ(forbidden.status, 1);
    EXPECT_NE(forbidden.err.find("[ST2811]"), std::string::npos) << forbidden.err;
    EXPECT_NE(forbidden.err.find("allow_private_addresses"), std::string::npos) << forbidden.err;
    EXPECT_EQ(forbidden.err.find("geheim"), std::string::npos) << forbidden.err;
    EXPECT_EQ(strata({"tets"}).status, 2);
    EXPECT_EQ(strata({"test"}).status, 2);
    EXPECT_EQ(strata({"test", (folder / "hooks.json").string(), "--name", "other"}).status, 2);
}

}  // namespace
