#pragma once
// strata/zero/parts/state_update.hpp - StateUpdate: sums of gradients become new states and weights.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <strata/offload/window_pipeline.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/update_run.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/layer_norms.hpp>
#include <strata/zero/parts/open_sums.hpp>
#include <strata/zero/parts/sharded_average.hpp>
#include <strata/zero/parts/staging.hpp>
#include <strata/zero/parts/state_pass.hpp>
#include <strata/zero/parts/weight_gathering.hpp>

namespace strata::zero {

/// Parameters that share their settings.
template <class Rule>
struct UpdateGroup {
    double lr_factor = 1.0;
    typename Rule::Options update{};
};

/// One step of an update rule over this rank's state, window by window: fetch i + 1, update i, flush i - 1, and the new
/// weights are gathered meanwhile. Works where the tier has the state, on the host or on the device.
///
///   Numerics, State, Compute  as of StatePass
template <class Rule, class Numerics, class State, ComputeDevice Compute>
class StateUpdate {
public:
    static constexpr std::size_t states = optim::state_count_v<Rule>;
    using Pass = StatePass<Numerics, states, State, Compute>;
    using Group = UpdateGroup<Rule>;
    using Scalars = typename Rule::Scalars;

    /// What one step is made with.
    struct Step {
        std::int64_t number = 0;  ///< from 1
        double lr = 0.0;
        optim::GradientTransform transform{};
        std::uint64_t rounding_seed = 0;
        ShardedAverage* average = nullptr;  ///< where there is one
    };

    /// All of it outlives this object.
    StateUpdate(Pass& pass, GradientReduction& gradients, WeightGathering& weights, const Buckets& buckets,
                Exchange& exchange, detail::BufferPool& pool, const Compute& compute)
        : pass_{pass},
          gradients_{gradients},
          weights_{weights},
          buckets_{buckets},
          exchange_{exchange},
          pool_{pool},
          compute_{compute} {}

    /// Asks the rule for the numbers of a step; changes nothing yet. Local.
    ///
    ///   groups  of the parameters
    void begin(const std::vector<Group>& groups, const Step& step) {
        step_ = step;
        scalars_.clear();
        for (const Group& group : groups) {
            scalars_.push_back(Rule::scalars(group.update, step.lr * group.lr_factor, step.number));
        }
    }
    /// Makes it. Collective. What a disk meets on this rank is with the pass's LocalFailure.
    void run(const std::vector<Group>& groups) {
        sums_.begin();
        if constexpr (optim::ElementwiseRule<Rule>) {
            update_elementwise();
        } else {
            update_layerwise(groups);
        }
        sums_.end();
    }
    /// Makes it for one bucket, inside of backward: weights of others are as before. Local; what a disk meets is with the
    /// pass's LocalFailure. begin() comes first, for rules whose elements do not know each other.
    ///
    ///   sums  of gradients, over ranks: of this rank's share (S), and of all (B) where every rank has all of the state
    void run_bucket(std::size_t bucket, const at::Tensor& sums) requires(optim::ElementwiseRule<Rule>) {
        sums_.lay_out(sums);
        pass_.beside_state_of(bucket, offload::Access::update, writes,
                              [this](const auto& run) { update_elements(run); });
        sums_.put_away();
    }

private:
    /// Parameters beside masters are written; without masters they are the weights that are updated.
    static constexpr ParameterUses writes{ParameterUse::write, ParameterUse::update};

    void update_elementwise() {
        const auto update = [this](const auto& run) {
            sums_.open(run);
            update_elements(run);
            sums_.close(run);
        };
        pass_.beside_state(offload::Access::update, writes, update, [this](std::size_t) { weights_.next(); });
    }

    /// A run whose sums are open.
    template <class Part>
    void update_elements(const Part& run) {
        is_fp32(run) ? update_run<float>(run) : update_run<CollectedOf<Part>>(run);
        update_average(run);
    }

    /// Two passes, because the length of a parameter's step depends on norms over all of it.
    void update_layerwise(const std::vector<Group>& groups) {
        LayerNorms layer_norms{pool_, buckets_.parameters().size()};
        const auto advance = [&](const auto& run) {
            const std::span<optim::NormSquares> sums = layer_norms.on(run.memory);
            sums_.open(run);
            is_fp32(run) ? advance_run<float>(run, sums) : advance_run<CollectedOf<decltype(run)>>(run, sums);
            sums_.close(run);
        };
        pass_.beside_state(offload::Access::update, {ParameterUse::none, ParameterUse::update}, advance);
        const std::vector<optim::NormSquares> norms = layer_norms.over_ranks(exchange_, buckets_.replicates_state());
        std::vector<std::vector<float>> ratios;
        for (const Group& group : groups) ratios.push_back(optim::trust_ratios<Rule>(group.update, norms));
        const auto apply = [&]<class Part>(const Part& run) {
            for_groups(run, [&](std::size_t group, const Part& part) {
                apply_part(part, scalars_[group], segments_of(part), ratios[group]);
            });
            update_average(run);
        };
        pass_.beside_state(offload::Access::update, writes, apply, [this](std::size_t) { weights_.next(); });
    }

    /// What gradients of a run are collected in, where their sums are not in fp32.
    template <class Run>
    using CollectedOf = gradient_element_t<typename std::remove_cvref_t<Run>::Element>;
    template <class Part>
    [[nodiscard]] bool is_fp32(const Part& run) const noexcept {
        return std::same_as<CollectedOf<Part>, float> || gradients_.sum_dtype(run.bucket) == at::kFloat;
    }
    template <class Gradient, class Part>
    void update_run(const Part& run) {
        Staging staging{pool_};
        const std::span<const Gradient> gradient = gradient_of<Gradient>(run, Part::memory, staging);
        for_groups(run, [&](std::size_t group, const Part& part) {
            update_part<Gradient>(part, scalars_[group], part_of(gradient, run, part));
        });
    }
    template <class Gradient, class Part>
    void advance_run(const Part& run, std::span<optim::NormSquares> sums) {
        Staging staging{pool_};
        const std::span<const Gradient> gradient = gradient_of<Gradient>(run, Part::memory, staging);
        for_groups(run, [&](std::size_t group, const Part& part) {
            advance_part<Gradient>(part, scalars_[group], part_of(gradient, run, part), segments_of(part), sums);
        });
    }

    // ---- the kernels, of the host or of the device, for the part of a run that is of one group ---------------------

    template <class Gradient, class Part>
    void update_part(const Part& part, const Scalars& scalars, std::span<const Gradient> gradient) {
        if constexpr (Part::memory == Place::host) {
            detail::update_run<Rule, Gradient, typename Part::Element>(scalars, step_.transform, gradient, part,
                                                                       part.parameters, rounding_of(part));
        } else {
            compute_.template update<Rule>(scalars, step_.transform, gradient, part.weight, part.state,
                                           rounded_copy(part), rounding_of(part));
        }
    }

    template <class Gradient, class Part>
    void advance_part(const Part& part, const Scalars& scalars, std::span<const Gradient> gradient,
                      const std::vector<optim::Segment>& segments, std::span<optim::NormSquares> sums) {
        using Kept = typename Part::Kept;
        if constexpr (Part::memory == Place::host) {
            optim::advance<Rule, Gradient, Kept>(scalars, step_.transform, gradient, part.weight, part.state, segments,
                                                 sums, rounding_of(part));
        } else {
            compute_.template advance<Rule, Gradient, Kept>(scalars, step_.transform, gradient, part.weight, part.state,
                                                            segments, sums, rounding_of(part));
        }
    }

    template <class Part>
    void apply_part(const Part& part, const Scalars& scalars, const std::vector<optim::Segment>& segments,
                    std::span<const float> ratios) {
        using Kept = typename Part::Kept;
        if constexpr (Part::memory == Place::host) {
            detail::apply_direction_run<Rule, typename Part::Element>(scalars, part, segments, ratios, part.parameters,
                                                                      rounding_of(part));
        } else {
            compute_.template apply_direction<Rule, Kept>(scalars, part.weight, part.state, segments, ratios,
                                                          rounded_copy(part), rounding_of(part));
        }
    }

    /// Moves the average of a run's elements towards their new weights, in the steps that are due.
    template <class Part>
    void update_average(const Part& run) {
        using Kept = typename Part::Kept;
        if (step_.average == nullptr || !step_.average->due(step_.number)) return;
        const Place memory = memory_of<Compute>(step_.average->memory());
        Staging staging{pool_};
        const std::span<const Kept> weight =
            staging.take(std::span<const Kept>{pass_.own_part(run, run.weight)}, Part::memory, memory, true);
        const std::span<float> average = step_.average->values(run.bucket).subspan(pass_.own_begin(run), weight.size());
        const double decay = step_.average->decay(step_.number);
        if constexpr (!Compute::is_host) {
            if (memory == Place::device) return compute_.template update_average<Kept>(decay, weight, average);
        }
        optim::update_average<Kept>(decay, weight, average);
    }

    // ---- runs, and what belongs to them ----------------------------------------------------------------------------

    /// Calls `call` with the parts of a run that are of one group each, in order. Padding goes with what is before it.
    template <class Part, class Call>
    void for_groups(const Part& run, Call&& call) {
        if (scalars_.size() == 1) return call(0, run);
        for (const Buckets::GroupPiece& piece : buckets_.group_pieces(run.bucket, run.begin, run.numel)) {
            const auto from = static_cast<std::size_t>(piece.begin);
            const auto numel = static_cast<std::size_t>(piece.numel);
            Part part = run;
            part.begin = run.begin + piece.begin;
            part.numel = piece.numel;
            if (!run.weight.empty()) part.weight = run.weight.subspan(from, numel);
            if (!run.parameters.empty()) part.parameters = run.parameters.subspan(from, numel);
            for (auto& state : part.state) state = state.subspan(from, numel);
            call(piece.group, std::as_const(part));
        }
    }

    /// The sums of gradients of a run, where it works.
    template <class Gradient, class Run>
    std::span<const Gradient> gradient_of(const Run& run, Place works, Staging& staging) {
        return staging.take(sums_.of<Gradient>(run), memory_of<Compute>(sums_.memory_of(run)), works, true);
    }

    /// The elements of a run's values that are a part's.
    template <class Value, class Part>
    [[nodiscard]] static std::span<Value> part_of(std::span<Value> values, const Part& run, const Part& part) {
        return values.subspan(static_cast<std::size_t>(part.begin - run.begin), static_cast<std::size_t>(part.numel));
    }

    template <class Part>
    [[nodiscard]] std::vector<optim::Segment> segments_of(const Part& part) const {
        const TrainedBucket& b = buckets_[part.bucket];
        return detail::segments_of(b.offsets, b.bucket.first_parameter, buckets_.share_of(part.bucket),
                                   buckets_.place_in_bucket(part.bucket, part.begin), part.numel);
    }

    template <class Part>
    [[nodiscard]] optim::StochasticRounding rounding_of(const Part& run) const {
        return {.seed = step_.rounding_seed,
                .step = step_.number,
                .first_element = buckets_[run.bucket].bucket.begin + buckets_.place_in_bucket(run.bucket, run.begin)};
    }
    /// The rounded weights that an update writes beside the masters; none where there are no masters.
    template <class Part>
    [[nodiscard]] static auto rounded_copy(const Part& part) {
        if constexpr (Part::has_master) {
            return part.parameters;
        } else {
            return std::span<bf16>{};
        }
    }

    Pass& pass_;
    GradientReduction& gradients_;
    WeightGathering& weights_;
    const Buckets& buckets_;
    Exchange& exchange_;
    detail::BufferPool& pool_;
    const Compute& compute_;
    Step step_;
    std::vector<Scalars> scalars_;  // by group
    OpenSums sums_{gradients_, buckets_};
};

}  // namespace strata::zero
