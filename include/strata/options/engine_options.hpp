#pragma once
// strata/options/engine_options.hpp - EngineOptions: what an engine can be told; its tiers', average's and rule's options are in it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/ema_options.hpp>
#include <strata/options/loss_scale_options.hpp>
#include <strata/options/on_non_finite.hpp>
#include <strata/options/tier_options.hpp>

namespace strata::zero {

/// What an update rule is to its options: it names its own. optim::UpdateRule asks for the rest.
template <class R>
concept HasOptions = requires {
    typename R::Options;
};

/// In place of a rule where none is known yet: the numbers of a configuration file before a program takes them.
struct NoRule {
    struct Options {};
};

/// Parameters that are updated with settings of their own.
template <HasOptions Rule>
struct ParameterGroup {
    std::function<bool(std::string_view name)>
        takes{};                      ///< by the name in the state dict; called once for each; not empty
    double lr_factor = 1.0;           ///< times the learning rate of step()
    typename Rule::Options update{};  ///< betas, weight decay, ...

    static void describe(auto& option) {
        option("lr_factor", &ParameterGroup::lr_factor, {0, 1e6}, "Times the learning rate");
        option.part("update", &ParameterGroup::update, "");
    }
    void check(OptionCheck& check) const {
        if (!takes)
            check.refuse(check.name("takes") + " is empty, so that the group has no parameter",
                         "give it a function of a parameter's name, or remove the group");
        check.described(*this);
    }
};

/// Settings of an Engine; the same on every rank, but for tiers.nvme_path.
///
///   Rule     its update rule
///   Average  the options of its averaging policy: the policy's own Options, where it names some
template <HasOptions Rule, class Average = optim::EmaOptions>
struct EngineOptions {
    std::int64_t bucket_numel = 25'000'000;      ///< elements that a bucket outside of units holds at most
    int gradient_accumulation_steps = 1;         ///< backward() calls for one step()
    double max_grad_norm = 0.0;                  ///< clips the global gradient norm; 0 does not clip
    double max_grad_value = 0.0;                 ///< clamps every element of the mean gradient instead; 0 does not
    typename Rule::Options update{};             ///< betas, weight decay, ... of parameters that no group takes
    std::vector<ParameterGroup<Rule>> groups{};  ///< a parameter belongs to the first that takes it

    /// Precision<Format, Except<Other>>: parameters that keep the other format, by parts of their names in the state dict with commas
    /// between: "norm,embed". And those that `excepts` takes.
    std::string excepted_parameters{};
    std::function<bool(std::string_view name)> excepts{};

    OnNonFinite on_non_finite =
        OnNonFinite::stop;               ///< a step whose loss or gradients are not finite; fp16 has loss_scale first
    std::int64_t non_finite_limit = 10;  ///< OnNonFinite::skip: steps in a row that are skipped at most
    bool computes_only = false;  ///< every parameter is frozen: no gradients, no state, no backward() and step()

    /// Where gradients are whole on every rank (stages 0 and 1): several micro-batches are added up there, and over the ranks
    /// once a step, in place of once a micro-batch. Fewer collectives, other bits, and gradients in fp32 whatever the
    /// parameters are kept in.
    bool reduce_once_a_step = false;
    bool overlap = true;        ///< stages 0 and 1 reduce buckets while backward goes on; stage 2 always does
    int buckets_in_flight = 4;  ///< reductions that wait or run at once; stage 2 holds one whole bucket more than that

    optim::LossScaleOptions loss_scale{};  ///< Precision<Fp16>
    std::uint64_t rounding_seed =
        42;  ///< Precision<PureBf16>: of its stochastic rounding; a Trainer gives its own seed

    /// ZeroStage<3>: bytes of units that are gathered before they are needed, at most; -1: the largest unit, 0: none.
    std::int64_t prefetch_bucket_bytes = -1;
    /// ZeroStage<3>: nothing is gathered ahead while that would make more elements of units whole; 0: no such bound.
    std::int64_t max_live_parameters = 0;

    Average ema{};        ///< of the moving average
    TierOptions tiers{};  ///< of what is kept on a disk

    /// What messages about ranks that wait for one another call it; a Trainer gives its own name. Empty: by its number.
    std::string name{};

    /// The rule's own options have keys where the rule is known, and groups have none.
    static void describe(auto& option) {
        using E = EngineOptions;
        option("gradient_accumulation_steps", &E::gradient_accumulation_steps, ranges::accumulation_steps,
               "Micro-batches whose gradients make one optimizer step");
        option("max_grad_norm", &E::max_grad_norm, ranges::gradient_limit,
               {.help = "The norm that the whole gradient is scaled down to", .special = "0 does not clip"});
        option("max_grad_value", &E::max_grad_value, ranges::gradient_limit,
               {.help = "What every element of the gradient is clamped to instead", .special = "0 does not clip"});
        option(
            "excepted_parameters", &E::excepted_parameters,
            "Of a precision with exceptions: parts of the names of parameters that keep the other number format, with commas "
            "between: `norm,embed`");
        option("on_non_finite", &E::on_non_finite, on_non_finite_names,
               {.help = "Whether a step whose loss or gradients are not finite ends the run or is skipped"});
        option("non_finite_limit", &E::non_finite_limit, ranges::positive,
               "Steps in a row that are skipped for it at most; then the run ends");
        option("bucket_numel", &E::bucket_numel, {1, ranges::size.most},
               {.help = "Elements of a bucket of gradients outside of units, at most; a unit is a bucket of its own",
                .alias = "reduce_bucket_size"});
        option(
            "reduce_once_a_step", &E::reduce_once_a_step,
            "Stages 0 and 1 add micro-batches up on each rank, and over the ranks once a step: fewer collectives, other bits");
        option("overlap", &E::overlap,
               {.help = "Stages 0 and 1 reduce gradients while backward goes on; stages 2 and 3 always do",
                .key = "overlap_comm"});
        option("buckets_in_flight", &E::buckets_in_flight, {1, 1e6},
               "Buckets that wait to be reduced, or are, at once");
        option(
            "prefetch_bucket_bytes", &E::prefetch_bucket_bytes, ranges::bytes_ahead,
            {.help =
                 "`ZeroStage<3>`: bytes of units that are gathered ahead of their use, at most; 0 gathers none ahead",
             .special = "-1 takes the largest unit"});
        option(
            "max_live_parameters", &E::max_live_parameters, ranges::size,
            {.help =
                 "`ZeroStage<3>`: no unit is gathered ahead while more parameters of units than this would be whole at once",
             .special = "0 is no bound",
             .alias = "stage3_max_live_parameters"});
        option.part("update", &E::update, "optimizer_");
        option.part("ema", &E::ema, "ema_");
        option.part("loss_scale", &E::loss_scale, "loss_scale_");
        option.part("tiers", &E::tiers, "");
    }

    /// Beside what parts say of themselves: gradients are clipped in one way.
    void check(OptionCheck& check) const {
        check.described(*this);
        const auto clips = [](double limit) { return limit > 0 && ranges::gradient_limit.holds(limit); };
        if (clips(max_grad_norm) && clips(max_grad_value))
            check.refuse_both("max_grad_norm", max_grad_norm, "max_grad_value", max_grad_value,
                              "gradients are clipped in one way", "keep the one you mean, and leave the other at 0");
        for (std::size_t i = 0; i < groups.size(); ++i) check.part("groups[" + std::to_string(i) + "]", groups[i]);
    }
};

namespace detail {

template <class Averaging>
struct AverageOptions {
    using type = optim::EmaOptions;
};
template <HasOptions Averaging>
struct AverageOptions<Averaging> {
    using type = typename Averaging::Options;
};

}  // namespace detail

/// The options of an averaging policy: what it names as Options, or those of an exponential average.
template <class Averaging>
using average_options_t = typename detail::AverageOptions<Averaging>::type;

}  // namespace strata::zero
