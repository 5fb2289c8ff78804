#pragma once
// strata/train/run_plan.hpp - RunPlan: how samples become steps, and what a resumed run says that is another now.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <strata/checkpoint/facts.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/inline.hpp>
#include <strata/policy/precision.hpp>

namespace strata::train {

/// The numbers that decide which samples a step sees and in which order sums are formed.
struct RunPlan {
    std::uint64_t seed = 0;
    std::int64_t ranks = 1;
    std::int64_t samples_per_micro_batch = 1;  ///< of one rank
    std::int64_t gradient_accumulation_steps = 1;
    std::int64_t micro_batches_per_epoch = 1;
    std::string precision = "fp32";

    [[nodiscard]] std::int64_t samples_per_step() const noexcept {
        return samples_per_micro_batch * ranks * gradient_accumulation_steps;
    }
    [[nodiscard]] checkpoint::Facts facts() const;
};

/// "fp32", "bf16", "fp16", "pure bf16"; of a format that scales the loss where these do not, or the other way round, with
/// the words that say so.
///
///   Format  a precision, or what it says of its exceptions, whose loss scale is none of their business
template <class Format>
[[nodiscard]] constexpr std::string_view format_name() {
    using Element = typename Format::element;
    constexpr bool scales = [] {
        if constexpr (requires { Format::scales_loss; }) return Format::scales_loss;
        return false;
    }();
    if constexpr (std::same_as<Element, fp16>) return scales ? "fp16" : "fp16 without loss scaling";
    if constexpr (std::same_as<Element, float>) return scales ? "fp32 with loss scaling" : "fp32";
    if constexpr (Format::has_master) return scales ? "bf16 with loss scaling" : "bf16";
    return scales ? "pure bf16 with loss scaling" : "pure bf16";
}
/// The same of a precision, and of its exceptions: "bf16 with exceptions in fp32".
template <class Precision>
[[nodiscard]] std::string precision_name() {
    std::string name{format_name<Precision>()};
    if constexpr (strata::detail::has_exceptions_v<Precision>) {
        using Excepted = strata::detail::excepted_of_t<Precision>;
        name += " with exceptions in " + std::string{format_name<Excepted>()};
    }
    return name;
}

/// A sentence for everything that is another than in the checkpoint and is not chosen anew by every run: the seed, ranks and
/// batches, data, the adapter's numbers, and what bits depend on.
///
///   now  of this run: plan, data, adapter, environment
[[nodiscard]] std::vector<std::string> changes_since(const checkpoint::Manifest& then, const checkpoint::Manifest& now,
                                                     const RunPlan& plan);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/run_plan.ipp>
#endif
