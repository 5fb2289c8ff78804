#include "arguments.hpp"

#include <algorithm>
#include <charconv>

#include <strata/config/schema.hpp>
#include <strata/core/error.hpp>

namespace strata::tools {

Arguments::Arguments(std::string command, std::span<const std::string> words, std::span<const Option> known)
    : command_{std::move(command)} {
    bool options_end = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (options_end || word.size() < 2 || word.front() != '-') {
            words_.push_back(word);
            continue;
        }
        if (word == "--") {
            options_end = true;
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const auto found =
            std::find_if(known.begin(), known.end(), [&](const Option& option) { return option.name == name; });
        if (found == known.end()) {
            std::vector<std::string_view> names;
            for (const Option& option : known) names.push_back(option.name);
            throw Error{Errc::bad_argument, command_ + " has no option " + name, did_you_mean(name, names, help())};
        }
        std::string value;
        if (found->value.empty()) {
            if (equals != std::string::npos)
                throw Error{Errc::bad_argument, name + " takes no value", "type " + name + " alone"};
        } else if (equals != std::string::npos) {
            value = word.substr(equals + 1);
        } else if (i + 1 < words.size()) {
            value = words[++i];
        }
        if (!found->value.empty() && value.empty())
            throw Error{Errc::bad_argument, name + " needs a value", "type " + name + " " + std::string{found->value}};
        if (!values_.emplace(name, std::move(value)).second)
            throw Error{Errc::bad_argument, name + " is given twice", "keep one of them"};
    }
}

std::optional<std::string> Arguments::text(std::string_view option) const {
    const auto found = values_.find(option);
    return found == values_.end() ? std::nullopt : std::optional{found->second};
}

std::optional<std::int64_t> Arguments::integer(std::string_view option, std::int64_t least, std::int64_t most) const {
    const auto given = text(option);
    if (!given) return std::nullopt;
    std::int64_t number = 0;
    const char* const end = given->data() + given->size();
    const auto [behind, failure] = std::from_chars(given->data(), end, number);
    if (failure != std::errc{} || behind != end || number < least || number > most)
        throw Error{Errc::bad_argument, std::string{option} + " is '" + *given + "'",
                    "give a whole number from " + std::to_string(least) + " to " + std::to_string(most)};
    return number;
}

const std::string& Arguments::only_word(std::string_view what) const {
    const std::string usage = command_ + " " + std::string{what};
    if (words_.empty())
        throw Error{Errc::bad_argument, command_ + " needs a " + std::string{what}, "type " + usage + "; " + help()};
    if (words_.size() > 1)
        throw Error{Errc::bad_argument,
                    command_ + " takes one " + std::string{what} + ", and '" + words_[1] + "' is a second",
                    "type " + usage};
    return words_.front();
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string_view>& known,
                         std::string_view otherwise) {
    const std::string_view near = config::nearest_name(typed, known);
    return near.empty() ? std::string{otherwise} : "did you mean '" + std::string{near} + "'";
}

std::string help_lines(std::span<const Option> options) {
    std::size_t widest = 0;
    const auto head = [](const Option& option) {
        return std::string{option.name} + (option.value.empty() ? "" : " ") + std::string{option.value};
    };
    for (const Option& option : options) widest = std::max(widest, head(option).size());
    std::string lines;
    for (const Option& option : options) {
        std::string left = head(option);
        left.resize(widest + 2, ' ');
        lines += "  " + left + std::string{option.meaning} + "\n";
    }
    return lines;
}

}  // namespace strata::tools
