#pragma once
// strata/core/option_check.hpp - OptionCheck: everything that is wrong with a set of options, in one Error.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata {

class OptionCheck;

template <class Number>
concept OptionNumber = detail::is_number_v<Number>;

/// Whether a describe() and a check() that options have are found where options are read: one that cannot be called so
/// would be passed over in silence, with the ranges that it was to look at.
template <class Options>
inline constexpr bool options_are_read_v = [] {
    using Visitor = OptionVisitor<detail::VisitNothing>;
    constexpr bool has_describe = requires { &Options::describe; }
    || requires { &Options::template describe<Visitor>; };
    constexpr bool has_check = requires { &Options::check; };
    constexpr bool checks = requires(const Options& options, OptionCheck& check) { options.check(check); };
    return (DescribedOptions<Options> || !has_describe) && (checks || !has_check);
}();

/// What options are looked at with: by the ranges that they describe (core/option_description.hpp), and by a
/// `void check(OptionCheck&) const` of their own where a range does not say it all:
///
///   void check(OptionCheck& check) const {
///       if (check.described(*this) && least > most) check.refuse(...);
///   }
///
/// Whoever takes options calls part() for each and finish() at the end, before anything is written or allocated.
class OptionCheck {
public:
    /// What a person wrote in place of a member: {"schedule.lr", "'learning_rate'"}.
    using Names = std::map<std::string, std::string, std::less<>>;

    /// Without names an option is called by its members: "schedule.lr".
    explicit OptionCheck(Names names = {}) : names_{std::move(names)} {}

    /// Whether the number is in its range. If it is not, that is one more problem.
    ///
    ///   note  what follows the range in the fix: "0 does not clip"
    template <OptionNumber Number>
    bool number(std::string_view option, Number value, const Range& range, std::string_view note = {}) {
        if (range.holds(static_cast<double>(value))) return true;
        if constexpr (std::integral<Number>) {
            out_of_range(option, std::to_string(value), range, note);
        } else {
            out_of_range(option, shown(static_cast<double>(value)), range, note);
        }
        return false;
    }

    /// A problem of another kind, and what mends it; as for Error, without full stops.
    void refuse(std::string what, std::string fix) { problems_.push_back({std::move(what), std::move(fix)}); }

    /// Two numbers that do not go together: "one is 1 and other is 2, and gradients are clipped in one way".
    void refuse_both(std::string_view one, double value, std::string_view other, double others_value,
                     std::string_view because, std::string_view fix);

    /// Looks at the ranges that options describe, and at parts in them; true if nothing is wrong there.
    template <class Options>
    bool described(const Options& options) {
        const std::size_t before = problems_.size();
        visit_options<Options>([&](const auto& option) {
            using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
            const Member& member = options.*option.member;
            if constexpr (strata::detail::is_number_v<Member>) {
                look(option.name, wide(counted(member)), option.range, option.words);
            } else if constexpr (std::is_class_v<Member>) {
                part(option.name, member);
            }
        });
        return problems_.size() == before;
    }

    /// Looks at options that are a member of others: by their check() or, if they have none, by their description. A
    /// check() that wants more than an OptionCheck is left to who has that.
    template <class Options>
    void part(std::string_view member, const Options& options) {
        if constexpr (requires { options.check(*this); }) {
            inside(member, [&] { options.check(*this); });
        } else if constexpr (!requires { &Options::check; }) {
            inside(member, [&] { described(options); });
        }
    }

    /// Calls `body`, in which options are members of `member`.
    void inside(std::string_view member, core::FunctionRef<void()> body);

    /// How messages call an option.
    [[nodiscard]] std::string name(std::string_view option) const;

    [[nodiscard]] bool found_nothing() const noexcept { return problems_.empty(); }

    /// Throws bad_value when something is wrong: all of it, in the order in which it was found.
    void finish() const;

    /// "0.1", "1e-04", "nan": the shortest text that is this number.
    [[nodiscard]] static std::string shown(double number);

private:
    struct Problem {
        std::string what;
        std::string fix;
    };
    /// number() of what a description says, for the three types that others become without loss.
    void look(std::string_view option, std::int64_t value, const Range& range, const OptionWords& words);
    void look(std::string_view option, std::uint64_t value, const Range& range, const OptionWords& words);
    void look(std::string_view option, double value, const Range& range, const OptionWords& words);
    template <OptionNumber Number>
    [[nodiscard]] static constexpr auto wide(Number value) noexcept {
        if constexpr (std::floating_point<Number>)
            return static_cast<double>(value);
        else if constexpr (std::is_signed_v<Number>)
            return static_cast<std::int64_t>(value);
        else
            return static_cast<std::uint64_t>(value);
    }
    [[nodiscard]] static std::string note_of(const OptionWords& words);
    void out_of_range(std::string_view option, const std::string& value, const Range& range, std::string_view note);

    Names names_;
    std::string path_;  // "groups[0].update."
    std::vector<Problem> problems_;
};

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/core/impl/option_check.ipp>
#endif
