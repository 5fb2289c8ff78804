#include "config_output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/trainer_table.hpp>
#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>

#include "table.hpp"
#include "wrapped_text.hpp"

namespace strata::tools {

namespace {

using config::AnyConfig;
using config::ConfigFormat;
using config::Effect;
using config::Finding;

std::string counted(std::size_t number, std::string_view what) {
    return std::to_string(number) + " " + std::string{what} + (number == 1 ? "" : "s");
}

std::string title(ConfigFormat format) {
    switch (format) {
        case ConfigFormat::trainer:
            return "a trainer's configuration";
        case ConfigFormat::deepspeed:
            return "DeepSpeed";
        case ConfigFormat::accelerate:
            return "Accelerate";
        case ConfigFormat::launch:
            return "ranks and what they start";
        case ConfigFormat::datasets:
            break;
    }
    return "a dataset list";
}

std::string head(const AnyConfig& file) {
    const std::vector<Finding>& all = file.findings.all();
    const bool is_read = !(all.size() == 1 && all[0].effect == Effect::refused && all[0].key.empty());
    if (!is_read) return core::printable(file.file.string()) + ": cannot be read\n";
    return core::printable(file.file.string()) + ": " + title(file.format) + ", " +
           counted(file.findings.all().size(), "key") + ", " + counted(file.findings.refused(), "problem") + ", " +
           counted(file.findings.warnings(), "warning") + "\n";
}

/// What the configuration asks for besides its numbers.
std::string asked_for(const AnyConfig& file) {
    if (file.format == ConfigFormat::datasets) return {};
    const std::string policies = config::policies(file.intent.composition);
    std::string text = "  asks for: Trainer<" + std::string{policies.empty() ? "Model" : "Model, "} + policies + ">\n";
    const config::BatchIntent& batch = file.intent.batch;
    const config::LaunchIntent& launch = file.intent.launch;
    if (launch.ranks)
        text += "  runs on: " + counted(static_cast<std::size_t>(*launch.ranks), "rank") +
                (launch.machines ? ", " + counted(static_cast<std::size_t>(*launch.machines), "machine") : "") + "\n";
    if (batch.global) text += "  samples of a step: " + std::to_string(*batch.global) + "\n";
    if (batch.micro) text += "  samples of a rank's micro-batch: " + std::to_string(*batch.micro) + "\n";
    for (const config::Automatic& one : file.intent.automatic)
        text += "  left to who runs it: " + core::printable(one.key) + " (" + one.to + ")\n";
    for (const std::string& missing : file.intent.missing_files)
        text += "  a file that is not there: " + core::printable(missing) + "\n";
    return text;
}

const config::FormatTable& table_of(ConfigFormat format) {
    if (format == ConfigFormat::deepspeed) return config::deepspeed_table();
    if (format == ConfigFormat::accelerate) return config::accelerate_table();
    return config::trainer_table();
}

std::string effect_of(const Finding& one) {
    std::string text{config::name_of(one.effect)};
    if (!one.to.empty()) text += ": " + one.to;
    if (!one.words.empty()) text += (one.to.empty() ? ": " : "; ") + one.words;
    return text + (one.fix.empty() ? "" : ". Fix: " + one.fix);
}

/// Of a value what a column has room for, in whole characters.
std::string cut(const std::string& value) {
    constexpr std::size_t most = 20;
    if (value.size() <= most) return value;
    std::size_t end = most - 3;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xC0U) == 0x80U) --end;
    return value.substr(0, end) + "...";
}

/// The file that a key stands in; empty for a flag, a variable, and a key that a file leaves out.
std::string file_of(const Finding& one) {
    if (one.mark.line == 0) return {};
    const std::string mark = ":" + std::to_string(one.mark.line) + ":" + std::to_string(one.mark.column);
    return one.place.substr(0, one.place.size() - std::min(one.place.size(), mark.size()));
}

/// What was found in one file, in its order; the name is empty for flags and variables.
struct OfFile {
    std::string file;
    std::vector<const Finding*> findings;
};
std::vector<OfFile> by_file(std::span<const Finding> findings) {
    std::vector<OfFile> files;
    const auto of = [&](const std::string& file) {
        return std::find_if(files.begin(), files.end(), [&](const OfFile& known) { return known.file == file; });
    };
    // Files first: of a key that a file leaves out, the place is the file's name.
    for (const Finding& one : findings)
        if (const std::string file = file_of(one); !file.empty() && of(file) == files.end())
            files.push_back({file, {}});
    for (const Finding& one : findings) {
        const std::string file = of(one.place) != files.end() ? one.place : file_of(one);
        if (of(file) == files.end()) files.push_back({file, {}});
        of(file)->findings.push_back(&one);
    }
    return files;
}

/// Key, value, place in the file, effect.
using KeyLine = std::array<std::string, 4>;
KeyLine line_of(const Finding& one, const std::string& file) {
    const bool needs_eyes = one.warns || one.effect == Effect::refused;
    const std::string place = !file.empty() ? one.place.substr(std::min(one.place.size(), file.size() + 1))
                              : one.place == "--" + one.key ? ""  // a flag: its key says it
                                                            : one.place;
    return {core::printable(one.key.empty() ? "(the file)" : one.key), core::printable(cut(one.value)),
            core::printable(place), core::printable((needs_eyes ? "! " : "") + effect_of(one))};
}

/// A line a key, the keys of a file together; its effect is behind it where a terminal has the room, and below it
/// otherwise.
///
///   names_files  a line in front of each file's keys, even if there is but one
std::string keys_text(std::span<const Finding> findings, bool names_files) {
    const std::vector<OfFile> files = by_file(findings);
    std::array<std::size_t, 3> widths{3, 5, 4};
    for (const OfFile& of : files)
        for (const Finding* const one : of.findings) {
            const KeyLine line = line_of(*one, of.file);
            for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
        }
    const std::size_t columns = terminal_columns().value_or(100);
    const std::size_t left = 2 + widths[0] + 2 + widths[1] + 2 + widths[2] + 2;
    Table table{{{"key"}, {"value"}, {"from"}, {"effect"}}};
    std::vector<std::string> above{""}, below{""};  // of each line; the heading has nothing
    for (const OfFile& of : files) {
        const std::string name = of.file.empty() ? "(command line and environment)" : core::printable(of.file);
        above.push_back(names_files || files.size() > 1 ? name + "\n" : "");
        for (const Finding* const one : of.findings) {
            auto [key, value, place, effect] = line_of(*one, of.file);
            const bool fits = left + effect.size() <= columns;
            below.push_back(fits ? "" : wrapped(effect, "      ", "      ", columns));
            table.row({key, value, place, fits ? effect : ""});
        }
        above.resize(below.size());
    }
    std::istringstream lines{table.text("  ")};
    std::string text;
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line); ++number)
        text += above.at(number) + line + "\n" + below.at(number);
    return text;
}

nlohmann::ordered_json json_of(const AnyConfig& file) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const Finding& one : file.findings.all()) {
        nlohmann::ordered_json finding{{"effect", config::name_of(one.effect)},
                                       {"warns", one.warns},
                                       {"place", one.place},
                                       {"pointer", one.pointer},
                                       {"key", one.key},
                                       {"value", one.value}};
        if (one.effect == Effect::refused) finding["code"] = "ST" + std::to_string(static_cast<int>(one.code));
        if (!one.to.empty()) finding["to"] = one.to;
        if (!one.words.empty()) finding["words"] = one.words;
        if (!one.fix.empty()) finding["fix"] = one.fix;
        findings.push_back(std::move(finding));
    }
    nlohmann::ordered_json all{{"file", file.file.string()},
                               {"format", config::name_of(file.format)},
                               {"problems", file.findings.refused()},
                               {"warnings", file.findings.warnings()}};
    if (file.format != ConfigFormat::datasets) all["policies"] = config::policies(file.intent.composition);
    all["missing_files"] = file.intent.missing_files;
    all["findings"] = std::move(findings);
    return all;
}

/// The keys of a dataset list's entries, of every kind, as a schema of a list.
nlohmann::ordered_json datasets_schema() {
    nlohmann::ordered_json properties = nlohmann::ordered_json::object();
    const auto add = [&](const auto& schema) {
        for (const config::KeyInfo& info : schema.keys())
            properties[info.key] = {{"description", info.meaning + " (" + info.type + ")"}};
        for (const config::IdleKey& idle : schema.idle())
            properties[std::string{idle.key}] = {{"description", "no effect: " + std::string{idle.why}}};
    };
    add(config::conditioning_schema());  // first: of keys that images have too, theirs is what stays
    add(config::image_schema());
    add(config::text_embeds_schema());
    add(config::image_embeds_schema());
    return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
            {"title", "A dataset list of strata"},
            {"type", "array"},
            {"items", {{"type", "object"}, {"properties", std::move(properties)}, {"required", {"id"}}}}};
}

}  // namespace

std::string warned(const Finding& one) {
    std::string text = one.place;
    for (const std::string& part : {one.pointer.empty() ? one.key : one.pointer, one.words})
        if (!part.empty()) text += (text.empty() ? "" : ": ") + part;
    return text;
}

std::string checked_text(std::span<const AnyConfig> files) {
    const auto columns = terminal_columns();
    std::string text;
    for (const AnyConfig& file : files) {
        text += head(file);
        for (const bool refused : {true, false})
            for (const Finding& one : file.findings.all()) {
                if ((one.effect == Effect::refused) != refused || (!refused && !one.warns)) continue;
                const std::string line = core::printable(refused ? config::sentence(one) : warned(one)) +
                                         (one.fix.empty() ? "" : ". Fix: " + core::printable(one.fix));
                const std::string first = std::string{"  "} + (refused ? "problem: " : "warning: ");
                // In a file or a pipe a finding is one line, which other programs find.
                text += columns ? wrapped(line, first, "           ", *columns) : first + line + "\n";
            }
    }
    return text;
}

std::string explained_text(std::span<const AnyConfig> files) {
    std::string text;
    for (const AnyConfig& file : files) {
        text += head(file);
        text += keys_text(file.findings.all(), false) + asked_for(file);
    }
    return text;
}

std::string understood_text(std::span<const Finding> findings) { return keys_text(findings, true); }

std::string configs_json(std::span<const AnyConfig> files) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    std::size_t problems = 0;
    std::size_t warnings = 0;
    for (const AnyConfig& file : files) {
        all.push_back(json_of(file));
        problems += file.findings.refused();
        warnings += file.findings.warnings();
    }
    const nlohmann::ordered_json answer{{"files", std::move(all)}, {"problems", problems}, {"warnings", warnings}};
    return answer.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string schema_text(ConfigFormat format) {
    return format == ConfigFormat::datasets ? datasets_schema().dump(2) + "\n" : config::json_schema(table_of(format));
}

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw Error{Errc::io_failed, "standard output cannot be written", "see whether the disk is full"};
}

}  // namespace strata::tools
