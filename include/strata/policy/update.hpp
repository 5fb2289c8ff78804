#pragma once
// strata/policy/update.hpp - slot::Timing, and Update<When>: at which moment of a step gradients change parameters.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

/// What Update<When> asks: whether a bucket of parameters is updated as soon as its gradients are reduced.
template <class W>
concept UpdateMoment = requires {
    { W::in_backward } -> std::convertible_to<bool>;
    typename detail::Constant<static_cast<bool>(W::in_backward)>;
};

/// When all gradients of the step are there: norms are known before anything changes.
struct AfterBackward {
    static constexpr bool in_backward = false;
};

/// When those of a bucket are: they are used at once, and go.
struct InBackward {
    static constexpr bool in_backward = true;
};

namespace rule {

template <class When>
struct UpdatesAtAKnownMoment {
    static constexpr bool holds = UpdateMoment<When>;
    struct Report {
        static_assert(
            holds,
            "[ST0107] Update<When> knows When = AfterBackward and InBackward. Fix: type one of these two; the "
            "update rule is another policy, as in Optimizer<AdamW>.");
    };
};

/// A policy for the moment that is no Update<When>.
template <class P>
struct TimingSaysWhen {
    static constexpr bool holds = UpdateMoment<P>;
    struct Report {
        static_assert(holds,
                      "[ST0138] A policy of your own for the moment of the update does not say when that is. Fix: say "
                      "`static constexpr bool in_backward = true;` in it, or false (docs/training.md).");
    };
};

}  // namespace rule

template <class When>
struct Update;

namespace slot {

/// When gradients change parameters.
struct Timing {
    static constexpr const char* name = "Timing";
    static constexpr const char* policy = "Update<InBackward>";
    template <class... Ps>
    struct Members {
        using timing = select_t<Timing, strata::Update<AfterBackward>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Timing, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::TimingSaysWhen<P>>;
};

}  // namespace slot

namespace detail {

/// The member of Update<When>. Of a When that does not say, that of AfterBackward: ST0107 says the rest.
template <class When>
struct MomentOf {
    static constexpr bool in_backward = false;
};
template <UpdateMoment When>
struct MomentOf<When> {
    static constexpr bool in_backward = When::in_backward;
};

}  // namespace detail

/// Says when. With InBackward the gradients of a model never exist at once: a bucket is updated inside of backward as soon as
/// its gradients are sums over ranks, and its gradients go (LOMO, Lv et al. 2023, arXiv:2306.09782; the optimizer in backward
/// of PyTorch). Bits are those of AfterBackward. What needs all gradients of a step before the first weight changes does not
/// go with it: clipping by the global norm, several micro-batches a step, loss scaling, rules with norms over whole parameters,
/// steps that are skipped.
///
///   When  AfterBackward or InBackward
template <class When>
struct Update : detail::MomentOf<When> {
    using slot = slot::Timing;
    using broken = rule::first_broken_t<rule::UpdatesAtAKnownMoment<When>>;
};

static_assert(Update<InBackward>::in_backward && !Update<AfterBackward>::in_backward);

}  // namespace strata
