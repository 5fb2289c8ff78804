#pragma once
// strata/core/rule.hpp - composition rules: a truth that can be tested, and the sentence it prints.
//
// A rule is a struct with
//   static constexpr bool holds;          // the truth; reading it never fails to compile
//   struct Report { static_assert(...) }; // the sentence; instantiated only for the broken rule
// Keeping the two apart gives a user exactly one error per mistake, and lets a test check the truth
// with a plain static_assert.

namespace strata::rule {

template <class R>
concept Broken = !R::holds;

/// What first_broken_t is when every rule holds.
struct None {};

/// The first broken rule of a list, or None.
template <class... Rules>
struct FirstBroken {
    using type = None;
};
template <class R, class... Rules>
struct FirstBroken<R, Rules...> : FirstBroken<Rules...> {};
template <Broken R, class... Rules>
struct FirstBroken<R, Rules...> {
    using type = R;
};
template <class... Rules>
using first_broken_t = typename FirstBroken<Rules...>::type;

}  // namespace strata::rule
