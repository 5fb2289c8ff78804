#pragma once
// tools/arguments.hpp - Arguments: the words behind a command, checked against the options that the command has.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::tools {

/// An option as it is typed and explained.
struct Option {
    std::string_view name;     ///< with its dashes
    std::string_view value;    ///< "N", "FOLDER"; empty: an option without a value
    std::string_view meaning;  ///< for the help
};

/// Options may stand anywhere, as `--name value` or `--name=value`; behind `--` there are none.
///
/// Everything throws Errc::bad_argument, with what to type instead.
class Arguments {
public:
    ///   command  for messages: "strata data scan"
    Arguments(std::string command, std::span<const std::string> words, std::span<const Option> known);

    [[nodiscard]] bool has(std::string_view option) const { return values_.contains(option); }
    [[nodiscard]] std::optional<std::string> text(std::string_view option) const;
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view option, std::int64_t least,
                                                      std::int64_t most) const;
    /// The one word that is no option.
    ///
    ///   what  "FILE"
    [[nodiscard]] const std::string& only_word(std::string_view what) const;
    /// All words that are no options.
    [[nodiscard]] const std::vector<std::string>& words() const { return words_; }

private:
    [[nodiscard]] std::string help() const { return "'" + command_ + " --help' lists what there is"; }

    std::string command_;
    std::map<std::string, std::string, std::less<>> values_;
    std::vector<std::string> words_;
};

/// Of `known` the name that was meant by an unknown one, as a fix: "did you mean 'scan'"; else `otherwise`.
[[nodiscard]] std::string did_you_mean(std::string_view typed, const std::vector<std::string_view>& known,
                                       std::string_view otherwise);

/// The lines of a help text: options, aligned.
[[nodiscard]] std::string help_lines(std::span<const Option> options);

}  // namespace strata::tools
