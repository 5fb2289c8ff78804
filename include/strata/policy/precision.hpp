#pragma once
// strata/policy/precision.hpp - slot::Numerics, and Precision<Format>: number formats of computation and kept state.

#include <concepts>
#include <type_traits>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

struct NoMaster {};  ///< parameters are the weights themselves
struct NoScaler {};  ///< gradients are those of the loss as it is
/// Gradients are made of a scaled loss (optim/loss_scale.hpp), and a step that overflows is skipped.
struct LossScaling {};

/// fp32 everywhere.
struct Fp32 {
    using element = float;
    using kept = float;
    using master = NoMaster;
    using scaler = NoScaler;
};

/// Mixed precision (Micikevicius et al. 2018, arXiv:1710.03740, section 3.1) with bf16, whose range
/// is that of fp32, so the loss needs no scaling: bf16 parameters, activations and gradients; fp32 master weights and
/// states.
struct Bf16 {
    using element = bf16;
    using kept = float;
    using master = float;
    using scaler = NoScaler;
};

/// Mixed precision as its paper has it, with loss scaling (section 3.2): fp16 parameters, activations and gradients;
/// fp32 master weights and states.
struct Fp16 {
    using element = fp16;
    using kept = float;
    using master = float;
    using scaler = LossScaling;
};

/// Half the memory of mixed precision: 2 bytes for each weight, gradient and state. Updates are rounded by chance
/// (optim/stochastic_rounding.hpp), seeded by run and step, so that they neither vanish nor differ from run to run.
struct PureBf16 {
    using element = bf16;
    using kept = bf16;
    using master = NoMaster;
    using scaler = NoScaler;
};

/// Parameters that a run names keep another number format than the others: Precision<Bf16, Except<Fp32>>.
///
///   Format  of theirs; its scaler is NoScaler, because one loss has one scale
template <class Format>
struct Except {
    using format = Format;
};
struct NoExcept {};  ///< all parameters are kept in one format

/// What a number format says: four types. Which of their combinations can be trained is said at
/// detail::have_kernels().
///
///   element  what parameters and their gradients are kept in: float, bf16, fp16
///   kept     what optimizer states are kept in: float, bf16
///   master   what weights are kept in beside their rounded copies, the parameters: `kept`, or NoMaster
///   scaler   NoScaler or LossScaling
template <class F>
concept NumberFormat = requires {
    typename F::element;
    typename F::kept;
    typename F::master;
    typename F::scaler;
};

namespace detail {

/// What a format says, as an engine asks for it. Of a type that is no format, nothing.
template <class Format>
struct FormatMembers {};
template <NumberFormat Format>
struct FormatMembers<Format> {
    using element = typename Format::element;
    using kept = typename Format::kept;
    static constexpr bool has_master = !std::same_as<typename Format::master, NoMaster>;
    static constexpr bool scales_loss = std::same_as<typename Format::scaler, LossScaling>;
};

/// The same of Except<Format>; void where there are no exceptions.
template <class Exception>
struct ExceptedMembers {
    using type = void;
};
template <NumberFormat Format>
struct ExceptedMembers<Except<Format>> {
    using type = FormatMembers<Format>;
};

/// What a precision says of its exceptions: a format's members; void where it has none.
template <class P>
struct ExceptedOf {
    using type = void;
};
template <class P>
requires requires { typename P::excepted; }
struct ExceptedOf<P> {
    using type = typename P::excepted;
};
template <class P>
using excepted_of_t = typename ExceptedOf<P>::type;
template <class P>
inline constexpr bool has_exceptions_v = !std::is_void_v<excepted_of_t<P>>;

/// Without a master, weights and states are of the parameters' own format, in fp32 or by stochastic rounding in bf16
/// (optim/update_kernel.hpp); with one, all of that is fp32 and parameters are rounded copies in 16 bits.
template <class M>
constexpr bool have_kernels() {
    using Element = typename M::element;
    using Kept = typename M::kept;
    if (M::has_master) return std::same_as<Kept, float> && (std::same_as<Element, bf16> || std::same_as<Element, fp16>);
    return std::same_as<Element, Kept> && (std::same_as<Kept, float> || std::same_as<Kept, bf16>);
}

}  // namespace detail

namespace rule {

template <class Format>
struct FormatCanBeTrained {
    static constexpr bool holds = [] {
        if constexpr (NumberFormat<Format>) {
            using Master = typename Format::master;
            using Scaler = typename Format::scaler;
            constexpr bool knows_master = std::same_as<Master, NoMaster> || std::same_as<Master, typename Format::kept>;
            constexpr bool knows_scaler = std::same_as<Scaler, NoScaler> || std::same_as<Scaler, LossScaling>;
            return knows_master && knows_scaler &&
                   strata::detail::have_kernels<strata::detail::FormatMembers<Format>>();
        } else {
            return false;
        }
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0127] Precision<Format> is given a number format that nothing can train with. Fix: type Fp32, Bf16, "
            "Fp16 or PureBf16; a format of your own says element, kept, master and scaler, which are float, float, "
            "NoMaster; bf16, bf16, NoMaster; bf16, float, float; or fp16, float, float; and then NoScaler or "
            "LossScaling (docs/write-a-precision.md).");
    };
};

template <class Exception>
struct ExceptionCanBeTrained {
    static constexpr bool holds = std::same_as<Exception, NoExcept>;
};
template <class Format>
struct ExceptionCanBeTrained<Except<Format>> {
    static constexpr bool holds = [] {
        if constexpr (FormatCanBeTrained<Format>::holds) return std::same_as<typename Format::scaler, NoScaler>;
        return false;
    }();
};
/// Its sentence, for whatever stands there.
template <class Exception>
struct ExceptionIsAFormat {
    static constexpr bool holds = ExceptionCanBeTrained<Exception>::holds;
    struct Report {
        static_assert(holds,
                      "[ST0144] Precision<Format, Exception> is given an exception that nothing can train with. Fix: "
                      "type Precision<Bf16, Except<Fp32>>, or another number format whose scaler is NoScaler in place "
                      "of Fp32; leave the exception out where all parameters are kept in one format.");
    };
};

/// Of a policy that is no Precision<Format>: it says the members of one itself.
template <class P>
struct PrecisionCanBeTrained {
    static constexpr bool holds = [] {
        if constexpr (requires {
                          typename P::element;
                          typename P::kept;
                          { P::has_master } -> std::convertible_to<bool>;
                          { P::scales_loss } -> std::convertible_to<bool>;
                          typename strata::detail::Constant<static_cast<bool>(P::has_master)>;
                          typename strata::detail::Constant<static_cast<bool>(P::scales_loss)>;
                      }) {
            return strata::detail::have_kernels<P>();
        } else {
            return false;
        }
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0129] A precision policy of your own lacks one of element, kept, has_master and scales_loss, or has "
            "number formats that nothing can train with. Fix: write a number format and use Precision<MyFormat>, "
            "or say these four as Precision<Bf16> does (docs/write-a-precision.md).");
    };
};

}  // namespace rule

template <class Format, class Exception = NoExcept>
struct Precision;

namespace slot {

/// Which number formats compute and keep state.
struct Numerics {
    static constexpr const char* name = "Numerics";
    static constexpr const char* policy = "Precision<Bf16>";
    template <class... Ps>
    struct Members {
        using precision = select_t<Numerics, Precision<Fp32>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Numerics, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::PrecisionCanBeTrained<P>>;
};

}  // namespace slot

/// What a precision policy says, as Precision<Format> does.
template <class P>
concept PrecisionPolicy = PolicyFor<P, slot::Numerics> && rule::PrecisionCanBeTrained<P>::holds;

/// Number formats of a run.
///
///   Format       Fp32, Bf16, Fp16, PureBf16, or a NumberFormat of your own
///   Exception    Except<OtherFormat>: parameters that EngineOptions::excepted_parameters names are kept in that, norms and
///                embeddings in fp32 say; their gradients and states too
///
///   element      what parameters and their gradients are kept in
///   kept         what optimizer states are kept in; the master weights too, where there are some
///   has_master   parameters are rounded copies of weights kept in `kept`; otherwise they are the weights themselves
///   scales_loss  gradients are made of a scaled loss, and a step that overflows is skipped
///   excepted     the first three of the exceptions' format; void without exceptions
template <class Format, class Exception>
struct Precision : detail::FormatMembers<Format> {
    using slot = slot::Numerics;
    using broken = rule::first_broken_t<rule::FormatCanBeTrained<Format>, rule::ExceptionIsAFormat<Exception>>;
    using format = Format;
    using excepted = typename detail::ExceptedMembers<Exception>::type;
};

static_assert(PrecisionPolicy<Precision<Fp32>> && PrecisionPolicy<Precision<Bf16>> &&
              PrecisionPolicy<Precision<Fp16>> && PrecisionPolicy<Precision<PureBf16>> &&
              !PrecisionPolicy<Precision<int>>);

}  // namespace strata
