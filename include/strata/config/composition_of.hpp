#pragma once
// strata/config/composition_of.hpp - composition_of<Setup>(): what a type composes, in the words of a configuration.

#include <concepts>
#include <optional>

#include <strata/config/intent.hpp>
#include <strata/policy/setup.hpp>

namespace strata::config {

namespace detail {

/// The same with one way to say "all of it": 0 or 100 per cent, and twice the same tier, are one tier.
constexpr KeptOn simplified(KeptOn kept) noexcept {
    if (kept.percent == 100 || kept.first == kept.second) return KeptOn::all_on(kept.first);
    return kept.percent == 0 ? KeptOn::all_on(kept.second) : kept;
}

template <class Tier>
inline constexpr std::optional<KeptOn> kept_on = std::nullopt;
template <>
inline constexpr std::optional<KeptOn> kept_on<Device> = KeptOn::all_on(TierName::device);
template <>
inline constexpr std::optional<KeptOn> kept_on<Cpu> = KeptOn::all_on(TierName::cpu);
template <>
inline constexpr std::optional<KeptOn> kept_on<Nvme> = KeptOn::all_on(TierName::nvme);
/// Of two whole tiers; a configuration has no words for a split of splits.
template <class First, class Second, int Percent>
inline constexpr std::optional<KeptOn> kept_on<Split<First, Second, Percent>> = [] {
    constexpr auto first = kept_on<First>, second = kept_on<Second>;
    if constexpr (!first || !second || first->percent != 100 || second->percent != 100) {
        return std::optional<KeptOn>{};
    } else {
        return std::optional{simplified(KeptOn{first->first, second->first, Percent})};
    }
}();

template <class Sharding>
inline constexpr std::optional<int> stage_of = std::nullopt;
template <int Stage>
inline constexpr std::optional<int> stage_of<ZeroStage<Stage>> = Stage;

template <class Rule>
inline constexpr std::optional<RuleName> rule_of = std::nullopt;
template <>
inline constexpr std::optional<RuleName> rule_of<Adagrad> = RuleName::adagrad;
template <>
inline constexpr std::optional<RuleName> rule_of<Adam> = RuleName::adam;
template <>
inline constexpr std::optional<RuleName> rule_of<AdamW> = RuleName::adamw;
template <>
inline constexpr std::optional<RuleName> rule_of<Lamb> = RuleName::lamb;
template <>
inline constexpr std::optional<RuleName> rule_of<Lion> = RuleName::lion;
template <>
inline constexpr std::optional<RuleName> rule_of<Sgd> = RuleName::sgd;

/// Of a number format; `format_of` is of a whole precision policy.
template <class Format>
inline constexpr std::optional<FormatName> number_format_of = std::nullopt;
template <>
inline constexpr std::optional<FormatName> number_format_of<Fp32> = FormatName::fp32;
template <>
inline constexpr std::optional<FormatName> number_format_of<Bf16> = FormatName::bf16;
template <>
inline constexpr std::optional<FormatName> number_format_of<Fp16> = FormatName::fp16;
template <>
inline constexpr std::optional<FormatName> number_format_of<PureBf16> = FormatName::pure_bf16;
template <class Policy>
inline constexpr std::optional<FormatName> format_of = std::nullopt;
template <class Format>
inline constexpr std::optional<FormatName> format_of<Precision<Format>> = number_format_of<Format>;

template <class Recomputing>
inline constexpr std::optional<int> recompute_of = std::nullopt;
template <>
inline constexpr std::optional<int> recompute_of<Recompute<Nothing>> = 0;
template <>
inline constexpr std::optional<int> recompute_of<Recompute<Blocks>> = 1;
template <int N>
inline constexpr std::optional<int> recompute_of<Recompute<EveryOther<N>>> = N;

template <class Averaging>
inline constexpr std::optional<AverageName> average_of = std::nullopt;
template <>
inline constexpr std::optional<AverageName> average_of<NoEma> = AverageName::none;
template <>
inline constexpr std::optional<AverageName> average_of<Ema<Cpu>> = AverageName::cpu;
template <>
inline constexpr std::optional<AverageName> average_of<Ema<Device>> = AverageName::device;

template <class Adaptation>
inline constexpr std::optional<AdapterName> adapter_of = std::nullopt;
template <>
inline constexpr std::optional<AdapterName> adapter_of<NoAdapter> = AdapterName::none;
template <>
inline constexpr std::optional<AdapterName> adapter_of<Adapter<Lora>> = AdapterName::lora;
template <>
inline constexpr std::optional<AdapterName> adapter_of<Adapter<Lokr>> = AdapterName::lokr;

template <class Policy>
inline constexpr std::optional<FrozenName> frozen_of = std::nullopt;
template <>
inline constexpr std::optional<FrozenName> frozen_of<FrozenAsComputed> = FrozenName::as_computed;
template <>
inline constexpr std::optional<FrozenName> frozen_of<FrozenWeights<Int8>> = FrozenName::int8;
template <>
inline constexpr std::optional<FrozenName> frozen_of<FrozenWeights<Nf4>> = FrozenName::nf4;

}  // namespace detail

/// What a composition does, policy by policy. Empty where a configuration has no words for it, as for a policy of a
/// program's own: such a one is chosen by a configuration that says nothing about its slot.
///
///   Setup  strata::Setup<...>
template <class Setup>
[[nodiscard]] constexpr Composition composition_of() noexcept {
    return {.stage = detail::stage_of<typename Setup::sharding>,
            .state = detail::kept_on<typename Setup::offload::tier>,
            .parameters = detail::kept_on<typename Setup::parameter_offload::tier>,
            .rule = detail::rule_of<typename Setup::optimizer::rule>,
            .precision = detail::format_of<typename Setup::precision>,
            .recompute = detail::recompute_of<typename Setup::recompute>,
            .average = detail::average_of<typename Setup::averaging>,
            .gradients = detail::kept_on<typename Setup::gradient_offload::tier>,
            .moment = Setup::timing::in_backward ? MomentName::in_backward : MomentName::after_backward,
            .adapter = detail::adapter_of<typename Setup::adaptation>,
            .frozen = detail::frozen_of<typename Setup::frozen_weights>};
}

}  // namespace strata::config
