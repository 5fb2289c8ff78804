#pragma once
// strata/config/described_keys.hpp - the keys of options that describe themselves (core/option_description.hpp).

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <strata/config/key.hpp>
#include <strata/config/value.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_description.hpp>

namespace strata::config {

namespace detail {

/// What one key is read into; other members are options with keys of their own.
template <class M>
inline constexpr bool is_leaf_v = strata::detail::is_number_v<M> || std::is_enum_v<M> || std::same_as<M, bool> ||
                                  std::same_as<M, std::string> || std::same_as<M, std::filesystem::path>;

template <class Owner, class Member>
KeyInfo info_of(const OptionDescription<Owner, Member>& option, const std::string& prefix, const Member& fallback) {
    const OptionWords& words = option.words;
    KeyInfo info;
    info.key = words.key.empty() ? prefix + std::string{option.name} : std::string{words.key};
    info.alias = words.alias;
    info.meaning = std::string{words.help} + (words.special.empty() ? "" : "; ") + std::string{words.special};
    if constexpr (std::same_as<Member, bool>) {
        info.type = "true or false";
        info.fallback = fallback ? "true" : "false";
        info.kind = KeyKind::flag;
    } else if constexpr (std::is_class_v<Member> && !strata::detail::is_number_v<Member>) {
        info.type = "text";
        if constexpr (std::same_as<Member, std::string>)
            info.fallback = detail::quoted(fallback);
        else
            info.fallback = detail::quoted(fallback.string());
        info.kind = KeyKind::text;
    } else if constexpr (!std::is_enum_v<Member>) {
        const auto number = counted(fallback);
        constexpr bool is_whole = std::integral<std::remove_const_t<decltype(number)>>;
        info.type = (is_whole ? "integer" : "number") + shown(option.range);
        if constexpr (is_whole)
            info.fallback = std::to_string(number);
        else
            info.fallback = shown(static_cast<double>(number));
    }
    return info;
}
template <class Owner, class Enum>
KeyInfo info_of(const ChoiceDescription<Owner, Enum>& option, const std::string& prefix, const Enum& fallback) {
    KeyInfo info = info_of(static_cast<const OptionDescription<Owner, Enum>&>(option), prefix, fallback);
    for (const auto& [name, value] : option.values) {
        info.type += (info.type.empty() ? "one of `" : ", `") + std::string{name} + "`";
        if (value == fallback) info.fallback = detail::quoted(name);
    }
    return info;
}

template <class Owner, class Member>
void read_option(const OptionDescription<Owner, Member>& option, const Value& value, Member& to) {
    if constexpr (std::same_as<Member, bool>) {
        to = value.flag();
    } else if constexpr (strata::detail::is_number_v<Member>) {
        const auto number = [&] {
            if constexpr (std::integral<decltype(counted(to))>)
                return value.integer();
            else
                return value.number();
        }();
        check_range(value, static_cast<double>(number), option.range);
        to = Member{static_cast<decltype(counted(to))>(number)};
    } else {
        to = Member{value.text()};
    }
}
template <class Owner, class Enum>
void read_option(const ChoiceDescription<Owner, Enum>& option, const Value& value, Enum& to) {
    const std::string name = value.text();
    std::string valid;
    for (const auto& one : option.values) {
        if (one.name == name) {
            to = one.value;
            return;
        }
        valid += (valid.empty() ? "`" : ", `") + std::string{one.name} + "`";
    }
    value.refuse(Errc::bad_value, "is " + value.shown() + ", which is none of its values", "use one of " + valid);
}

/// A key of options that describe themselves, and what reads it into them.
template <class Options>
struct DescribedKey {
    KeyInfo info;
    std::function<void(Options&, const Value&)> read;
};

/// The keys of `Options` and of the parts in it. (By functions and not by types: these would be as long as the path.)
///
///   defaults  what the documentation says a key is when nobody gives it
///   path      of the options: "engine."
template <class Options>
[[nodiscard]] std::vector<DescribedKey<Options>> described_keys(const Options& defaults, const std::string& prefix,
                                                                const std::string& path,
                                                                const std::vector<std::string_view>& without) {
    std::vector<DescribedKey<Options>> keys;
    visit_options<Options>([&](const auto& option) {
        using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
        const std::string place = path + std::string{option.name};
        if (std::find(without.begin(), without.end(), place) != without.end()) return;
        const auto member = option.member;
        if constexpr (is_leaf_v<Member>) {
            KeyInfo info = info_of(option, prefix, defaults.*member);
            info.path = place;
            keys.push_back({std::move(info), [option](Options& to, const Value& value) {
                                read_option(option, value, to.*option.member);
                            }});
        } else {
            for (DescribedKey<Member>& key : described_keys<Member>(
                     defaults.*member, prefix + std::string{option.words.key}, place + ".", without)) {
                if (!option.words.help.empty())
                    key.info.meaning = std::string{option.words.help} + ": " + key.info.meaning;
                keys.push_back(
                    {std::move(key.info), [member, read = std::move(key.read)](Options& to, const Value& value) {
                         read(to.*member, value);
                     }});
            }
        }
    });
    return keys;
}

}  // namespace detail

}  // namespace strata::config
