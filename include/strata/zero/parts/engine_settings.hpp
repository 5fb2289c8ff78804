#pragma once
// strata/zero/parts/engine_settings.hpp - EngineSettings: what a setup and its options say to the parts of an engine.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/tier.hpp>
#include <strata/policy/zero_stage.hpp>
#include <strata/zero/codecs/int8.hpp>
#include <strata/zero/codecs/nf4.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/frozen_codec.hpp>
#include <strata/zero/parts/backward_update.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/formats.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/state_update.hpp>

namespace strata::zero {

/// Local. The options outlive it.
template <class Setup>
class EngineSettings {
public:
    using Rule = typename Setup::optimizer::rule;
    using Options = engine_options_t<Setup>;
    static constexpr Sharded sharded{Setup::sharding::shards_state != ShardedOver::nothing,
                                     Setup::sharding::shards_gradients != ShardedOver::nothing,
                                     Setup::sharding::shards_parameters != ShardedOver::nothing};

    static_assert(sizeof(detail::FormatOfPolicy<typename Setup::frozen_weights>) > 0);
    /// What frozen matrices of units are kept in; nullptr: in the format that the model computes with.
    static constexpr const FrozenFormat* frozen_format = frozen_format_of<typename Setup::frozen_weights>();
    /// Whether units are shards between their uses in a world of one, too: on a tier that wants it, and where frozen weights are quantised.
    template <class Shards>
    static constexpr bool gathers_alone = Shards::gathers_alone || Setup::frozen_weights::quantises;
    static constexpr bool updates_in_backward = Setup::timing::in_backward;
    static_assert(sizeof(typename rule::ElementsAreUpdatedAlone<typename Setup::timing, Rule>::Report) > 0);

    explicit EngineSettings(const Options& options) : options_{options} {}

    /// Throws bad_value for options that the setup cannot follow.
    void check() const {
        if (options_.reduce_once_a_step && (sharded.gradients || sharded.parameters)) {
            throw Error{
                Errc::bad_value,
                "reduce_once_a_step adds micro-batches up on each rank, and this sharding keeps no whole gradients there",
                "leave reduce_once_a_step out, or use ZeroStage<1>"};
        }
        if (updates_in_backward && !options_.computes_only)
            BackwardUpdate::check(options_.max_grad_norm, options_.gradient_accumulation_steps, options_.on_non_finite);
    }

    /// The number of a parameter's group.
    [[nodiscard]] std::size_t group_of(std::string_view name) const {
        const auto takes = [&](const ParameterGroup<Rule>& group) { return group.takes && group.takes(name); };
        const auto found = std::find_if(options_.groups.begin(), options_.groups.end(), takes);
        return static_cast<std::size_t>(found - options_.groups.begin());
    }
    /// What groups are updated with; the last one is of the parameters that are in no other. Throws bad_value.
    [[nodiscard]] std::vector<UpdateGroup<Rule>> groups() const {
        std::vector<UpdateGroup<Rule>> found;
        for (const ParameterGroup<Rule>& group : options_.groups) {
            for (std::size_t k = 0; k < optim::state_count_v<Rule>; ++k) {
                if (optim::initial_state<Rule>(group.update, k) == optim::initial_state<Rule>(options_.update, k))
                    continue;
                throw Error{Errc::bad_value,
                            "a parameter group starts the state " + std::string{Rule::state_names[k]} +
                                " with another value than the other parameters",
                            "give every group the same initial value"};
            }
            found.push_back({group.lr_factor, group.update});
        }
        found.push_back({1.0, options_.update});
        return found;
    }
    /// What must be the same on every rank: names and values.
    ///
    ///   recomputed  by unit
    [[nodiscard]] std::string described(const std::vector<char>& recomputed) const {
        std::string text = "bucket_numel " + std::to_string(options_.bucket_numel) + ", gradient_accumulation_steps " +
                           std::to_string(options_.gradient_accumulation_steps) +
                           (options_.reduce_once_a_step ? ", reduce_once_a_step" : "");
        if (sharded.parameters) {
            text += ", prefetch_bucket_bytes " + std::to_string(options_.prefetch_bucket_bytes) +
                    ", max_live_parameters " + std::to_string(options_.max_live_parameters);
        }
        if (!recomputed.empty()) text += ", recomputed units";
        for (std::size_t unit = 0; unit < recomputed.size(); ++unit) {
            if (recomputed[unit] != 0) text += " " + std::to_string(unit);
        }
        return text;
    }
    [[nodiscard]] Buckets::Options buckets(bool shards_units, int rank, int world) const {
        return {.bucket_numel = options_.bucket_numel,
                .replicates_state = !sharded.state,
                .shards_units = shards_units,
                .rank = rank,
                .world = world};
    }
    /// Gradients of one rank's only micro-batch are their sums where they arrive, unless those are elsewhere: a second bucket beside each
    /// would only be copied.
    [[nodiscard]] GradientReduction::Options gradients(int world) const {
        using Formats = FormatsOf<typename Setup::precision>;
        constexpr bool sums_stay = !updates_in_backward && std::same_as<typename Setup::gradient_offload::tier, Device>;
        const bool are_sums = sums_stay && world == 1 && options_.gradient_accumulation_steps == 1;
        return {.dtype = Formats::gradient_dtype(false),
                .excepted_dtype = Formats::gradient_dtype(true),
                .sharded = (sharded.gradients || updates_in_backward) && !are_sums,
                .sums_on_tier = !std::same_as<typename Setup::gradient_offload::tier, Device>,
                .used_at_once = updates_in_backward,
                .overlap = options_.overlap,
                .once_a_step = options_.reduce_once_a_step,
                .buckets_in_flight = options_.buckets_in_flight,
                .micro_batches = options_.gradient_accumulation_steps};
    }

    /// Which of so many units run again in backward; empty where none ever does.
    [[nodiscard]] static std::vector<char> recomputed(std::int32_t units) {
        std::vector<char> found;
        if constexpr (Setup::recompute::any) {
            for (std::int32_t unit = 0; unit < units; ++unit)
                found.push_back(Setup::recompute::recomputes(unit, units) ? 1 : 0);
        }
        return found;
    }

private:
    const Options& options_;
};

}  // namespace strata::zero
