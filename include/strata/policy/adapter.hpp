#pragma once
// strata/policy/adapter.hpp - slot::Adaptation, and Adapter<Kind>: what is trained in place of a model's weights.

#include <concepts>
#include <string_view>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

struct Lokr;  ///< strata/adapters/lokr.hpp
struct Lora;  ///< strata/adapters/lora.hpp

struct NoAdapter;

namespace rule {

/// A policy about adapters says whether there are any, and brings the class that attaches them.
template <class P>
struct AdaptationBringsItsClass {
    static constexpr bool holds = requires {
        { P::enabled } -> std::convertible_to<bool>;
        typename strata::detail::Constant<static_cast<bool>(P::enabled)>;
        typename P::kind;
        typename P::work;
    };
    struct Report {
        static_assert(holds,
                      "[ST0150] A policy of your own about adapters does not bring what attaches them. Fix: write a "
                      "kind of adapter and use Adapter<MyKind> (docs/write-an-adapter.md), or derive from NoAdapter.");
    };
};

}  // namespace rule

namespace slot {

/// What is trained: a model's weights, or adapters beside them.
struct Adaptation {
    static constexpr const char* name = "Adaptation";
    static constexpr const char* policy = "Adapter<Lora>";
    template <class... Ps>
    struct Members {
        using adaptation = select_t<Adaptation, NoAdapter, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Adaptation, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::AdaptationBringsItsClass<P>>;
};

}  // namespace slot

/// What a policy about adapters says and brings:
///
///   enabled  false: all that requires a gradient is trained, and `work` does nothing
///   kind     what knows how an adapter of a layer is made; void without adapters
///   work     attaches them to a model
template <class P>
concept AdaptationPolicy = PolicyFor<P, slot::Adaptation> && rule::AdaptationBringsItsClass<P>::holds;

/// Freezes the model and trains adapters: small parameters beside the weights of the layers that the options name. Only they have gradients
/// and optimizer state, and checkpoints hold them alone; under ZeroStage<3> the frozen weights of units are sharded as trained ones are.
///
///   Kind  Lora, Lokr, or a kind of your own (docs/write-an-adapter.md)
template <class Kind>
struct Adapter {
    using slot = slot::Adaptation;
    using kind = Kind;
    static constexpr bool enabled = true;
    class work;  ///< adapters/adapt.hpp, which a kind's header includes
};

/// Weights are trained themselves: the default.
struct NoAdapter {
    using slot = slot::Adaptation;
    using kind = void;
    static constexpr bool enabled = false;
    class work {
    public:
        explicit work(const auto&...) noexcept {}
    };
};

static_assert(AdaptationPolicy<Adapter<Lora>> && AdaptationPolicy<NoAdapter> && !AdaptationPolicy<Lora>);

}  // namespace strata
