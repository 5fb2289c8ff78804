// Webhooks as people write them down: an object, a list, text, a file; what is wrong is one error, and no secret is in it.

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/webhook_list.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata::webhooks::Severity;
using strata::webhooks::WebhookOptions;
using strata::webhooks::WebhookType;

std::vector<WebhookOptions> webhooks_of(const nlohmann::json& json, const std::string& file = "config.json") {
    return read_webhooks(Value{json, Source{file}, "webhook_config"});
}
auto refusal_of(const std::string& text) {
    const nlohmann::json json = nlohmann::json::parse(text);
    return strata_test::thrown_by([&] { (void)webhooks_of(json); });
}

constexpr const char* discord_json =
    R"({"webhook_type": "discord", "webhook_url": "https://discord.com/api/webhooks/1/geheim",
    "message_prefix": "my run", "log_level": "warning"})";

TEST(WebhookList, AnObjectAListAndTextSayTheSame) {
    const nlohmann::json object = nlohmann::json::parse(discord_json);
    for (const nlohmann::json& form : {object, nlohmann::json::array({object}), nlohmann::json(object.dump()),
                                       nlohmann::json("  [" + object.dump() + "]\n")}) {
        const auto all = webhooks_of(form);
        ASSERT_EQ(all.size(), 1U);
        EXPECT_EQ(all[0].webhook_type, WebhookType::discord);
        EXPECT_EQ(all[0].url.reveal(), "https://discord.com/api/webhooks/1/geheim");
        EXPECT_EQ(all[0].server(), "https://discord.com");
        EXPECT_EQ(all[0].message_prefix, "my run");
        EXPECT_EQ(all[0].log_level, Severity::warning);
        EXPECT_EQ(all[0].name, "discord");
        EXPECT_FALSE(all[0].ssl_no_verify || all[0].allow_private_addresses || all[0].allow_redirects);
    }
}

TEST(WebhookList, NothingIsNone) {
    EXPECT_TRUE(webhooks_of(nullptr).empty());
    EXPECT_TRUE(webhooks_of("").empty());
    EXPECT_TRUE(webhooks_of(nlohmann::json::array()).empty());
}

TEST(WebhookList, RawTakesBothSpellingsOfItsAddress) {
    for (const char* key : {"webhook_url", "callback_url"}) {
        const auto all = webhooks_of({{"webhook_type", "raw"},
                                      {key, "http://hooks.example.org:8080/x"},
                                      {"auth_token", "t"},
                                      {"ssl_no_verify", true},
                                      {"secret", "s"}});
        ASSERT_EQ(all.size(), 1U);
        EXPECT_EQ(all[0].url.reveal(), "http://hooks.example.org:8080/x");
        EXPECT_EQ(all[0].server(), "http://hooks.example.org:8080");
        EXPECT_EQ(all[0].auth_token.reveal(), "t");
        EXPECT_EQ(all[0].secret.reveal(), "s");
        EXPECT_TRUE(all[0].ssl_no_verify);
    }
}

/// SimpleTuner's documentation has one spelling and its code the other: who wants both to be content writes both.
TEST(WebhookList, BothSpellingsAtOnceAreOneAddress) {
    const auto all =
        webhooks_of({{"webhook_type", "raw"}, {"webhook_url", "https://e.org/x"}, {"callback_url", "https://e.org/x"}});
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].url.reveal(), "https://e.org/x");
}

TEST(WebhookList, AFileIsFoundBesideTheConfigurationThatNamesIt) {
    const strata_test::TemporaryFolder folder;
    std::ofstream{folder.path() / "webhook.json"} << discord_json;
    const auto all = webhooks_of("webhook.json", (folder.path() / "config.json").string());
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].message_prefix, "my run");
    const auto missing = strata_test::thrown_by([&] { (void)webhooks_of("not_there.json"); });
    EXPECT_EQ(missing.code, Errc::unreadable_config);
    EXPECT_TRUE(missing.says("not_there.json")) << missing.message;
}

TEST(WebhookList, SeveralHaveNamesOfTheirOwn) {
    const nlohmann::json one = nlohmann::json::parse(discord_json);
    nlohmann::json named = one;
    named["name"] = "discord-2";
    const auto all = webhooks_of(nlohmann::json::array({one, named, one}));
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].name, "discord");
    EXPECT_EQ(all[1].name, "discord-2");
    EXPECT_EQ(all[2].name, "discord-3");
    const auto twice = strata_test::thrown_by([&] { (void)webhooks_of(nlohmann::json::array({named, named})); });
    EXPECT_TRUE(twice.says("two webhooks have the name 'discord-2'")) << twice.message;
}

TEST(WebhookList, EveryMistakeIsOneErrorThatSaysWhere) {
    struct Case {
        const char* text;
        const char* says;
    };
    for (const Case& bad : {
             Case{R"({"webhook_url": "https://e.org/geheim"})", "webhook_type"},
             Case{R"({"webhook_type": "slack", "webhook_url": "https://e.org/geheim"})", "none of its values"},
             Case{R"({"webhook_type": "raw"})", "webhook_url' is missing"},
             Case{R"({"webhook_type": "raw", "callback_url": "e.org/geheim"})", "does not begin with http"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://me:geheim@e.org/"})", "user name or a password"},
             Case{R"({"webhook_type": "raw", "callback_url": "https:///geheim"})", "names no host"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://e.org/a geheim"})", "no address has"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://e.org", "webhook_url": "https://e.org/geheim"})",
                  "are the same key, and have different values"},
             Case{R"({"webhook_type": "raw", "callback_url": ["geheim"]})", "not text"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://e.org", "auth_tokn": "geheim"})", "auth_token"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://e.org", "auth_token": {"a": "geheim"}})",
                  "not text"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://e.org", "log_level": "loud"})", "log_level"},
             Case{R"({"webhook_type": "raw", "callback_url": "https://e.org", "most_waiting": 0})", "out of its range"},
             Case{R"([{"webhook_type": "raw", "callback_url": "https://e.org"}, 7])", "webhook_config[1]"},
             Case{R"("{\"webhook_type\": \"raw\", \"auth_token\": \"geheim\"")", "webhook_config"},
             Case{R"("https://discord.com/api/webhooks/1/geheim")", "an address alone"},
             Case{"7", "neither a webhook"},
         }) {
        const auto thrown = refusal_of(bad.text);
        EXPECT_TRUE(thrown.says(bad.says)) << bad.text << "\n" << thrown.message;
        EXPECT_TRUE(thrown.says("Fix: ")) << thrown.message;
        EXPECT_FALSE(thrown.says("geheim")) << thrown.message;
    }
}

TEST(WebhookList, AVariableGivesASecretAndNoMessageHasIt) {
    ::setenv("STRATA_TEST_HOOK", "https://e.org/geheim", 1);
    const auto all = webhooks_of({{"webhook_type", "raw"}, {"callback_url", "{env:STRATA_TEST_HOOK}"}});
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].url.reveal(), "https://e.org/geheim");
    ::unsetenv("STRATA_TEST_HOOK");
    const auto unset = refusal_of(R"({"webhook_type": "raw", "callback_url": "{env:STRATA_TEST_HOOK}"})");
    EXPECT_TRUE(unset.says("STRATA_TEST_HOOK")) << unset.message;
}

}  // namespace
