#pragma once
// strata/core/rule.hpp - composition rules: a truth that can be tested, and the sentence it prints.
//
// A rule is a struct with
//   static constexpr bool holds;          // the truth; reading it never fails to compile
//   struct Report { static_assert(...) }; // the sentence; instantiated only for the broken rule
// Keeping the two apart gives a user exactly one error per mistake, and lets a test check the truth
// with a plain static_assert.

#include <type_traits>

namespace strata::rule {

template <class R>
concept Broken = !R::holds;

/// What first_broken_t is when every rule holds; in a list of rules it is one that does.
struct None {
    static constexpr bool holds = true;
};

/// What this file's first lines ask for: a truth that the compiler can read, and a sentence where it is false.
template <class R>
inline constexpr bool is_rule_v = [] {
    if constexpr (requires { typename std::bool_constant<static_cast<bool>(R::holds)>; }) return R::holds || requires {
            typename R::Report;
        };
    return false;
}();

/// Of a policy of a user's own that names as `broken` what is no rule. Unread, it would hold whatever it says.
template <class R>
struct BrokenIsARule {
    static constexpr bool holds = is_rule_v<R>;
    struct Report {
        static_assert(
            holds,
            "[ST0145] The `broken` of a policy of your own names a type that is no rule: it has no `static constexpr bool "
            "holds`, or is false and has no sentence. Fix: write `struct Rule { static constexpr bool holds = ...; struct "
            "Report { static_assert(holds, \"...\"); }; };` and `using broken = strata::rule::first_broken_t<Rule>;`.");
    };
};

/// The first broken rule of a list, or None.
template <class... Rules>
struct FirstBroken {
    using type = None;
};
template <class R, class... Rules>
struct FirstBroken<R, Rules...> : FirstBroken<Rules...> {};
template <class R, class... Rules>
requires(!is_rule_v<R>) struct FirstBroken<R, Rules...> {
    using type = BrokenIsARule<R>;
};
template <class R, class... Rules>
requires(is_rule_v<R>&& Broken<R>) struct FirstBroken<R, Rules...> {
    using type = R;
};
template <class... Rules>
using first_broken_t = typename FirstBroken<Rules...>::type;

/// What P breaks by the way it is written itself, or None. A policy whose arguments can be wrong says
/// `using broken = rule::first_broken_t<...>;` and asserts nothing: a class whose own assertion fails has no members
/// for some compilers, and then every rule that reads them prints a sentence more.
template <class P>
struct BrokenAlone {
    using type = None;
};
template <class P>
requires requires { typename P::broken; }
struct BrokenAlone<P> {
    using type = typename P::broken;
};

template <class P>
using broken_alone_t = typename BrokenAlone<P>::type;

}  // namespace strata::rule
