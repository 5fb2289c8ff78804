#include "train_command.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <strata/config/any_config.hpp>
#include <strata/core/error.hpp>
#include <strata/train/command_line.hpp>

#include "arguments.hpp"
#include "config_output.hpp"
#include "launch_command.hpp"
#include "program_beside.hpp"
#include "train/train_plan.hpp"
#include "train/train_settings.hpp"

namespace strata::tools {

namespace {

namespace fs = std::filesystem;
using config::ConfigFormat;

constexpr std::array options{
    Option{"-n", "N", "ranks on this machine; else num_processes of a file or flag, else 1"},
    Option{"-v", "", "says what is set and how the ranks are started"},
    Option{"--dry-run", "", "prints what was understood, and which trainer it makes; trains nothing"},
    Option{"--output", "DIR", "where results go, in place of output_dir"},
    Option{"--fresh", "", "starts over: removes what an earlier run left in the output directory"},
    Option{"--KEY", "VALUE", "in place of what the files say: --learning_rate 1e-4 --optimizer lion"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    print(
        "strata train CONFIG... [OPTION ...]\n"
        "\n"
        "Trains what configurations ask for, as they are: a trainer's configuration (SimpleTuner's config.json, config.toml,\n"
        "config.env, or the folder they are in), over it an Accelerate YAML, over that a DeepSpeed JSON; and a dataset list.\n"
        "Which is which, their keys tell. What was understood of every key is printed first, in one table.\n\n" +
        help_lines(options) +
        "\nEvery key of a trainer's configuration is such a flag; strata-train --help lists them. Ranks are started, and stop\n"
        "when they are asked to, as with `strata launch`.\n"
        "\nExit status: as of strata launch; 1 for files that are refused, before a rank is started.\n");
}

/// The words of a command line, by what they are.
struct TrainWords {
    std::vector<std::string> files;
    std::vector<std::string> flags;  ///< of strata-train, with their values
    std::vector<std::string> own;    ///< of this command
};

TrainWords sort_words(std::span<const std::string> words) {
    const auto& keys = TrainSettings::schema().keys();
    TrainWords all;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const std::string_view next = i + 1 < words.size() ? std::string_view{words[i + 1]} : "--";
        if (word == "-v" || word == "--dry-run" || word == "--help") {
            all.own.push_back(word);
        } else if (word == "-n" || word.starts_with("-n=")) {
            all.own.push_back(word);
            if (word == "-n" && i + 1 < words.size()) all.own.push_back(words[++i]);
        } else if (word.starts_with("--")) {
            all.flags.push_back(word);
            if (word.find('=') != std::string::npos || word == "--fresh" || next.starts_with("--")) continue;
            const auto info = std::find_if(keys.begin(), keys.end(), [&](const config::KeyInfo& one) {
                return "--" + one.key == word || (!one.alias.empty() && "--" + one.alias == word);
            });
            const bool is_flag = info != keys.end() && info->kind == config::KeyKind::flag;
            if (!is_flag || next == "true" || next == "false") all.flags.push_back(words[++i]);
        } else if (word.size() > 1 && word.front() == '-') {
            all.own.push_back(word);  // which refuses it
        } else {
            all.files.push_back(word);
        }
    }
    return all;
}

/// The files of each format, at most one; the trainer's names some of them.
class Files {
public:
    void add(const std::string& word) {
        std::error_code none;
        const bool is_folder = fs::is_directory(word, none);
        for (const config::AnyConfig& one : config::look_at_configs(word)) {
            // What lies beside a configuration, or is named by it, is no second word.
            if (one.file != word && !(is_folder && one.format == ConfigFormat::trainer) && is_named(one)) continue;
            if (one.format == ConfigFormat::launch)
                throw Error{Errc::bad_argument,
                            "'" + word + "' is a script or a hostfile, which holds no run's settings",
                            "name the files that it names; strata config explain " + word + " lists them"};
            auto& file = files_.at(static_cast<std::size_t>(one.format));
            if (file && one.file == word)
                throw Error{Errc::bad_argument,
                            "'" + file->string() + "' and '" + one.file.string() + "' are both " +
                                std::string{name_of(one.format)} + " configurations",
                            "name one of them"};
            if (!file) file = one.file;
            if (one.trainer) trainer_ = one;
        }
    }
    /// Flags that name them. The first of them is --config.
    [[nodiscard]] std::vector<std::string> flags() const {
        constexpr std::array order{std::pair{ConfigFormat::trainer, ""},
                                   std::pair{ConfigFormat::deepspeed, "--deepspeed_config"},
                                   std::pair{ConfigFormat::accelerate, "--accelerate_config"},
                                   std::pair{ConfigFormat::datasets, "--data_backend_config"}};
        std::vector<std::string> words;
        for (const auto& [format, flag] : order) {
            const auto& file = files_.at(static_cast<std::size_t>(format));
            if (!file) continue;
            words.insert(words.end(), {words.empty() ? "--config" : flag, file->string()});
        }
        return words;
    }

private:
    /// Whether the trainer's configuration says itself which file of that format there is.
    [[nodiscard]] bool is_named(const config::AnyConfig& file) const {
        return file.format == ConfigFormat::datasets || (trainer_ && config::names_file(*trainer_, file.format));
    }
    std::array<std::optional<fs::path>, 5> files_;  // by format
    std::optional<config::AnyConfig> trainer_;
};

/// What the configuration says, where -n does not.
int ranks_of(const TrainSettings& settings, const std::optional<std::int64_t>& given) {
    if (given) return static_cast<int>(*given);
    const config::LaunchIntent& launch = settings.reading.intent.launch;
    if (launch.machines.value_or(1) > 1)
        throw Error{Errc::bad_argument,
                    "the configuration is for " + std::to_string(*launch.machines) +
                        " machines, and strata train starts ranks on this one",
                    "type -n RANKS to train on this machine alone, or on every one of them strata launch --config "
                    "ACCELERATE_YAML -- strata-train --config CONFIG"};
    const std::int64_t ranks = launch.ranks.value_or(1);
    if (ranks < 1 || ranks > 1024)
        throw Error{Errc::bad_argument, "the configuration asks for " + std::to_string(ranks) + " ranks",
                    "type -n with a number from 1 to 1024"};
    return static_cast<int>(ranks);
}

}  // namespace

int train_command(std::span<const std::string> words) {
    const TrainWords typed = sort_words(words);
    const Arguments arguments{"strata train", typed.own, options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }
    const auto given = arguments.integer("-n", 1, 1024);
    Files files;
    for (const std::string& word : typed.files) files.add(word);
    std::vector<std::string> flags = files.flags();
    if (flags.empty())
        throw Error{Errc::bad_argument, "strata train needs a CONFIG",
                    "type strata train config.json; strata train --help says what it may be"};
    flags.insert(flags.end(), typed.flags.begin(), typed.flags.end());
    if (given) flags.insert(flags.end(), {"--num_processes", std::to_string(*given)});

    std::vector<const char*> argv{"strata train"};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    const std::array keys{train::SettingsKeys::of<TrainSettings>()};
    const auto line = train::CommandLine::parse(static_cast<int>(argv.size()), argv.data(), keys);
    const TrainSettings settings = TrainSettings::load(*line.config, line.overrides);
    if (const std::string& gpus = settings.reading.intent.launch.gpus; !gpus.empty())
        ::setenv("CUDA_VISIBLE_DEVICES", gpus.c_str(), 1);
    const int ranks = ranks_of(settings, given);
    const TrainPlan plan = plan_training(settings, ranks);
    if (arguments.has("--dry-run")) {
        print(plan.text);
        return 0;
    }
    std::vector<std::string> launched{"-n", std::to_string(ranks)};
    if (arguments.has("-v")) launched.emplace_back("-v");
    launched.insert(launched.end(), {"--", program_beside("strata-train", "strata_trainer")});
    launched.insert(launched.end(), flags.begin(), flags.end());
    return launch_command(launched);
}

}  // namespace strata::tools
