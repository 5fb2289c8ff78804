#include "config_command.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/any_config.hpp>
#include <strata/config/convert.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>

#include "arguments.hpp"
#include "config_output.hpp"

namespace strata::tools {

namespace {

constexpr std::array options{
    Option{"--json", "", "check, explain: prints one JSON object instead of text"},
    Option{"--format", "FORMAT", "check, explain, convert: what the files are, where their keys do not tell"},
    Option{"--to", "FORMAT", "convert: deepspeed, accelerate or trainer"},
    Option{"--output", "FILE", "convert, schema: writes there instead of standard output"},
    Option{"--help", "", "prints this text"},
};
constexpr std::string_view formats = "trainer (or simpletuner), deepspeed, accelerate, datasets, launch";

void print_help() {
    print(
        "strata config check FILE...         every problem and warning of every file\n"
        "strata config explain FILE...       every key: value, place, what strata does with it; and what is asked for\n"
        "strata config convert FILE --to F   the same in another format\n"
        "strata config schema FORMAT         a JSON Schema for editors\n"
        "strata config reference FORMAT      the tables of its page in docs/config/\n"
        "\n"
        "FILE is a DeepSpeed JSON, an Accelerate YAML, a trainer's configuration (SimpleTuner's config.json, config.toml,\n"
        "config.env), a dataset list, a script that calls accelerate launch, deepspeed or torchrun, a hostfile, or a folder\n"
        "of SimpleTuner's; which it is, its keys tell. FORMAT is one of\n" +
        std::string{formats} + ".\n\n" + help_lines(options) +
        "\nExit status: 0; 1 where a file is refused; 2 for a word that is not understood.\n");
}

config::ConfigFormat format_named(const std::string& name) {
    const auto found =
        name == "simpletuner" ? std::optional{config::ConfigFormat::trainer} : config::format_named(name);
    if (!found)
        throw Error{Errc::bad_argument, "there is no format '" + name + "'",
                    did_you_mean(name, {"trainer", "simpletuner", "deepspeed", "accelerate", "datasets", "launch"},
                                 "use one of " + std::string{formats})};
    return *found;
}

std::vector<config::AnyConfig> read_all(const Arguments& arguments, const std::string& action) {
    if (arguments.words().empty())
        throw Error{Errc::bad_argument, "strata config " + action + " needs a FILE",
                    "type strata config " + action + " FILE"};
    std::vector<config::AnyConfig> all;
    for (const std::string& word : arguments.words()) {
        if (const auto format = arguments.text("--format")) {
            all.push_back(config::look_at_config(word, {}, format_named(*format)));
            continue;
        }
        for (config::AnyConfig& one : config::look_at_configs(word)) {
            const auto is_there = [&](const config::AnyConfig& other) { return other.file == one.file; };
            if (std::none_of(all.begin(), all.end(), is_there)) all.push_back(std::move(one));
        }
    }
    return all;
}

int status_of(const std::vector<config::AnyConfig>& files) {
    return std::any_of(files.begin(), files.end(), [](const auto& one) { return one.findings.refused() > 0; }) ? 1 : 0;
}

void write(const Arguments& arguments, const std::string& text) {
    const auto file = arguments.text("--output");
    if (!file) return print(text);
    std::ofstream to{*file, std::ios::binary};
    if (!(to << text).flush())
        throw Error{Errc::io_failed, "'" + *file + "' cannot be written",
                    "check its folder, its permissions and the disk"};
}

/// What a text that was written says, read as anybody's file of that format.
config::Intent read_back(const std::string& text, config::ConfigFormat format) {
    config::Findings findings;
    if (format == config::ConfigFormat::accelerate)
        return config::read_accelerate(config::parse_yaml(text, "written").root, findings);
    const config::Document document = config::parse_json(text, "written", config::JsonDialect::strict);
    if (format == config::ConfigFormat::deepspeed) return config::read_deepspeed(document.root, findings);
    return config::look_at_trainer_config(document).reading.intent;
}

std::string shown(const config::OptionScalar& scalar) {
    return std::visit([](const auto& value) { return nlohmann::json(value).dump(); }, scalar);
}

/// A line for everything that is asked for and that the format written has no words for, or other ones.
std::vector<std::string> differences(const config::Intent& asked, const config::Intent& written) {
    std::vector<std::string> lines;
    for (const config::OptionValue& one : asked.options) {
        const config::OptionValue* const other = written.find(one.path);
        const auto a = asked.number(one.path), b = written.number(one.path);
        if (other != nullptr && (other->value == one.value || (a && b && *a == *b))) continue;
        lines.push_back(one.path + " = " + shown(one.value) +
                        (other == nullptr ? "" : ", it is " + shown(other->value) + " there") +
                        (one.place.empty() ? "" : " (" + one.place + ")"));
    }
    const config::Composition before = asked.composition.completed(), after = written.composition.completed();
    const auto policy = [&](const auto& member) {
        config::Composition only_before, only_after;  // as C++ has the one that differs
        only_before.*member = before.*member;
        only_after.*member = after.*member;
        if (only_before == only_after) return;
        const std::string was = config::policies(only_before), is = config::policies(only_after);
        lines.push_back((was.empty() ? "the default in place of " + is : was) +
                        (was.empty() || is.empty() ? "" : ", it is " + is + " there"));
    };
    policy(&config::Composition::stage);
    policy(&config::Composition::state);
    policy(&config::Composition::parameters);
    policy(&config::Composition::rule);
    policy(&config::Composition::precision);
    policy(&config::Composition::recompute);
    policy(&config::Composition::average);
    policy(&config::Composition::gradients);
    policy(&config::Composition::moment);
    const auto where = [&](const char* what, const auto& member) {
        if (asked.launch.*member == written.launch.*member) return;
        std::string value;
        if constexpr (requires { (asked.launch.*member).empty(); })
            value = asked.launch.*member;
        else
            value = std::to_string((asked.launch.*member).value_or(0));
        lines.push_back(std::string{what} + ": " + value +
                        "; `strata launch` and mpirun are told by their own options");
    };
    where("ranks", &config::LaunchIntent::ranks);
    where("machines", &config::LaunchIntent::machines);
    where("the number of this machine", &config::LaunchIntent::machine_rank);
    where("the address of rank 0's machine", &config::LaunchIntent::main_address);
    where("its port", &config::LaunchIntent::main_port);
    where("hostfile", &config::LaunchIntent::hostfile);
    where("which hosts", &config::LaunchIntent::include);
    where("which hosts not", &config::LaunchIntent::exclude);
    where("GPUs of this machine", &config::LaunchIntent::gpus);
    if (asked.batch.micro != written.batch.micro) lines.push_back("samples of a rank's micro-batch");
    if (asked.batch.global != written.batch.global) lines.push_back("samples of a step");
    if (asked.rate != written.rate) lines.push_back("the schedule of the learning rate");
    return lines;
}

/// A trainer's configuration as config.json: every key that it has, whatever file it was.
std::string own_keys(const std::filesystem::path& file) {
    const config::Document document = config::load_trainer_document(file);
    std::string text = "{";
    for (const config::Node::Member& member : document.root.members()) {
        const std::string key = member.key.starts_with("--") ? member.key.substr(2) : member.key;
        std::string value = config::write_json(member.value);
        value.pop_back();
        text += (text.size() == 1 ? "\n" : ",\n") + nlohmann::json(key).dump() + ": " + value;
    }
    return nlohmann::ordered_json::parse(text + "\n}").dump(2) + "\n";
}

int convert(const Arguments& arguments) {
    const std::string& file = arguments.only_word("FILE");
    const auto to = arguments.text("--to");
    if (!to)
        throw Error{Errc::bad_argument, "strata config convert needs --to",
                    "type --to deepspeed, accelerate or trainer"};
    const config::ConfigFormat format = format_named(*to);
    if (format == config::ConfigFormat::datasets || format == config::ConfigFormat::launch)
        throw Error{Errc::bad_argument, "nothing is converted to " + std::string{config::name_of(format)},
                    "convert to deepspeed, accelerate or trainer"};
    const auto from = arguments.text("--format");
    if (std::error_code error; std::filesystem::is_directory(file, error))
        throw Error{Errc::unreadable_config, "'" + file + "' is a folder", "name one file of it"};
    const config::AnyConfig config =
        config::look_at_config(file, {}, from ? std::optional{format_named(*from)} : std::nullopt);
    config.findings.throw_if_refused();
    if (config.format == config::ConfigFormat::datasets)
        throw Error{Errc::bad_value,
                    "'" + file + "' is " + std::string{config::name_of(config.format)} + ", which has no other format",
                    "name a DeepSpeed, Accelerate or trainer's configuration"};
    if (!config.intent.missing_files.empty())
        throw Error{Errc::bad_reference,
                    "'" + file + "' names '" + config.intent.missing_files.front() +
                        "', which is not there, and what it says would be missing",
                    "give its path from here, or from '" + file + "'"};
    const auto warn = [](const std::string& words) {
        std::fprintf(stderr, "warning: %s\n", core::printable(words).c_str());
    };
    for (const config::Finding& one : config.findings.all())
        if (one.warns) warn(warned(one) + (one.fix.empty() ? "" : ". Fix: " + one.fix));
    const bool is_the_same = format == config::ConfigFormat::trainer && config.format == format;
    const std::string text = is_the_same ? own_keys(file) : config::convert(config.intent, format);
    for (const std::string& line : differences(config.intent, read_back(text, format)))
        warn("not in " + std::string{config::name_of(format)} + ": " + line);
    write(arguments, text);
    return 0;
}

}  // namespace

int config_command(std::span<const std::string> words) {
    constexpr std::string_view otherwise =
        "type strata config check FILE, explain FILE, convert FILE --to FORMAT or schema FORMAT";
    if (words.empty()) throw Error{Errc::bad_argument, "strata config needs to know what to do", otherwise};
    const std::string& action = words.front();
    if (action == "--help" || action == "help") {
        print_help();
        return 0;
    }
    constexpr std::array actions{"check", "explain", "convert", "schema", "reference"};
    if (std::find(actions.begin(), actions.end(), action) == actions.end())
        throw Error{Errc::bad_argument, "strata config has no command '" + action + "'",
                    did_you_mean(action, {actions.begin(), actions.end()}, otherwise)};
    const Arguments arguments{"strata config " + action, words.subspan(1), options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }
    if (action == "schema" || action == "reference") {
        const config::ConfigFormat format = format_named(arguments.only_word("FORMAT"));
        if (format == config::ConfigFormat::launch)
            throw Error{Errc::bad_argument, "flags of launchers have no schema and no page",
                        "type strata config explain SCRIPT"};
        if (action == "reference" && format == config::ConfigFormat::datasets)
            throw Error{Errc::bad_argument, "there is no table of a dataset list's keys",
                        "read docs/dataset-keys.md, or type strata config schema datasets"};
        write(arguments, action == "schema" ? schema_text(format) : reference_page(format));
        return 0;
    }
    if (action == "convert") return convert(arguments);
    const std::vector<config::AnyConfig> files = read_all(arguments, action);
    print(arguments.has("--json") ? configs_json(files)
          : action == "check"     ? checked_text(files)
                                  : explained_text(files));
    return status_of(files);
}

}  // namespace strata::tools
