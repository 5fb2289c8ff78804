// Intents written and read again are the same, but for what a format has no words for; and texts that nobody meant to write
// are refused in words of ours, in bounded time.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/convert.hpp>
#include <strata/config/disagreements.hpp>
#include <strata/config/launch_script.hpp>
#include <strata/config/trainer_config.hpp>

namespace {

using namespace strata::config;
using Random = std::mt19937;

int below(Random& random, int bound) { return std::uniform_int_distribution<int>{0, bound - 1}(random); }
bool maybe(Random& random) { return below(random, 2) == 0; }

/// What a configuration of any of the three formats can say of stage, tiers, precision, numbers and ranks.
Intent generated(Random& random) {
    Intent intent;
    Composition& composition = intent.composition;
    const int stage = below(random, 4);
    composition.stage = stage;
    composition.precision =
        std::array{FormatName::fp32, FormatName::bf16, FormatName::fp16}[static_cast<std::size_t>(below(random, 3))];
    const auto tier = [&] {
        return KeptOn::all_on(
            std::array{TierName::device, TierName::cpu, TierName::nvme}[static_cast<std::size_t>(below(random, 3))]);
    };
    if (stage >= 1 && maybe(random)) composition.state = tier();
    if (stage == 3 && maybe(random)) composition.parameters = tier();
    const auto on_disk = [](const std::optional<KeptOn>& kept) { return kept && kept->uses(TierName::nvme); };
    if (on_disk(composition.state) || on_disk(composition.parameters))
        intent.set("engine.tiers.nvme_path", std::string{"/scratch/a folder"});
    if (maybe(random)) intent.set("engine.gradient_accumulation_steps", std::int64_t{1 + below(random, 64)});
    if (maybe(random)) intent.set("engine.max_grad_norm", below(random, 100) / 8.0);
    return intent;
}
/// What DeepSpeed has words for besides.
void add_numbers(Intent& intent, Random& random) {
    if (maybe(random)) intent.batch.micro = 1 + below(random, 32);
    if (maybe(random)) {
        constexpr std::array rules{RuleName::adamw, RuleName::lion, RuleName::lamb, RuleName::adam};
        const RuleName rule = rules[static_cast<std::size_t>(below(random, 4))];
        intent.composition.rule = rule;
        intent.set("schedule.lr", (1 + below(random, 1000)) * 1e-6);
        intent.set("engine.update.beta1", 0.9);
        intent.set("engine.update.beta2", 0.95 + below(random, 40) * 1e-3);
        intent.set("engine.update.weight_decay", below(random, 10) * 0.01);
        if (rule != RuleName::lion) intent.set("engine.update.epsilon", 1e-8);
        if (rule == RuleName::lamb) intent.set("engine.update.bias_correction", maybe(random));
    }
    if (maybe(random))
        intent.rate = strata::optim::WarmupDecayLr{.min_lr = 0,
                                                   .max_lr = 1e-4,
                                                   .warmup_steps = 1 + below(random, 100),
                                                   .total_steps = 200 + below(random, 100),
                                                   .curve = strata::optim::WarmupCurve::linear};
}
void add_ranks(LaunchIntent& launch, Random& random) {
    if (maybe(random)) launch.ranks = 8 * (1 + below(random, 16));
    if (maybe(random)) {
        launch.machines = std::array{1, 2, 4, 8}[static_cast<std::size_t>(below(random, 4))];
        launch.machine_rank = below(random, static_cast<int>(*launch.machines));
        launch.main_address = "10.0.0.1";
        launch.main_port = 1024 + below(random, 60000);
    }
}
Intent read_back(const std::string& text, ConfigFormat format) {
    Findings findings;
    Intent intent;
    if (format == ConfigFormat::trainer) {
        const TrainerConfig config = look_at_trainer_config(parse_json(text, "written", JsonDialect::strict));
        findings = config.reading.findings;
        intent = config.reading.intent;
    } else if (format == ConfigFormat::accelerate) {
        intent = read_accelerate(parse_yaml(text, "written").root, findings);
    } else {
        intent = read_deepspeed(parse_json(text, "written", JsonDialect::strict).root, findings);
    }
    EXPECT_EQ(findings.refused(), 0U) << findings.table() << text;
    return intent;
}
void expect_same(const Intent& intent, const Intent& again, const std::string& text) {
    EXPECT_TRUE(again.composition == intent.composition && again.batch == intent.batch && again.rate == intent.rate)
        << policies(intent.composition) << "\n"
        << text;
    EXPECT_EQ(again.launch, intent.launch) << text;
    for (const OptionValue& option : intent.options) {
        const OptionValue* const other = again.find(option.path);
        ASSERT_NE(other, nullptr) << option.path << "\n" << text;
        const auto a = intent.number(option.path), b = again.number(option.path);
        EXPECT_TRUE(a && b ? *a == *b : other->value == option.value) << option.path << "\n" << text;
    }
}

TEST(RoundTrips, IntentsThatDeepSpeedHasWordsForComeBack) {
    Random random{1};  // NOLINT: the same intents every time
    for (int i = 0; i < 300; ++i) {
        Intent intent = generated(random);
        add_numbers(intent, random);
        const std::string text = convert(intent, ConfigFormat::deepspeed);
        expect_same(intent, read_back(text, ConfigFormat::deepspeed), text);
    }
}

TEST(RoundTrips, IntentsThatAccelerateHasWordsForComeBack) {
    Random random{2};  // NOLINT
    for (int i = 0; i < 300; ++i) {
        Intent intent = generated(random);
        add_ranks(intent.launch, random);
        const std::string text = convert(intent, ConfigFormat::accelerate);
        expect_same(intent, read_back(text, ConfigFormat::accelerate), text);
    }
}

TEST(RoundTrips, IntentsComeBackFromOurOwnConfiguration) {
    Random random{3};  // NOLINT
    for (int i = 0; i < 300; ++i) {
        Intent intent = generated(random);
        add_numbers(intent, random);
        add_ranks(intent.launch, random);
        const std::string text = convert(intent, ConfigFormat::trainer);
        expect_same(intent, read_back(text, ConfigFormat::trainer), text);
    }
}

TEST(RoundTrips, AllThreeFormatsSayTheSameOfWhatAllHaveWordsFor) {
    Random random{4};  // NOLINT
    for (int i = 0; i < 100; ++i) {
        Intent intent = generated(random);
        const Intent first = intent;
        for (const ConfigFormat format :
             {ConfigFormat::deepspeed, ConfigFormat::accelerate, ConfigFormat::trainer, ConfigFormat::deepspeed})
            intent = read_back(convert(intent, format), format);
        EXPECT_EQ(intent.composition, first.composition);
        EXPECT_TRUE(disagreements(first, intent).empty());
    }
}

/// Reads a text as every format, and expects what is thrown to be ours.
void read_as_anything(const std::string& text) {
    const auto ours = [&](const auto& read) {
        try {
            read();
        } catch (const strata::Error& problem) {
            const std::string message = problem.what();
            EXPECT_TRUE(message.starts_with("[ST")) << message;
            EXPECT_FALSE(problem.fix().empty()) << message;
            for (const char* raw : {"json.exception", "yaml-cpp", "bad conversion", "basic_string", "std::", "stoi"})
                EXPECT_EQ(message.find(raw), std::string::npos) << message;
        }
    };
    const auto all = [&](const Document& document) {
        Findings findings;
        findings.take(document);
        ours([&] { (void)convert(read_deepspeed(document.root, findings), ConfigFormat::accelerate); });
        ours([&] { (void)convert(read_accelerate(document.root, findings), ConfigFormat::deepspeed); });
        ours([&] { (void)look_at_trainer_config(document); });
        (void)findings.table();
    };
    ours([&] { all(parse_json(text, "f", JsonDialect::relaxed)); });
    ours([&] { all(parse_yaml(text, "f")); });
    ours([&] { (void)parse_env(text, "f", [](const std::string&) { return std::optional<std::string>{}; }); });
    ours([&] {
        Findings findings;
        (void)read_launch_script(text, "f", findings, {.folder = "/nowhere", .environment = [](const std::string&) {
                                                           return std::optional<std::string>{};
                                                       }});
        (void)findings.table();
    });
}

TEST(RoundTrips, TextsThatNobodyMeantAreRefusedInWordsOfOurs) {
    const std::string deep_json(100'000, '[');
    std::string deep_object, deep_yaml, anchors = "a0: &a0 [x, x]\n";
    for (int i = 0; i < 500; ++i) {
        deep_object += "{\"a\":";
        deep_yaml += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    }
    for (int i = 1; i < 40; ++i)
        anchors += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
                   std::to_string(i - 1) + "]\n";
    const std::string zeros(200'000, '0');
    using namespace std::string_literals;
    const std::vector<std::string> texts{"",
                                         " ",
                                         "\xEF\xBB\xBF",
                                         "\xEF\xBB\xBF{}",
                                         "\xFF\xFE{\0}\0"s,
                                         "\0"s,
                                         "{\"a\": \"\0\"}"s,
                                         "{\"a\\u0000\": 1}",
                                         "{\"train_batch_size\": \"\xC3\x28\"}",
                                         "{\"a\": \"\\ud800\"}",
                                         deep_json,
                                         deep_object,
                                         deep_yaml,
                                         anchors,
                                         "{\"train_batch_size\": 1" + zeros + "}",
                                         "{\"train_batch_size\": 0." + zeros + "1}",
                                         "{\"train_batch_size\": 1e" + zeros.substr(0, 1000) + "9}",
                                         "{\"fp16\": {\"loss_scale\": -Infinity}}",
                                         "{\"zero_optimization\": {\"stage\": 1, \"stage\": 2, \"stage\": 3}}",
                                         "? [a, b]\n: c\n",
                                         "a: *nothing\n",
                                         "%YAML 9.9\n---\na: 1\n",
                                         "--- 1\n--- 2\n",
                                         "!!python/object:os.system x\n",
                                         "<<: [1, 2]\n",
                                         "a: &x {b: *x}\n",
                                         "export A=$((1/0))\n",
                                         "export A=$((9223372036854775807 + 1))\n",
                                         "export A=\"unclosed\n",
                                         "if [[ a == a ]]; then\n",
                                         "deepspeed --num_gpus=" + zeros + " t.py\n",
                                         "deepspeed \"" + deep_json + "\" t.py\n",
                                         "accelerate launch --num_processes \"$(" + std::string(5000, '(') + "\n",
                                         "deepspeed -H\n",
                                         "torchrun\n",
                                         "torchrun --nnodes=1:4 --nproc_per_node=-3 --rdzv_endpoint=: t.py\n",
                                         "deepspeed <<X\n",
                                         "deepspeed --include @:@ t.py",
                                         "accelerate launch --zero_stage=7 --machine_rank=-1 t.py\n"};
    const auto begin = std::chrono::steady_clock::now();
    for (const std::string& text : texts) read_as_anything(text);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{60}) << "bounded, even under a sanitizer";
}

TEST(RoundTrips, DamagedScriptsAndSettingsAreRefusedInWordsOfOurs) {
    const std::vector<std::string> texts{
        "#!/bin/bash\n#SBATCH --nodes=2\nexport N=4\nsrun accelerate launch --config_file a.yaml --num_processes $N \\\n"
        "  --mixed_precision=\"bf16\" train.py --deepspeed ds.json > log 2>&1 &\n",
        "deepspeed --hostfile hosts --include 'a@b:0,1' --master_port 29500 train.py --deepspeed_config x.json\n",
        "export OPTIMIZER=adamw\nexport LEARNING_RATE=1e-4\nif [[ \"$X\" == \"y\" ]]; then\n  export A=$((1+2))\nfi\n",
        "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 2\n  gradient_clipping: 1.0\n",
        "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true}, \"train_batch_size\": \"auto\"}"};
    Random random{5};  // NOLINT: the same damage every time
#ifdef STRATA_MANY_ROUNDS
    constexpr int rounds = STRATA_MANY_ROUNDS;
#else
    constexpr int rounds = 150;
#endif
    using namespace std::string_view_literals;
    constexpr std::string_view odd = "{}[]()\"'`$\\|&;<>#=-:,*!%@~\n\t \0\xFF\xC3"sv;
    for (int round = 0; round < rounds; ++round)
        for (std::string text : texts) {
            const auto place = [&] { return static_cast<std::size_t>(below(random, static_cast<int>(text.size()))); };
            for (int times = 1 + below(random, 4); times > 0 && !text.empty(); --times) {
                const char one = odd[static_cast<std::size_t>(below(random, static_cast<int>(odd.size())))];
                switch (below(random, 5)) {
                    case 0:
                        text.resize(place());
                        break;
                    case 1:
                        text[place()] = one;
                        break;
                    case 2:
                        text.insert(place(), std::string(static_cast<std::size_t>(1 + below(random, 3)), one));
                        break;
                    case 3:
                        text.erase(place(), static_cast<std::size_t>(1 + below(random, 10)));
                        break;
                    default:
                        text.insert(place(), text.substr(place(), 40));
                }
            }
            read_as_anything(text);
        }
}

}  // namespace
