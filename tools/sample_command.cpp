#include "sample_command.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/key.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/leftovers.hpp>
#include <strata/train/command_line.hpp>

#include "arguments.hpp"
#include "config_output.hpp"
#include "launch_command.hpp"
#include "program_beside.hpp"
#include "sample/sample_model.hpp"
#include "sample/sample_settings.hpp"

namespace strata::tools {

namespace {

namespace fs = std::filesystem;

constexpr std::array options{
    Option{"-n", "N", "ranks on this machine, which share the pictures; 1"},
    Option{"-v", "", "says what is set and how the ranks are started"},
    Option{"--output", "DIR", "where pictures go; samples"},
    Option{"--help", "", "prints this text"},
};

/// Every key of SampleSettings but the model, which is a word of its own.
std::string settings_help() {
    const auto plain = [](std::string text) {
        std::erase(text, '`');
        return text;
    };
    std::size_t widest = 0;
    std::string text;
    const auto& keys = SampleSettings::schema().keys();
    for (const config::KeyInfo& key : keys) widest = std::max(widest, key.key.size());
    for (const config::KeyInfo& key : keys) {
        if (key.key == "model") continue;
        std::string left = "  --" + key.key;
        left.resize(widest + 6, ' ');
        text += left + plain(key.meaning) + "\n";
        text += std::string(widest + 6, ' ') + plain(key.type) +
                (key.fallback == "null" || key.fallback == "\"\"" ? "" : ", " + key.fallback) + "\n";
    }
    return text;
}

void print_help() {
    print(
        "strata sample MODEL --prompt TEXT [OPTION ...]\n"
        "\n"
        "Draws pictures of prompts. MODEL is a pipeline's folder in the ecosystem's layout, the output directory of a run,\n"
        "which is drawn from its newest whole checkpoint, or a trainer's configuration.\n\n" +
        help_lines(options) + settings_help() +
        "\nA picture is a PNG that says what it was drawn by; several have a grid beside them. What is there already is not\n"
        "replaced. Ctrl-C ends it at once: pictures that are there are whole.\n"
        "\nExit status: 0; 1 for what is refused or fails, 2 for words that are not understood, 130 after Ctrl-C.\n");
}

/// The words of a command line, by what they are.
struct SampleWords {
    std::vector<std::string> models;
    std::vector<std::string> flags;  ///< of strata-train, with their values
    std::vector<std::string> prompts;
    std::vector<std::string> own;  ///< of this command
};

SampleWords sort_words(std::span<const std::string> words) {
    const auto& keys = SampleSettings::schema().keys();
    SampleWords all;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        const bool has_next = i + 1 < words.size();
        if (word == "-v" || word == "--help") {
            all.own.push_back(word);
        } else if (word == "-n" || word.starts_with("-n=")) {
            all.own.push_back(word);
            if (word == "-n" && has_next) all.own.push_back(words[++i]);
        } else if (word.starts_with("--prompt=")) {
            all.prompts.push_back(word.substr(std::string_view{"--prompt="}.size()));
        } else if (word == "--prompt" && has_next && !words[i + 1].starts_with("--")) {
            all.prompts.push_back(words[++i]);
        } else if (word.starts_with("--") && word.size() > 2) {
            all.flags.push_back(word);
            const auto info = std::find_if(keys.begin(), keys.end(),
                                           [&](const config::KeyInfo& one) { return "--" + one.key == word; });
            const bool is_flag = info != keys.end() && info->kind == config::KeyKind::flag;
            if (word.find('=') == std::string::npos && !is_flag && has_next && !words[i + 1].starts_with("--"))
                all.flags.push_back(words[++i]);
        } else if (word.size() > 1 && word.front() == '-') {
            all.own.push_back(word);  // which refuses it
        } else {
            all.models.push_back(word);
        }
    }
    return all;
}

}  // namespace

int sample_command(std::span<const std::string> words) {
    const SampleWords typed = sort_words(words);
    const Arguments arguments{"strata sample", typed.own, options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }
    const auto given = arguments.integer("-n", 1, 1024);
    if (typed.models.size() != 1)
        throw Error{Errc::bad_argument,
                    typed.models.empty() ? "strata sample needs a MODEL"
                                         : "strata sample takes one MODEL, and '" + typed.models[1] + "' is a second",
                    "type strata sample MODEL --prompt \"a red apple\"; strata sample --help says what MODEL may be"};
    std::vector<std::string> flags{"--model", typed.models.front()};
    flags.insert(flags.end(), typed.flags.begin(), typed.flags.end());
    // As one list: a prompt that begins with a bracket, [V] dog, is no JSON.
    if (!typed.prompts.empty())
        flags.push_back("--prompt=" +
                        nlohmann::json(typed.prompts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));

    std::vector<const char*> argv{"strata sample"};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    const std::array keys{train::SettingsKeys::of<SampleSettings>()};
    const auto line = train::CommandLine::parse(static_cast<int>(argv.size()), argv.data(), keys);
    const SampleSettings settings = SampleSettings::schema().read(line.overrides);
    settings.check();
    static_cast<void>(sample_model(settings));

    std::vector<std::string> launched{"-n", std::to_string(given.value_or(1))};
    if (arguments.has("-v")) launched.emplace_back("-v");
    launched.insert(launched.end(), {"--", program_beside("strata-train", "strata_trainer"), "sample"});
    launched.insert(launched.end(), flags.begin(), flags.end());
    const int status = launch_command(launched, WhenAsked::end);
    // Of ranks that were ended while they wrote. Locks keep the files of others.
    if (status > 128) storage::remove_leftovers(line.output.value_or("samples"), 0, std::chrono::seconds{0});
    return status;
}

}  // namespace strata::tools
