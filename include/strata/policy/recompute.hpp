#pragma once
// strata/policy/recompute.hpp - slot::Activations, and Recompute<What>: which activations are made again in backward.

#include <concepts>
#include <cstdint>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

/// What Recompute<What> asks: whether a unit keeps its inputs only, and runs again in backward.
///
///   unit     its number, 0 .. units - 1, in the order in which the model registers its units; those without parameters
///            are not counted, and never recomputed
///   units    how many there are
///   returns  the same on every rank; asked once for each unit when an engine is made
template <class W>
concept UnitPredicate = requires(std::int32_t unit, std::int32_t units) {
    { W::recomputes(unit, units) } -> std::same_as<bool>;
};

/// Every Unit of the model.
struct Blocks {
    static constexpr bool recomputes(std::int32_t, std::int32_t) noexcept { return true; }
};

/// Activations stay until backward has used them.
struct Nothing {
    static constexpr bool any = false;
    static constexpr bool recomputes(std::int32_t, std::int32_t) noexcept { return false; }
};

namespace detail {

/// A `static constexpr bool any`, or none at all.
template <class W>
inline constexpr bool any_is_constant = !requires {
    W::any;
}
|| requires { typename Constant<static_cast<bool>(W::any)>; };

}  // namespace detail

namespace rule {

template <int N>
struct OneOfSome {
    static constexpr bool holds = N >= 1;
    struct Report {
        static_assert(holds,
                      "[ST0135] EveryOther<N> runs one unit of N again. Fix: type a whole number from 1 on, as in "
                      "Recompute<EveryOther<2>>.");
    };
};

template <class What>
struct RecomputesKnownUnits {
    static constexpr bool holds = UnitPredicate<What> && strata::detail::any_is_constant<What>;
    struct Report {
        static_assert(
            holds,
            "[ST0104] Recompute<What> is given something that does not say which units run again. Fix: type Blocks, "
            "Nothing or EveryOther<2>; a type of your own says `static bool recomputes(std::int32_t unit, "
            "std::int32_t units)`, and no `any` that is not constexpr (docs/write-a-recompute.md).");
    };
};

/// A policy for the activations that is no Recompute<What>.
template <class P>
struct RecomputeSaysWhich {
    static constexpr bool holds = UnitPredicate<P> && requires {
        { P::any } -> std::convertible_to<bool>;
    }
    &&strata::detail::any_is_constant<P>;
    struct Report {
        static_assert(
            holds,
            "[ST0130] A policy of your own for the activations does not say which units run again. Fix: say `static "
            "bool recomputes(std::int32_t unit, std::int32_t units)` in a type and use Recompute<ThatType>, or say it "
            "in the policy beside `static constexpr bool any = true;` (docs/write-a-recompute.md).");
    };
};

}  // namespace rule

/// One Unit of N, the first of them first: of six units and N = 2 those of number 0, 2 and 4.
///
///   N  1 or more; 1 is Blocks
template <int N>
struct EveryOther {
    using broken = rule::first_broken_t<rule::OneOfSome<N>>;
    static constexpr bool recomputes(std::int32_t unit, std::int32_t) noexcept { return unit % (N < 1 ? 1 : N) == 0; }
};
static_assert(EveryOther<2>::recomputes(4, 6) && !EveryOther<2>::recomputes(5, 6));

template <class What>
struct Recompute;

namespace slot {

/// Which activations are kept for backward.
struct Activations {
    static constexpr const char* name = "Activations";
    static constexpr const char* policy = "Recompute<Blocks>";
    template <class... Ps>
    struct Members {
        using recompute = select_t<Activations, Recompute<Nothing>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Activations, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::RecomputeSaysWhich<P>>;
};

}  // namespace slot

/// What a policy for the activations says:
///
///   any                      false: nothing is ever made again, and the model needs no units
///   recomputes(unit, units)  which units are
template <class P>
concept RecomputePolicy = PolicyFor<P, slot::Activations> && rule::RecomputeSaysWhich<P>::holds;

namespace detail {

/// The members of Recompute<What>. Of a What that does not say which units, those of Nothing: ST0104 says the rest.
template <class What>
struct RecomputedUnits {
    static constexpr bool any = false;
    static constexpr bool recomputes(std::int32_t, std::int32_t) noexcept { return false; }
};
template <UnitPredicate What>
requires any_is_constant<What>
struct RecomputedUnits<What> {
    static constexpr bool any = [] {
        if constexpr (requires {
                          { What::any } -> std::convertible_to<bool>;
                      })
            return static_cast<bool>(What::any);
        return true;
    }();
    static constexpr bool recomputes(std::int32_t unit, std::int32_t units) { return What::recomputes(unit, units); }
};

}  // namespace detail

/// Trades computation for memory. A unit that is recomputed keeps only its inputs and runs again in backward
/// (Chen et al. 2016, arXiv:1604.06174): with Blocks, the activations of one unit at a time instead of all, for one
/// more forward pass, which is about a third more computation. Gradients keep their bits, dropout included.
///
///   What  Blocks, Nothing, EveryOther<N>, or a UnitPredicate of your own
template <class What>
struct Recompute : detail::RecomputedUnits<What> {
    using slot = slot::Activations;
    using broken = rule::first_broken_t<rule::RecomputesKnownUnits<What>, rule::broken_alone_t<What>>;
};

static_assert(RecomputePolicy<Recompute<Blocks>> && Recompute<EveryOther<3>>::any && !Recompute<Nothing>::any);

}  // namespace strata
