// A configuration file's numbers arrive in the trainer's options; what it leaves out keeps the rule's defaults.

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/config_for.hpp>
#include <strata/train/options_from_config.hpp>

#include "../../support/temporary_folder.hpp"
#include "../config/temporary_json.hpp"

namespace {

using namespace strata;
using strata::train::ConfigFor;
using strata::train::options_from;
using strata_test::TemporaryJson;
using strata_test::thrown_by;

using Plain = Setup<>;
using WithLion = Setup<Optimizer<Lion>>;
using OnCpu = Setup<Ema<>>;
struct SomeTrainer {
    using setup = Setup<Ema<Device>, Optimizer<Sgd>>;
};
static_assert(std::same_as<decltype(options_from<SomeTrainer>({}, 1)), TrainOptions<Sgd>>, "a trainer's Options");

TEST(OptionsFromConfig, AFileThatIsNotThereIsRefused) {
    const auto error = thrown_by([] {
        (void)options_from<Plain>(
            config::load_trainer_config(TemporaryJson{R"({"deepspeed_config": "nowhere.json"})"}.path()), 1);
    });
    EXPECT_EQ(error.code, Errc::bad_reference);
    EXPECT_TRUE(error.says("'nowhere.json'")) << error.message;
}

TEST(OptionsFromConfig, NumbersArrive) {
    config::TrainerConfig config;
    config.max_train_steps = 70;
    config.options.seed = 5;
    config.options.schedule.lr = 3e-4;
    config.options.schedule.end_lr = 1e-5;
    config.options.schedule.warmup_steps = 7;
    config.options.schedule.shape = ScheduleShape::linear;
    config.options.engine.gradient_accumulation_steps = 3;
    config.options.engine.max_grad_norm = 0.25;
    config.options.checkpoint_every = 11;
    config.options.checkpoints_kept = 4;
    config.optimizer.set("optimizer_beta2", "0.95");
    config.optimizer.set("optimizer_epsilon", "1e-6");
    const auto options = options_from<Plain>(config, 100);
    EXPECT_EQ(options.max_steps, 70);
    EXPECT_EQ(options.seed, 5U);
    EXPECT_EQ(options.schedule.lr, 3e-4);
    EXPECT_EQ(options.schedule.end_lr, 1e-5);
    EXPECT_EQ(options.schedule.warmup_steps, 7);
    EXPECT_EQ(options.schedule.total_steps, 70);
    EXPECT_EQ(options.schedule.shape, ScheduleShape::linear);
    EXPECT_EQ(options.engine.gradient_accumulation_steps, 3);
    EXPECT_EQ(options.engine.max_grad_norm, 0.25);
    EXPECT_EQ(options.checkpoint_every, 11);
    EXPECT_EQ(options.checkpoints_kept, 4);
    EXPECT_EQ(options.engine.update.beta1, AdamW::Options{}.beta1);
    EXPECT_EQ(options.engine.update.beta2, 0.95);
    EXPECT_EQ(options.engine.update.epsilon, 1e-6);
}

TEST(OptionsFromConfig, EpochsBecomeStepsRoundedUp) {
    config::TrainerConfig config;
    config.max_train_steps = 0;
    config.num_train_epochs = 3;
    config.options.engine.gradient_accumulation_steps = 2;
    EXPECT_EQ(options_from<Plain>(config, 5).max_steps, 8);
}

TEST(OptionsFromConfig, MoreEpochsThanCanBeCountedAreRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 0;
    config.options.engine.gradient_accumulation_steps = 2;
    config.num_train_epochs = std::numeric_limits<std::int64_t>::max() / 5 + 1;
    const auto error = thrown_by([&] { (void)options_from<Plain>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("num_train_epochs")) << error.message;
    // The largest number of micro-batches there is, odd, rounded up without leaving its range.
    config.num_train_epochs = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(options_from<Plain>(config, 1).max_steps, std::numeric_limits<std::int64_t>::max() / 2 + 1);
}

TEST(OptionsFromConfig, AWarmUpLongerThanTheEpochsTakeIsRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 0;
    config.num_train_epochs = 2;
    config.options.engine.gradient_accumulation_steps = 1;
    config.options.schedule.warmup_steps = 10;
    EXPECT_EQ(options_from<Plain>(config, 5).schedule.warmup_steps, 10);
    config.options.schedule.warmup_steps = 11;
    const auto error = thrown_by([&] { (void)options_from<Plain>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("'lr_warmup_steps' is 11, above the 10 steps of 'num_train_epochs'")) << error.message;
}

TEST(OptionsFromConfig, ARuleWithoutEpsilonIgnoresIt) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.optimizer.set("optimizer_weight_decay", "0.3");
    const auto options = options_from<WithLion>(config, 5);
    EXPECT_EQ(options.engine.update.weight_decay, 0.3);
    EXPECT_EQ(options.engine.update.beta2, Lion::Options{}.beta2);
}

/// Rules of a user's own: one without weight decay, one without any number.
template <class Numbers>
struct PlainDescent {
    using Options = Numbers;
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t) noexcept { return {static_cast<float>(lr)}; }
    static void apply(float& weight, float gradient, float*, const Scalars& s) noexcept {
        weight = weight - s.lr * gradient;
    }
};
struct OneNumber {
    double momentum = 0.25;
    static void describe(auto& option) { option("momentum", &OneNumber::momentum, ranges::momentum, "Momentum"); }
};
/// With numbers that no rule of strata has, one of each kind.
struct Numbers {
    double sharpness = 0.5;
    std::int64_t every = 3;
    bool signs = false;
    static void describe(auto& option) {
        option("sharpness", &Numbers::sharpness, {0, 2}, "How sharp");
        option("every", &Numbers::every, {1, 100}, "How often");
        option("signs", &Numbers::signs, "Whether signs count");
    }
};
struct None {};
using OnlyMomentum = PlainDescent<OneNumber>;
using NoNumbers = PlainDescent<None>;
using OwnNumbers = PlainDescent<Numbers>;
using WithOneNumber = Setup<Optimizer<OnlyMomentum>>;
using WithNoNumbers = Setup<Optimizer<NoNumbers>>;
using WithOwnNumbers = Setup<Optimizer<OwnNumbers>>;
static_assert(optim::UpdateRule<OnlyMomentum> && optim::UpdateRule<NoNumbers>);

TEST(OptionsFromConfig, ARuleMayHaveOnlySomeNumbersOrNone) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.optimizer.set("optimizer_weight_decay", "0.3");
    EXPECT_EQ(options_from<WithOneNumber>(config, 5).engine.update.momentum, 0.25);
    config.optimizer.set("optimizer_momentum", "0.5");
    EXPECT_EQ(options_from<WithOneNumber>(config, 5).engine.update.momentum, 0.5);
    EXPECT_EQ(options_from<WithNoNumbers>(config, 5).max_steps, 1);
}

TEST(OptionsFromConfig, ARuleOfOnesOwnHasItsOwnKeysInAFileAndOnTheCommandLine) {
    const TemporaryJson file{
        R"({"max_train_steps": 1, "optimizer_sharpness": "0.25", "optimizer_signs": true, "optimizer_every": 7})"};
    const config::Overrides flags{{"optimizer_every", {"9"}}};
    const auto expect_arrived = [](const config::TrainerConfig& config) {
        const Numbers update = options_from<WithOwnNumbers>(config, 5).engine.update;
        EXPECT_EQ(update.sharpness, 0.25);
        EXPECT_EQ(update.every, 9);
        EXPECT_TRUE(update.signs);
    };
    expect_arrived(config::load_trainer_config(file.path(), flags));
    expect_arrived(ConfigFor<WithOwnNumbers>::load(file.path(), flags));

    config::TrainerConfig none;
    none.max_train_steps = 1;
    EXPECT_EQ(options_from<WithOwnNumbers>(none, 5).engine.update.sharpness, 0.5);
}

TEST(OptionsFromConfig, ATypingErrorInAKeyOfTheRuleIsFoundWhenTheRuleIsKnown) {
    const TemporaryJson file{R"({"max_train_steps": 1, "optimizer_sharpnes": 0.25})"};
    const auto says = [](auto&& body, const std::string& words, Errc code = Errc::unknown_key) {
        const auto error = thrown_by(body);
        EXPECT_EQ(error.code, code);
        EXPECT_TRUE(error.says(words)) << error.message;
    };
    const config::TrainerConfig later = config::load_trainer_config(file.path());
    says([&] { (void)options_from<WithOwnNumbers>(later, 5); },
         file.path().string() + ":1:46: key 'optimizer_sharpnes' is unknown. Fix: did you mean 'optimizer_sharpness'.");
    says([&] { (void)options_from<Plain>(later, 5); },
         "key 'optimizer_sharpnes' is unknown. Fix: remove it: the program's update rule has "
         "optimizer_beta1, optimizer_beta2, optimizer_epsilon, optimizer_weight_decay.");
    says([&] { (void)options_from<WithNoNumbers>(later, 5); }, "the program's update rule has no options");
    says([&] { (void)ConfigFor<WithOwnNumbers>::load(file.path(), {}); }, "did you mean 'optimizer_sharpness'");

    const TemporaryJson empty{R"({"max_train_steps": 1})"};
    const auto with = [&](const char* key, const char* value) {
        return config::load_trainer_config(empty.path(), {{key, {value}}});
    };
    says([&] { (void)options_from<WithOwnNumbers>(with("optimizer_evry", "2"), 5); },
         "[ST2102] --optimizer_evry is unknown. Fix: did you mean '--optimizer_every'.");
    says([&] { (void)options_from<WithOwnNumbers>(with("optimizer_every", "0"), 5); },
         "[ST2103] --optimizer_every is '0', out of its range. Fix: use a number from 1 to 100.", Errc::bad_value);
    says(
        [&] {
            (void)ConfigFor<WithOwnNumbers>::load(empty.path(), {{"optimizer_every", {"often"}}});
        },
        "[ST2103] --optimizer_every is 'often', not a whole number.", Errc::bad_value);
}

/// A mean of the weights whose numbers have the names of an exponential average's, and other values.
struct OwnAverage {
    using slot = strata::slot::Averaging;
    static constexpr bool enabled = true;
    static constexpr Place place = Place::host;
    struct Options {
        double decay = 0.25;
        std::int64_t interval = 5;
    };
    template <class Kept>
    class average;
};

using WithOwnAverage = Setup<OwnAverage>;

TEST(OptionsFromConfig, AnAverageOfOnesOwnKeepsItsNumbersAndRefusesThoseOfAnother) {
    config::TrainerConfig config;
    config.max_train_steps = 3;
    const auto options = options_from<WithOwnAverage>(config, 1);
    EXPECT_EQ(options.engine.ema.decay, 0.25);
    EXPECT_EQ(options.engine.ema.interval, 5);
    config.options.engine.ema.decay = 0.5;
    EXPECT_NE(thrown_by([&] { (void)options_from<WithOwnAverage>(config, 1); }).message.find("a key ema_"),
              std::string::npos);
}

/// Stochastic weight averaging, with numbers that describe themselves; one has a name that Ema<> has too, and another range.
struct OwnSwa : OwnAverage {
    struct Options {
        std::int64_t start = 1;
        double decay = 3;
        static void describe(auto& option) {
            option("start", &Options::start, strata::ranges::positive, "The first step");
            option("decay", &Options::decay, {2, 4}, "Of something else");
        }
    };
};
using WithOwnSwa = Setup<OwnSwa>;

TEST(OptionsFromConfig, AnAverageOfOnesOwnHasItsKeysFromAFileAndACommandLine) {
    using Config = ConfigFor<WithOwnSwa>;
    const TemporaryJson file{
        R"({"max_train_steps": 3, "use_ema": true, "ema_start": 11, "ema_decay": 2.5, "ema_validation": "ema_only"})"};
    const auto from_file = options_from<WithOwnSwa>(Config::load(file.path(), {}), 1);
    EXPECT_EQ(from_file.engine.ema.start, 11);
    EXPECT_EQ(from_file.engine.ema.decay, 2.5);
    const auto from_flag = options_from<WithOwnSwa>(Config::load(file.path(), {{"ema_start", {"7"}}}), 1);
    EXPECT_EQ(from_flag.engine.ema.start, 7);
    EXPECT_EQ(from_flag.engine.ema.decay, 2.5);
    const TemporaryJson silent{R"({"max_train_steps": 3})"};
    const auto by_default = options_from<WithOwnSwa>(Config::load(silent.path(), {}), 1);
    EXPECT_EQ(by_default.engine.ema.start, 1);
    EXPECT_EQ(by_default.engine.ema.decay, 3);
}

TEST(OptionsFromConfig, AnAverageOfOnesOwnRefusesKeysThatItDoesNotHave) {
    const auto refused = [](const std::string& json) {
        const TemporaryJson file{json};
        return thrown_by([&] { (void)ConfigFor<WithOwnSwa>::load(file.path(), {}); }).message;
    };
    const auto expect = [&](const std::string& json, const std::string& part) {
        EXPECT_NE(refused(json).find(part), std::string::npos) << refused(json);
    };
    expect(R"({"max_train_steps": 3, "ema_strat": 2})", "/ema_strat is unknown. Fix: did you mean 'ema_start'");
    expect(R"({"max_train_steps": 3, "ema_inv_gamma": 2})", "/ema_inv_gamma is unknown");
    expect(R"({"max_train_steps": 3, "ema_warmup_steps": 2})", "/ema_warmup_steps is unknown");
    expect(R"({"max_train_steps": 3, "ema_start": 0})", "/ema_start is 0, out of its range. Fix: use a number from 1");
    expect(R"({"max_train_steps": 3, "ema_decay": 0.5})",
           "/ema_decay is 0.5, out of its range. Fix: use a number from 2 to 4");

    std::string all;
    for (const config::KeyInfo& info : ConfigFor<WithOwnSwa>::schema().keys())
        if (info.key.starts_with("ema_") || info.key == "use_ema") all += info.key + " ";
    EXPECT_EQ(all, "use_ema ema_device ema_validation ema_start ema_decay ");
}

TEST(OptionsFromConfig, AProgramsHelpHasTheKeysOfItsRuleAndNoOthers) {
    const auto keys = [](const auto& schema) {
        std::string all;
        for (const config::KeyInfo& info : schema.keys())
            if (info.key.starts_with("optimizer_")) all += info.key + " " + info.type + " " + info.fallback + "; ";
        return all;
    };
    EXPECT_EQ(
        keys(ConfigFor<WithOwnNumbers>::schema()),
        "optimizer_sharpness number 0 to 2 0.5; optimizer_every integer 1 to 100 3; optimizer_signs true or false false; ");
    EXPECT_EQ(
        keys(ConfigFor<SomeTrainer>::schema()),
        "optimizer_momentum number 0 to 0.999999 0.9; optimizer_dampening number 0 to 1 0; optimizer_weight_decay number 0 to 100 0; "
        "optimizer_nesterov true or false false; ");
    EXPECT_EQ(ConfigFor<WithOwnNumbers>::schema().keys().size() + 2, config::trainer_schema().keys().size());
    // A file that serves programs with other rules.
    const TemporaryJson file{
        R"({"max_train_steps": 1, "adam_beta1": 0.5, "adam_beta2": 0.5, "optimizer_weight_decay": 0.1})"};
    EXPECT_EQ(options_from<WithOwnNumbers>(ConfigFor<WithOwnNumbers>::load(file.path(), {}), 5).max_steps, 1);
    EXPECT_EQ(options_from<Plain>(ConfigFor<Plain>::load(file.path(), {}), 5).engine.update.beta1, 0.5)
        << "by its other name";
}

TEST(OptionsFromConfig, WhatTheEngineAndItsTiersAreToldCanBeInAFile) {
    const TemporaryJson file{
        R"({"max_train_steps": 30, "lr_scheduler": "linear", "lr_total_steps": 40, "reduce_bucket_size": 4096,
        "overlap_comm": false, "buckets_in_flight": 2, "ema_use_warmup": true, "ema_inv_gamma": 2, "ema_power": 0.75,
        "loss_scale_initial": 1024, "loss_scale_window": 50, "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 2,
        "loss_scale_dynamic": false, "nvme_path": "/somewhere", "nvme_lock_timeout": 5, "offload_state_budget_bytes": 1e9,
        "offload_state_io_engine": "threads", "offload_state_io_block_bytes": 8192, "offload_state_io_queue_depth": 32,
        "offload_state_io_threads": 2, "offload_state_file_direct": false, "offload_state_file_coverage": "every_byte",
        "offload_units_budget_bytes": 2e9, "offload_units_file_coverage": "none", "reserve_checkpoint_room": false})"};
    const auto options = options_from<SomeTrainer>(config::load_trainer_config(file.path()), 5);
    const auto& engine = options.engine;
    EXPECT_EQ(options.schedule.total_steps, 40);
    EXPECT_FALSE(options.reserve_checkpoint_room);
    EXPECT_EQ(engine.bucket_numel, 4096);
    EXPECT_FALSE(engine.overlap);
    EXPECT_EQ(engine.buckets_in_flight, 2);
    EXPECT_TRUE(engine.ema.use_warmup);
    EXPECT_EQ(engine.ema.inv_gamma, 2.0);
    EXPECT_EQ(engine.ema.power, 0.75);
    EXPECT_EQ(engine.loss_scale.initial, 1024.0);
    EXPECT_EQ(engine.loss_scale.window, 50);
    EXPECT_EQ(engine.loss_scale.hysteresis, 3);
    EXPECT_TRUE(engine.loss_scale.consecutive_hysteresis);
    EXPECT_EQ(engine.loss_scale.minimum, 2.0);
    EXPECT_FALSE(engine.loss_scale.dynamic);
    EXPECT_EQ(engine.tiers.nvme_path, "/somewhere");
    EXPECT_EQ(engine.tiers.nvme_lock_timeout, std::chrono::seconds{5});
    const offload::PipelineOptions& state = engine.tiers.state;
    EXPECT_EQ(state.budget_bytes, 1'000'000'000U);
    EXPECT_EQ(state.io.engine, offload::IoEngine::threads);
    EXPECT_EQ(state.io.block_bytes, 8192U);
    EXPECT_EQ(state.io.queue_depth, 32U);
    EXPECT_EQ(state.io.threads, 2U);
    EXPECT_FALSE(state.file.direct);
    EXPECT_EQ(state.file.coverage, offload::Coverage::every_byte);
    EXPECT_EQ(engine.tiers.units.budget_bytes, 2'000'000'000U);
    EXPECT_EQ(engine.tiers.units.file.coverage, offload::Coverage::none);
    EXPECT_EQ(engine.tiers.units.io.threads, offload::IoOptions{}.threads) << "units have their own";
}

TEST(OptionsFromConfig, ThePageHasTheKeysOfEveryRule) {
    std::ifstream stream{std::string{STRATA_SOURCE_DIR} + "/docs/configuration.md"};
    const std::string page{std::istreambuf_iterator<char>{stream}, {}};
    const auto expect = [&]<class Rule>(std::type_identity<Rule>, const std::string& name) {
        const std::string table =
            "`Optimizer<" + name + ">`:\n\n" + config::markdown(train::detail::rule_keys<Rule>().keys());
        EXPECT_NE(page.find(table), std::string::npos) << "docs/configuration.md needs exactly this:\n" << table;
    };
    expect(std::type_identity<AdamW>{}, "AdamW");
    expect(std::type_identity<Adam>{}, "Adam");
    expect(std::type_identity<Lion>{}, "Lion");
    expect(std::type_identity<Adagrad>{}, "Adagrad");
    expect(std::type_identity<Lamb>{}, "Lamb");
    expect(std::type_identity<Sgd>{}, "Sgd");
}

TEST(OptionsFromConfig, AFileThatAsksForAnotherRuleOrFormatIsRefused) {
    const auto refused = [](const char* json, auto composition) {
        const TemporaryJson file{json};
        const config::TrainerConfig config = config::load_trainer_config(file.path());
        return thrown_by([&] { (void)options_from<typename decltype(composition)::type>(config, 5); });
    };
    const auto rule =
        refused(R"({"max_train_steps": 1, "optimizer": "optimi-lion"})", std::type_identity<strata::Setup<>>{});
    EXPECT_EQ(rule.code, Errc::bad_value);
    EXPECT_TRUE(rule.says("asks for Optimizer<Lion>, and this program's trainer has Optimizer<AdamW>")) << rule.message;
    const auto format = refused(R"({"max_train_steps": 1, "mixed_precision": "bf16"})",
                                std::type_identity<strata::Setup<Optimizer<Lion>>>{});
    EXPECT_TRUE(format.says("asks for Precision<Bf16>, and this program's trainer has Precision<Fp32>"))
        << format.message;
    const auto adapter =
        refused(R"({"max_train_steps": 1, "model_type": "lora"})", std::type_identity<strata::Setup<>>{});
    EXPECT_TRUE(adapter.says("asks for Adapter<Lora> ('model_type' lora), and this program's trainer has no adapter"))
        << adapter.message;
    const TemporaryJson same{
        R"({"max_train_steps": 1, "optimizer": "lion", "mixed_precision": "bf16", "deepspeed_config": "zero2"})"};
    using Same = strata::Setup<Optimizer<Lion>, Precision<Bf16>>;
    EXPECT_NO_THROW((void)options_from<Same>(config::load_trainer_config(same.path()), 5))
        << "the stage changes no bit, and is the program's";
}

TEST(OptionsFromConfig, TheModelIsAmongTheFlagsOfAProgram) {
    const TemporaryJson file{R"({"model_family": "flux"})"};
    const auto config = ConfigFor<Plain>::load(file.path(), {{"model_family", {"sd15"}}});
    EXPECT_EQ(config.model.kind(), config::ModelFamily::sd15);
    const auto& keys = ConfigFor<Plain>::schema().keys();
    for (const char* key : {"model_family", "pretrained_model_name_or_path", "model_type", "lora_rank"})
        EXPECT_TRUE(std::any_of(keys.begin(), keys.end(), [&](const auto& one) { return one.key == key; })) << key;
}

/// A number that no struct of the tree describes would keep its default, whatever a file said.
TEST(OptionsFromConfig, EveryKeyOfTheTreeHasAPathThatChecksKnow) {
    const auto names = train::detail::keys_of_options<strata::Setup<Optimizer<Sgd>>>(config::TrainerConfig{});
    std::size_t described = 0;
    for (const config::KeyInfo& info : config::trainer_schema().keys()) {
        if (info.path.empty()) continue;
        ++described;
        EXPECT_EQ(names.at(info.path), "'" + info.key + "'");
    }
    EXPECT_GE(described, 45U);
    EXPECT_EQ(names.at("engine.update.nesterov"), "'optimizer_nesterov'");
}

TEST(OptionsFromConfig, NumbersOutOfTheirRangeAreCalledByTheirKeys) {
    config::TrainerConfig config;
    config.max_train_steps = 10;
    config.options.schedule.lr = -1;
    config.options.checkpoints_kept = 0;
    EXPECT_EQ(
        thrown_by([&] { (void)options_from<Plain>(config, 5); }).message,
        "[ST2103] 'learning_rate' is -1; 'checkpoints_total_limit' is 0. Fix: use 'learning_rate' from 0 to 10; use "
        "'checkpoints_total_limit' from 1 to 1e+12.");

    const auto refused = [](auto spoil) {
        config::TrainerConfig bad;
        bad.max_train_steps = 10;
        spoil(bad);
        return thrown_by([&] { (void)options_from<SomeTrainer>(bad, 5); }).message;
    };
    const auto expect = [&](const char* says, auto spoil) {
        const std::string message = refused(spoil);
        EXPECT_EQ(message.find(says), 9U) << message;  // after the number
    };
    expect("'max_train_steps' is -1", [](auto& c) { c.max_train_steps = -1; });
    expect("'max_train_steps' is 0", [](auto& c) { c.max_train_steps = 0; });
    expect("'lr_end' is 1, above 'learning_rate' = 1e-04", [](auto& c) { c.options.schedule.end_lr = 1; });
    expect("'lr_warmup_steps' is 11, above 'max_train_steps' = 10",
           [](auto& c) { c.options.schedule.warmup_steps = 11; });
    expect("'lr_num_cycles' is 0", [](auto& c) { c.options.schedule.cycles = 0; });
    expect("'lr_power' is 0", [](auto& c) { c.options.schedule.power = 0; });
    expect("'optimizer_momentum' is 1, out of its range. Fix: use a number from 0 to 0.999999.",
           [](auto& c) { c.optimizer.set("optimizer_momentum", "1"); });
    expect("'offload_state_io_block_bytes' is 5000, no multiple",
           [](auto& c) { c.options.engine.tiers.state.io.block_bytes = 5000; });
    expect("'loss_scale_initial' is 0.5, below 'loss_scale_minimum' = 1",
           [](auto& c) { c.options.engine.loss_scale.initial = 0.5; });
    expect("'gradient_accumulation_steps' is 0", [](auto& c) { c.options.engine.gradient_accumulation_steps = 0; });
    expect("'max_grad_norm' is -1", [](auto& c) { c.options.engine.max_grad_norm = -1; });
    expect("'max_grad_norm' is -1",
           [](auto& c) { c.options.engine.max_grad_norm = -1, c.grad_clip_method = config::GradClipMethod::value; });
    expect("'ema_decay' is 1", [](auto& c) { c.options.engine.ema.decay = 1; });
    expect("'ema_update_interval' is 0", [](auto& c) { c.options.engine.ema.interval = 0; });
    expect("'prefetch_bucket_bytes' is -2", [](auto& c) { c.options.engine.prefetch_bucket_bytes = -2; });
    expect("'max_live_parameters' is -1", [](auto& c) { c.options.engine.max_live_parameters = -1; });
    expect("'collective_timeout' is 0", [](auto& c) { c.options.collective_timeout = std::chrono::seconds{0}; });
    expect("'checkpoint_step_interval' is -1", [](auto& c) { c.options.checkpoint_every = -1; });
}

TEST(OptionsFromConfig, EpochsWithoutStepsAreRefused) {
    config::TrainerConfig config;
    config.num_train_epochs = 2;
    const auto message = [&](std::int64_t per_epoch) {
        return thrown_by([&] { (void)options_from<Plain>(config, per_epoch); }).message;
    };
    EXPECT_NE(message(0).find("the data's number of micro-batches an epoch is 0"), std::string::npos) << message(0);
    config.options.engine.gradient_accumulation_steps = 0;
    EXPECT_NE(message(5).find("'gradient_accumulation_steps' is 0"), std::string::npos) << message(5);
    config.num_train_epochs = -2;
    EXPECT_NE(message(5).find("'num_train_epochs' is -2"), std::string::npos) << message(5);
}

TEST(OptionsFromConfig, MomentumIsSgdsAlone) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).engine.update.momentum, Sgd::Options{}.momentum);
    config.optimizer.set("optimizer_momentum", "0.5");
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).engine.update.momentum, 0.5);
    EXPECT_EQ(options_from<Plain>(config, 5).engine.update.beta1, AdamW::Options{}.beta1);
}

TEST(OptionsFromConfig, TheClippingMethodSaysWhatTheLimitIsOf) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.options.engine.max_grad_norm = 0.25;
    EXPECT_EQ(options_from<Plain>(config, 5).engine.max_grad_norm, 0.25);
    EXPECT_EQ(options_from<Plain>(config, 5).engine.max_grad_value, 0.0);
    config.grad_clip_method = config::GradClipMethod::value;
    EXPECT_EQ(options_from<Plain>(config, 5).engine.max_grad_norm, 0.0);
    EXPECT_EQ(options_from<Plain>(config, 5).engine.max_grad_value, 0.25);
}

TEST(OptionsFromConfig, LimitsOfStageThreeAndOfWaitingArrive) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    const auto defaults = options_from<Plain>(config, 5);
    EXPECT_EQ(defaults.engine.prefetch_bucket_bytes, TrainOptions<AdamW>{}.engine.prefetch_bucket_bytes);
    EXPECT_EQ(defaults.engine.max_live_parameters, TrainOptions<AdamW>{}.engine.max_live_parameters);
    EXPECT_EQ(defaults.collective_timeout, TrainOptions<AdamW>{}.collective_timeout);
    config.options.engine.prefetch_bucket_bytes = 7;
    config.options.engine.max_live_parameters = 8;
    config.options.collective_timeout = std::chrono::seconds{9};
    const auto options = options_from<Plain>(config, 5);
    EXPECT_EQ(options.engine.prefetch_bucket_bytes, 7);
    EXPECT_EQ(options.engine.max_live_parameters, 8);
    EXPECT_EQ(options.collective_timeout, std::chrono::seconds{9});
}

TEST(OptionsFromConfig, TheAveragesDecayAndIntervalArrive) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.options.engine.ema.interval = 10;
    const auto options = options_from<SomeTrainer>(config, 5);
    EXPECT_EQ(options.engine.ema.interval, 10);
    EXPECT_EQ(options.engine.ema.decay, 0.995);
    // SimpleTuner's ramp for a decay of 0.995.
    EXPECT_EQ(options.engine.ema.at(1), 0.0);
    EXPECT_NEAR(options.engine.ema.at(2), 0.181818, 1e-6);
    EXPECT_NEAR(options.engine.ema.at(1000), 0.99108, 1e-6);
    EXPECT_EQ(options.engine.ema.at(1791), 0.995);
}

TEST(OptionsFromConfig, AnAverageThatWarmsUpIsTheWeightsAndThenHasItsWholeDecay) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.options.engine.ema.decay = 0.9;
    for (const std::int64_t warmup : {1, 2, 3, 50}) {
        config.ema_warmup_steps = warmup;
        const optim::EmaOptions ema = options_from<SomeTrainer>(config, 5).engine.ema;
        for (std::int64_t step = 1; step < 100; ++step)
            EXPECT_EQ(ema.at(step), step < warmup ? 0.0 : 0.9) << warmup << ", step " << step;
    }
    // What SimpleTuner's own test has: a parameter that is 1, 2, 3 at steps 1, 2, 3.
    config.ema_warmup_steps = 3;
    const optim::EmaOptions ema = options_from<SomeTrainer>(config, 5).engine.ema;
    double average = 0;
    for (const double weight : {1.0, 2.0, 3.0})
        average -= (1 - ema.at(static_cast<std::int64_t>(weight))) * (average - weight);
    EXPECT_NEAR(average, 2.1, 1e-12);
}

TEST(OptionsFromConfig, AnAverageThatTheProgramDoesNotComposeIsRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.use_ema = true;
    const auto error = thrown_by([&] { (void)options_from<Plain>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("'use_ema' is true")) << error.message;
    EXPECT_TRUE(error.says("add Ema<> to the policies")) << error.message;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).max_steps, 1);

    config.use_ema = false;
    config.ema_device = config::EmaDevice::cpu;  // of no account without an average
    EXPECT_EQ(options_from<Plain>(config, 5).max_steps, 1);
}

TEST(OptionsFromConfig, AnAverageThatTheFileForbidsOrPutsElsewhereIsRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).max_steps, 1) << "without the key the program decides";
    config.use_ema = false;
    const auto forbidden = thrown_by([&] { (void)options_from<SomeTrainer>(config, 5); });
    EXPECT_EQ(forbidden.code, Errc::bad_value);
    EXPECT_TRUE(forbidden.says("'use_ema' is false")) << forbidden.message;

    config.use_ema = true;
    config.ema_device = config::EmaDevice::accelerator;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).max_steps, 1);
    const auto on_device = thrown_by([&] { (void)options_from<OnCpu>(config, 5); });
    EXPECT_EQ(on_device.code, Errc::bad_value);
    EXPECT_TRUE(on_device.says("'ema_device' is 'accelerator'")) << on_device.message;
    EXPECT_TRUE(on_device.says("with Ema<Device>, and build it again")) << on_device.message;
    config.ema_device = config::EmaDevice::cpu;
    EXPECT_EQ(options_from<OnCpu>(config, 5).max_steps, 1);
    const auto on_cpu = thrown_by([&] { (void)options_from<SomeTrainer>(config, 5); });
    EXPECT_TRUE(on_cpu.says("'ema_device' is 'cpu'")) << on_cpu.message;
}

}  // namespace
