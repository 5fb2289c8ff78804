#pragma once
// strata/core/option_description.hpp - what options say of themselves: name, range, unit, help; their defaults are the members'.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <strata/core/ranges.hpp>

namespace strata {

/// What there is to say about an option besides its name and its range. Sentences have no full stop.
struct OptionWords {
    std::string_view help;          ///< Markdown: what it does
    std::string_view unit = {};     ///< where the name does not say it: "seconds", "bytes"
    std::string_view special = {};  ///< what one value stands for: "0 does not clip"
    /// In files and on command lines; empty: the name, behind the prefixes of the parts it is in.
    std::string_view key = {};
    std::string_view alias = {};  ///< a second spelling of the key
};

/// A word of a choice, and what it means.
template <class Enum>
struct NamedValue {
    std::string_view name;
    Enum value{};
};

/// How an option is written.
enum class OptionKind : std::uint8_t {
    number,  ///< an arithmetic type or std::chrono::seconds
    flag,    ///< bool
    text,    ///< std::string or a path
    choice,  ///< one of several words
    part,    ///< options with a description of their own
};

/// One option of `Owner`.
template <class Owner, class Member>
struct OptionDescription {
    using member_type = Member;
    OptionKind kind;
    std::string_view name;
    Member Owner::*member;
    Range range{};
    OptionWords words{};  ///< a part's key is the prefix of the keys in it, and its help is in front of theirs
};
/// The same of a choice.
template <class Owner, class Enum>
struct ChoiceDescription : OptionDescription<Owner, Enum> {
    std::span<const NamedValue<Enum>> values{};
};

namespace detail {

template <class M>
inline constexpr bool is_number_v =
    (std::is_arithmetic_v<M> && !std::same_as<M, bool>) || std::same_as<M, std::chrono::seconds>;

}  // namespace detail

/// What describe() is given; see visit_options(). Every call is one option, in the order of documentation.
template <class Visit>
class OptionVisitor {
public:
    explicit OptionVisitor(Visit& visit) noexcept : visit_{visit} {}

    template <class Owner, class Number>
    requires(detail::is_number_v<Number>) void operator()(std::string_view name, Number Owner::*member,
                                                          const Range& range, const OptionWords& words) {
        visit_(OptionDescription<Owner, Number>{OptionKind::number, name, member, range, words});
    }
    template <class Owner, class Number>
    requires(detail::is_number_v<Number>) void operator()(std::string_view name, Number Owner::*member,
                                                          const Range& range, std::string_view help) {
        (*this)(name, member, range, OptionWords{.help = help});
    }
    /// True or false.
    template <class Owner>
    void operator()(std::string_view name, bool Owner::*member, const OptionWords& words) {
        visit_(OptionDescription<Owner, bool>{OptionKind::flag, name, member, {}, words});
    }
    template <class Owner, class Text>
    requires(std::same_as<Text, std::string> || std::same_as<Text, std::filesystem::path>) void operator()(
        std::string_view name, Text Owner::*member, const OptionWords& words) {
        visit_(OptionDescription<Owner, Text>{OptionKind::text, name, member, {}, words});
    }
    template <class Owner, class Member>
    requires(std::same_as<Member, bool> || std::same_as<Member, std::string> ||
             std::same_as<Member, std::filesystem::path>) void
    operator()(std::string_view name, Member Owner::*member, std::string_view help) {
        (*this)(name, member, OptionWords{.help = help});
    }
    /// One of `values`, which live as long as the program.
    template <class Owner, class Enum>
    requires(std::is_enum_v<Enum>) void operator()(std::string_view name, Enum Owner::*member,
                                                   std::type_identity_t<std::span<const NamedValue<Enum>>> values,
                                                   const OptionWords& words) {
        visit_(ChoiceDescription<Owner, Enum>{{OptionKind::choice, name, member, {}, words}, values});
    }
    /// Options that are a member of these.
    ///
    ///   prefix  of the keys in it: "loss_scale_"
    ///   about   in front of the help of each, where the same options stand in several parts: "Units on disk"
    template <class Owner, class Part>
    void part(std::string_view name, Part Owner::*member, std::string_view prefix, std::string_view about = {}) {
        visit_(OptionDescription<Owner, Part>{OptionKind::part, name, member, {}, {.help = about, .key = prefix}});
    }

private:
    Visit& visit_;
};

namespace detail {

struct VisitNothing {
    void operator()(const auto&) const {}
};

}  // namespace detail

/// Options that describe themselves:
///
///   struct Options {
///       double momentum = 0.9;
///       static void describe(auto& option) { option("momentum", &Options::momentum, ranges::momentum, "Share of ..."); }
///   };
///
/// From that one line come the check of the range (OptionCheck), a key of configuration files and command lines
/// (config::Schema), --help and the tables of the documentation. The default is the member's own.
template <class Options>
concept DescribedOptions = requires(OptionVisitor<detail::VisitNothing>& visitor) {
    Options::describe(visitor);
};

/// Calls `visit` with an OptionDescription or a ChoiceDescription of every option, in order. Options without a
/// description have none.
template <class Options, class Visit>
void visit_options(Visit&& visit) {
    if constexpr (DescribedOptions<Options>) {
        OptionVisitor<std::remove_reference_t<Visit>> visitor{visit};
        Options::describe(visitor);
    }
}

/// A number as an arithmetic type: seconds are counted.
template <class Number>
[[nodiscard]] constexpr auto counted(const Number& number) noexcept {
    if constexpr (std::same_as<Number, std::chrono::seconds>)
        return number.count();
    else
        return number;
}

/// Gives `to` what `from` has of the options that both describe by the same name: the numbers of one tree of options for
/// another, whose rule or average is of another type.
template <class From, class To>
void take_options(const From& from, To& to) {
    visit_options<From>([&](const auto& given) {
        using Given = typename std::remove_cvref_t<decltype(given)>::member_type;
        visit_options<To>([&](const auto& taken) {
            using Taken = typename std::remove_cvref_t<decltype(taken)>::member_type;
            if constexpr (std::same_as<Given, Taken>) {
                if (given.name == taken.name) to.*taken.member = from.*given.member;
            } else if constexpr (DescribedOptions<Given> && DescribedOptions<Taken>) {
                if (given.name == taken.name) take_options(from.*given.member, to.*taken.member);
            }
        });
    });
}

}  // namespace strata
