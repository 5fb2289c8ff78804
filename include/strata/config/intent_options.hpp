#pragma once
// strata/config/intent_options.hpp - the options of an Intent, in the tree of a trainer.

#include <cmath>
#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <strata/config/intent.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/options/schedule.hpp>

namespace strata::config {

namespace detail {

/// Puts a value into a member, if it is one of the member's type; else one more problem.
template <class Member>
void put_option(OptionCheck& check, const std::string& name, const auto& option, const OptionScalar& value,
                Member& to) {
    const auto refuse = [&](const std::string& expected) {
        check.refuse(check.name(name) + " is no " + expected, "give " + check.name(name) + " " + expected);
    };
    if constexpr (std::same_as<Member, bool>) {
        if (const bool* const flag = std::get_if<bool>(&value))
            to = *flag;
        else
            refuse("truth value");
    } else if constexpr (std::is_enum_v<Member>) {
        const std::string* const word = std::get_if<std::string>(&value);
        std::string valid;
        for (const auto& one : option.values) {
            if (word != nullptr && one.name == *word) {
                to = one.value;
                return;
            }
            valid += (valid.empty() ? "`" : ", `") + std::string{one.name} + "`";
        }
        refuse("one of " + valid);
    } else if constexpr (strata::detail::is_number_v<Member>) {
        using Number = std::remove_const_t<decltype(counted(to))>;
        double number = 0;
        if (const auto* whole = std::get_if<std::int64_t>(&value))
            number = static_cast<double>(*whole);
        else if (const auto* real = std::get_if<double>(&value))
            number = *real;
        else
            return refuse("number");
        if constexpr (std::integral<Number>) {
            if (number != std::floor(number)) return refuse("whole number");
            if (const auto* whole = std::get_if<std::int64_t>(&value); whole != nullptr && option.range.holds(number)) {
                to = Member{static_cast<Number>(*whole)};
                return;
            }
        }
        if (check.number(name, number, option.range)) to = Member{static_cast<Number>(number)};
    } else {
        if (const std::string* const text = std::get_if<std::string>(&value))
            to = Member{*text};
        else
            refuse("text");
    }
}

/// True when `path` names an option of these, or of a part in them.
template <class Options>
bool set_option(OptionCheck& check, const std::string& whole, std::string_view path, const OptionScalar& value,
                Options& to) {
    const std::size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    bool found = false;
    visit_options<Options>([&](const auto& option) {
        using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
        if (found || option.name != name) return;
        if constexpr (DescribedOptions<Member>) {
            if (dot != std::string_view::npos)
                found = set_option(check, whole, path.substr(dot + 1), value, to.*option.member);
        } else if constexpr (!std::is_class_v<Member> || std::is_constructible_v<Member, std::string> ||
                             strata::detail::is_number_v<Member>) {
            if (dot == std::string_view::npos) {
                put_option(check, whole, option, value, to.*option.member);
                found = true;
            }
        }
    });
    return found;
}

}  // namespace detail

/// Gives `to` (a strata::TrainOptions of any rule and average) what the intent has for it, its schedule included.
///
/// Throws one Error{bad_value} with all values that are out of range, each called by where it was given.
///
///   returns  the paths that these options do not have: numbers of another update rule, "engine.update.momentum"
template <DescribedOptions Options>
std::vector<std::string> apply(const Intent& intent, Options& to) {
    OptionCheck::Names names;
    for (const OptionValue& one : intent.options)
        names[one.path] = one.place.empty() ? one.path : one.place + " (" + one.path + ")";
    OptionCheck check{std::move(names)};
    std::vector<std::string> passed_over;
    for (const OptionValue& one : intent.options)
        if (!detail::set_option(check, one.path, one.path, one.value, to)) passed_over.push_back(one.path);
    check.finish();
    if constexpr (requires { to.schedule = optim::Schedule{}; }) {
        std::visit(
            [&](auto rate) {
                if constexpr (!std::same_as<decltype(rate), std::monostate>) {
                    if (intent.rate_follows_lr) {
                        if constexpr (requires { rate.max_lr; }) rate.max_lr = to.schedule.lr;
                        if constexpr (requires { rate.lr; }) rate.lr = to.schedule.lr;
                    }
                    const double lr = to.schedule.lr;
                    to.schedule = optim::Schedule::of(rate);
                    to.schedule.lr = lr;
                }
            },
            intent.rate);
    }
    return passed_over;
}

}  // namespace strata::config
