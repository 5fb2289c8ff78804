#include "codegen_command.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <strata/config/codegen.hpp>
#include <strata/config/convert.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/intent_options.hpp>
#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>
#include <strata/options/train_options.hpp>
#include <strata/storage/atomic_file.hpp>

#include "arguments.hpp"
#include "config_output.hpp"

namespace strata::tools {

namespace {

constexpr std::array options{
    Option{"--output", "HEADER", "writes there instead of printing; a header that would be the same is left as it is"},
    Option{"--depfile", "FILE", "writes there, for make and ninja, which files the header was made of"},
    Option{"--name", "NAME", "the namespace of what it declares; otherwise the file's name"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata codegen FILE\n"
        "\n"
        "Prints a C++ header of a DeepSpeed or Accelerate configuration: its composition as a type, Setup, and its\n"
        "numbers as a function that gives them to a trainer's options. In CMake, strata_add_setup(TARGET FILE) does\n"
        "it whenever FILE changes.\n"
        "\n%s\n"
        "Exit status: 0; 1 where the configuration is wrong, with a line FILE:LINE:COLUMN: error: ... for every\n"
        "problem; 2 for a word that is not understood.\n",
        help_lines(options).c_str());
}

/// "error" or "warning" between the place and the words, as compilers have it and editors find it.
void print_finding(const config::Finding& finding, const std::string& file) {
    const bool is_error = finding.effect == config::Effect::refused;
    const std::string place = finding.place.empty() ? file : finding.place;
    std::string text = is_error ? config::sentence(finding) : warned(finding);
    if (text.starts_with(place + ": ")) text.erase(0, place.size() + 2);
    if (is_error) text = "[ST" + std::to_string(static_cast<unsigned>(finding.code)) + "] " + text;
    if (!finding.fix.empty()) text += ". Fix: " + finding.fix;
    std::fprintf(stderr, "%s: %s: %s\n", core::printable(place).c_str(), is_error ? "error" : "warning",
                 core::printable(text).c_str());
}

/// Numbers that strata's options cannot be given, a line each. Returns how many there are.
std::size_t print_out_of_range(const config::Intent& intent, const std::string& file) {
    std::size_t problems = 0;
    for (const config::OptionValue& one : intent.options) {
        config::Intent alone;
        alone.set(one.path, one.value);
        try {
            TrainOptions<zero::NoRule> given;
            static_cast<void>(config::apply(alone, given));
        } catch (const Error& error) {
            const std::string& place = one.place.empty() ? file : one.place;
            std::fprintf(stderr, "%s: error: %s\n", core::printable(place).c_str(), error.what());
            ++problems;
        }
    }
    return problems;
}

/// The files that keys were found in, as make and ninja read them: a change of any makes the header anew.
std::string dependencies(const std::string& header, const std::string& file, const config::Findings& findings) {
    const auto escaped = [](const std::string& path) {
        std::string text;
        for (const char c : path) {
            if (c == ' ' || c == '#' || c == '\\') text += '\\';
            text += c == '$' ? "$$" : std::string{c};
        }
        return text;
    };
    std::set<std::string> files{file};
    for (const config::Finding& one : findings.all()) {
        if (one.mark.line == 0) continue;
        const std::size_t end = one.place.rfind(':', one.place.rfind(':') - 1);
        files.insert(one.place.substr(0, end));
    }
    std::string text = escaped(header) + ":";
    for (const std::string& one : files) text += " " + escaped(std::filesystem::absolute(one).string());
    return text + "\n";
}

/// A file that is no configuration at all: the error names it, with line and column where there are some.
void print_error(const Error& error, const std::string& file) {
    const std::string& text = error.problem();
    std::string place = file;
    if (text.starts_with(file)) {
        const std::size_t end = text.find_first_not_of(":0123456789", file.size());
        place = text.substr(0, end);
        while (place.ends_with(':')) place.pop_back();
    }
    std::fprintf(stderr, "%s: error: %s\n", core::printable(place).c_str(), error.what());
}

void write(const std::filesystem::path& header, const std::string& text) {
    // What includes it is not compiled again when nothing in it has changed.
    std::ifstream in{header, std::ios::binary};
    if (in && std::string{std::istreambuf_iterator<char>{in}, {}} == text) return;
    storage::write_file(header, text);
}

}  // namespace

int codegen_command(std::span<const std::string> words) {
    const Arguments arguments{"strata codegen", words, options};
    if (arguments.has("--help")) {
        print_help();
        return 0;
    }
    const std::string& file = arguments.only_word("FILE");
    if (arguments.has("--depfile") && !arguments.has("--output"))
        throw Error{Errc::bad_argument, "--depfile says of what file a header is made, and needs --output",
                    "add --output HEADER"};
    const std::string name = arguments.text("--name").value_or(config::identifier_of(file));
    if (config::identifier_of(name) != name)
        throw Error{
            Errc::bad_argument,
            "'" + name + "' cannot be a namespace: letters, digits and single _ make one, and no word of C++ is",
            "use --name " + config::identifier_of(name)};
    try {
        config::Findings findings;
        const config::Intent intent = config::load_intent(file, findings);
        for (const config::Finding& finding : findings.all())
            if (finding.effect == config::Effect::refused || finding.warns) print_finding(finding, file);
        if (findings.refused() > 0 || print_out_of_range(intent, file) > 0) return 1;
        const std::string header =
            config::generated_header(intent, {name, std::filesystem::path{file}.filename().string()});
        if (const auto output = arguments.text("--output"))
            write(*output, header);
        else
            std::fputs(header.c_str(), stdout);
        if (const auto depfile = arguments.text("--depfile"))
            storage::write_file(*depfile, dependencies(*arguments.text("--output"), file, findings));
        return 0;
    } catch (const Error& error) {
        if (error.code() != Errc::unreadable_config && error.code() != Errc::bad_value) throw;
        print_error(error, file);
        return 1;
    }
}

}  // namespace strata::tools
