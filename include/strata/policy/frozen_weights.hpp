#pragma once
// strata/policy/frozen_weights.hpp - slot::FrozenFormat, and FrozenWeights<Format>: what frozen weights of units are kept in.
//
// A format brings the class that does its work, as a tier does. It is declared here, without libtorch, and defined in zero/codecs/.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

/// 8 bits a weight, symmetric: codes -127 .. 127 of a step that every row has for itself in fp32, a 127th of its largest magnitude. A row
/// is what makes one output: dimension 0 of a matrix or of a kernel. A weight is at most half a step from what it was.
struct Int8 {
    static constexpr const char* name = "int8";
    class codec;
};

/// 4 bits a weight, normal-float (Dettmers et al. 2023, arXiv:2305.14314, section 3): 16 levels that normally distributed weights use
/// evenly, of the largest magnitude of every 64 weights in row-major order, which is kept in fp32: 4.5 bits a weight. A weight is at most
/// 0.152 of that magnitude from what it was, half of the widest gap between two levels.
struct Nf4 {
    static constexpr const char* name = "nf4";
    class codec;
};

/// A format says what it is called and brings a class:
///
///   name   in messages; the same on every rank
///   codec  makes bytes of a matrix, and numbers of the bytes
///
/// The class may be incomplete here. What it does is zero::FrozenCodec (zero/frozen_codec.hpp), checked where a trainer is made.
template <class F>
concept FrozenWeightFormat = requires {
    { F::name } -> std::convertible_to<const char*>;
    typename F::codec;
};

static_assert(FrozenWeightFormat<Int8> && FrozenWeightFormat<Nf4> && !FrozenWeightFormat<int>);

namespace rule {

template <class Format>
struct FrozenFormatBringsItsCodec {
    static constexpr bool holds = FrozenWeightFormat<Format>;
    struct Report {
        static_assert(
            holds,
            "[ST0155] FrozenWeights<Format> is given a type that is no format for frozen weights. Fix: type "
            "FrozenWeights<Int8> or FrozenWeights<Nf4>; a format of your own says `static constexpr const char* "
            "name` and brings `class codec;` (docs/write-a-frozen-format.md).");
    };
};

/// A policy for frozen weights that is no FrozenWeights<Format>.
template <class P>
struct FrozenPolicySaysWhether {
    static constexpr bool holds = requires {
        { P::quantises } -> std::convertible_to<bool>;
        typename strata::detail::Constant<static_cast<bool>(P::quantises)>;
        typename P::format;
    };
    struct Report {
        static_assert(
            holds,
            "[ST0156] A policy of your own for frozen weights does not say what they are kept in. Fix: write a "
            "format and use FrozenWeights<ThatFormat>, or say `static constexpr bool quantises = true;` and "
            "`using format = ThatFormat;` in the policy.");
    };
};

}  // namespace rule

struct FrozenAsComputed;

namespace slot {

/// What the frozen weights of units are kept in between their uses.
struct FrozenFormat {
    static constexpr const char* name = "FrozenFormat";
    static constexpr const char* policy = "FrozenWeights<Nf4>";
    template <class... Ps>
    struct Members {
        using frozen_weights = select_t<FrozenFormat, FrozenAsComputed, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<FrozenFormat, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::FrozenPolicySaysWhether<P>>;
};

}  // namespace slot

/// What a policy for frozen weights says:
///
///   quantises  false: they are kept in the format that the model computes with, and `format` is void
///   format     a FrozenWeightFormat
template <class P>
concept FrozenWeightsPolicy = PolicyFor<P, slot::FrozenFormat> && rule::FrozenPolicySaysWhether<P>::holds;

/// Keeps the frozen weights of units quantised under ZeroStage<3>: a rank has its share of the bytes of every unit, on the tier of
/// OffloadTarget<Tier, Parameters>, and a unit is dequantised when it is gathered. Matrices and kernels, tensors of two dimensions
/// or more, are quantised; biases, norms, what excepted_parameters names and what is outside of units keep the format of the computation.
///
///   Format  Int8, Nf4, or a format of your own
template <class Format>
struct FrozenWeights {
    using slot = slot::FrozenFormat;
    using broken = rule::first_broken_t<rule::FrozenFormatBringsItsCodec<Format>>;
    using format = Format;
    static constexpr bool quantises = true;
};

/// Frozen weights are kept in the format that the model computes with: the default.
struct FrozenAsComputed {
    using slot = slot::FrozenFormat;
    using format = void;
    static constexpr bool quantises = false;
};

static_assert(FrozenWeightsPolicy<FrozenWeights<Nf4>> && FrozenWeightsPolicy<FrozenAsComputed> &&
              !FrozenWeightsPolicy<Int8>);

}  // namespace strata
