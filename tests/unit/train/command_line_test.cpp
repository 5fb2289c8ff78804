// Words to flags; which words are refused, and with which sentence; what --help says.

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/trainer_config.hpp>
#include <strata/core/error.hpp>
#include <strata/train/command_line.hpp>

namespace {

using namespace strata;
using config::TrainerConfig;
using train::CommandLine;
using train::SettingsKeys;

struct Own {
    bool loud = false;
    std::vector<std::string> names;
    static const config::Schema<Own>& schema() {
        static const auto keys = [] {
            config::Schema<Own> s;
            s.flag("loud", &Own::loud, "Says more").texts("names", &Own::names, "Names");
            s.idle({{"quick", "it is always quick"}});
            return s;
        }();
        return keys;
    }
};

CommandLine parse(std::vector<const char*> words, const std::vector<SettingsKeys>& keys) {
    words.insert(words.begin(), "some/where/prog");
    return CommandLine::parse(static_cast<int>(words.size()), words.data(), keys);
}
CommandLine of_trainer(const std::vector<const char*>& words) {
    return parse(words, {SettingsKeys::of<TrainerConfig>()});
}

std::string refusal(const std::vector<const char*>& words, const std::vector<SettingsKeys>& keys) {
    try {
        (void)parse(words, keys);
    } catch (const Error& error) {
        EXPECT_TRUE(is_bad_input(error.code())) << error.what();
        return error.what();
    }
    return "nothing";
}

TEST(CommandLine, TakesValuesInTheNextWordAndBehindAnEqualsSign) {
    const CommandLine line =
        of_trainer({"--learning_rate", "1e-4", "--output=a b", "--fresh", "--prefetch_bucket_bytes", "-1", "--config",
                    "c.json", "--output_dir=--odd", "--adam_beta1=0.5"});
    EXPECT_EQ(line.output, "a b");
    EXPECT_EQ(line.config, "c.json");
    EXPECT_TRUE(line.fresh);
    ASSERT_EQ(line.overrides.size(), 4U);
    const std::vector<std::pair<std::string, std::string>> expected{
        {"learning_rate", "1e-4"}, {"prefetch_bucket_bytes", "-1"}, {"output_dir", "--odd"}, {"adam_beta1", "0.5"}};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(line.overrides[i].name, expected[i].first);
        EXPECT_EQ(line.overrides[i].values, std::vector{expected[i].second});
    }
}

TEST(CommandLine, TrueAndFalseOnesMayStandAlone) {
    const auto value = [](const std::vector<const char*>& words) {
        return of_trainer(words).overrides.at(0).values.at(0);
    };
    EXPECT_EQ(value({"--use_ema"}), "true");
    EXPECT_EQ(value({"--use_ema", "--fresh"}), "true");
    EXPECT_EQ(value({"--use_ema=false"}), "false");
    EXPECT_EQ(value({"--use_ema", "false", "--fresh"}), "false");
    EXPECT_EQ(value({"--use_ema=maybe"}), "maybe") << "the schema refuses it";
}

TEST(CommandLine, AListTakesItsKeyForEachElement) {
    const CommandLine line = of_trainer({"--validation_prompts", "a b", "--seed", "1", "--validation_prompts=c"});
    ASSERT_EQ(line.overrides.size(), 2U);
    EXPECT_EQ(line.overrides[0].values, (std::vector<std::string>{"a b", "c"}));
}

TEST(CommandLine, SeveralSettingsShareIt) {
    const CommandLine line =
        parse({"--loud", "--seed", "3", "--quick", "x"}, {SettingsKeys::of<TrainerConfig>(), SettingsKeys::of<Own>()});
    ASSERT_EQ(line.overrides.size(), 2U) << "an idle key changes nothing";
    EXPECT_TRUE(Own::schema().read(line.overrides).loud);
    EXPECT_EQ(TrainerConfig::schema().read(line.overrides).options.seed, 3U);
}

/// A rule's own numbers, which are looked at where the rule is known.
TEST(CommandLine, KeysOfAFamilyAreTakenAsTheyAre) {
    const CommandLine line = of_trainer({"--optimizer_rho", "0.9", "--optimizer_signs=true"});
    ASSERT_EQ(line.overrides.size(), 2U);
    const TrainerConfig config = TrainerConfig::schema().read(line.overrides);
    ASSERT_NE(config.optimizer.find("optimizer_rho"), nullptr);
    EXPECT_EQ(config.optimizer.find("optimizer_rho")->key, "--optimizer_rho");
    EXPECT_EQ(config.optimizer.find("optimizer_rho")->json, "\"0.9\"");
    EXPECT_EQ(refusal({"--optimizer_rho"}, {SettingsKeys::of<TrainerConfig>()}),
              "[ST2601] --optimizer_rho needs a value. Fix: type --optimizer_rho VALUE.");
    EXPECT_EQ(refusal({"--optimizer_rho", "1", "--optimizer_rho=2"}, {SettingsKeys::of<TrainerConfig>()}),
              "[ST2601] --optimizer_rho is given twice. Fix: keep one of them.");
    EXPECT_NE(train::help_text("prog", std::vector{SettingsKeys::of<TrainerConfig>()}).find("\n  --optimizer_...\n"),
              std::string::npos);
}

TEST(CommandLine, WordsThatAreNotUnderstoodAreRefusedWithWhatToTypeInstead) {
    const std::vector<SettingsKeys> trainer{SettingsKeys::of<TrainerConfig>()}, none;
    struct Case {
        std::vector<const char*> words;
        std::vector<SettingsKeys> keys;
        std::string says;
    };
    const std::string help = "'prog --help' lists what there is.";
    const std::vector<Case> cases{
        {{"--fersh"}, trainer, "[ST2601] the argument --fersh is unknown. Fix: did you mean --fresh? " + help},
        {{"--learning-rate", "1"},
         trainer,
         "[ST2601] the argument --learning-rate is unknown. Fix: did you mean --learning_rate? " + help},
        {{"--ouptut=x"}, none, "[ST2601] the argument --ouptut is unknown. Fix: did you mean --output? " + help},
        {{"config.json"}, trainer, "[ST2601] the argument config.json is unknown. Fix: " + help},
        {{"-h"}, none, "[ST2601] the argument -h is unknown. Fix: " + help},
        {{"--learning_rate", "1"},
         none,
         "[ST2601] --learning_rate is a key of a trainer's configuration, and this program reads no configuration. Fix: leave it away; " +
             help},
        {{"--config", "c.json"},
         none,
         "[ST2601] this program reads no configuration file, and --config c.json was given. Fix: leave --config away."},
        {{"--seed"}, trainer, "[ST2601] --seed needs a value. Fix: type --seed VALUE."},
        {{"--seed", "--fresh"}, trainer, "[ST2601] --seed needs a value. Fix: type --seed VALUE."},
        {{"--output"}, none, "[ST2601] --output needs a value. Fix: type --output DIR."},
        {{"--output="}, none, "[ST2601] --output needs a value. Fix: type --output DIR."},
        {{"--output", "a", "--output", "b"}, none, "[ST2601] --output is given twice. Fix: keep one of them."},
        {{"--seed", "1", "--seed=1"}, trainer, "[ST2601] --seed is given twice. Fix: keep one of them."},
        {{"--fresh=true"}, none, "[ST2601] --fresh takes no value. Fix: type --fresh alone."},
        {{"--mixed_precision", "bf16"},
         trainer,
         "[ST2104] --mixed_precision is known from other trainers, and is a key of files here, and no flag. Fix: write it into the "
         "configuration, where it means: the number formats; `no` is fp32; or leave it away."},
    };
    for (const Case& one : cases) EXPECT_EQ(refusal(one.words, one.keys), one.says);
}

TEST(CommandLine, AConfigurationThatNobodyNamedIsAskedFor) {
    EXPECT_EQ(of_trainer({"--config", "nowhere.json"}).config_file("config.json"), "nowhere.json")
        << "who reads it, looks for it";
    try {
        (void)of_trainer({}).config_file("nowhere/config.json");
        ADD_FAILURE() << "no file";
    } catch (const Error& error) {
        EXPECT_STREQ(
            error.what(),
            "[ST2101] --config is not given, and there is no nowhere/config.json in this folder. Fix: name the configuration with --config FILE.");
    }
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in{text};
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

TEST(CommandLine, HelpListsEveryKeyWithRangeDefaultAndMeaningIn80Columns) {
    const std::string text = train::help_text("prog", std::vector{SettingsKeys::of<TrainerConfig>()});
    for (const std::string& line : lines_of(text)) {
        EXPECT_LE(line.size(), 80U) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    std::string words = text;  // however they are wrapped
    words.erase(std::unique(words.begin(), words.end(),
                            [](char a, char b) { return (a == ' ' || a == '\n') && (b == ' ' || b == '\n'); }),
                words.end());
    std::replace(words.begin(), words.end(), '\n', ' ');
    EXPECT_GT(TrainerConfig::schema().keys().size(), 40U);
    for (const config::KeyInfo& info : TrainerConfig::schema().keys()) {
        EXPECT_NE(words.find(" --" + info.key + " "), std::string::npos) << info.key;
        if (!info.alias.empty()) {
            EXPECT_NE(words.find("or --" + info.alias + " "), std::string::npos) << info.alias;
        }
        EXPECT_NE(words.find("default " + info.fallback + " "), std::string::npos) << info.fallback;
    }
    EXPECT_NE(text.find("\n  --learning_rate  number 0 to 10; default 1e-04\n      Learning rate after the warm-up\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("--config FILE"), std::string::npos);
    EXPECT_EQ(text.find('`'), std::string::npos);
    EXPECT_EQ(text.find("]("), std::string::npos) << "a link of the page";
}

TEST(CommandLine, HelpOfAProgramWithoutSettingsIsShort) {
    EXPECT_EQ(train::help_text("prog", {}).find("--config"), std::string::npos);
    EXPECT_LE(lines_of(train::help_text("prog", {})).size(), 8U);
    const std::string own = train::help_text("prog", std::vector{SettingsKeys::of<Own>()});
    EXPECT_EQ(own.find("--config"), std::string::npos);
    EXPECT_NE(own.find("\n  --loud  true or false; default false\n      Says more\n"), std::string::npos) << own;
}

}  // namespace
