#pragma once
// strata/zero/parts/assembly.hpp - Assembly: the parts of an engine, made for a setup and filled with a model.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/zero_stage.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/averages/ema.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exceptions.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/formats.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/local_failure.hpp>
#include <strata/zero/parts/memory_plan.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/sharded_average.hpp>
#include <strata/zero/parts/state_in_formats.hpp>
#include <strata/zero/parts/state_pass.hpp>
#include <strata/zero/parts/state_update.hpp>
#include <strata/zero/parts/take_over.hpp>
#include <strata/zero/parts/tier_folder.hpp>
#include <strata/zero/parts/trained_model.hpp>
#include <strata/zero/parts/unit_gathering.hpp>
#include <strata/zero/parts/weight_gathering.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tiers/cpu.hpp>
#include <strata/zero/tiers/device.hpp>
#include <strata/zero/tiers/nvme.hpp>
#include <strata/zero/tiers/split.hpp>

namespace strata::zero {

/// What an Engine is made of, in the order in which it can be made. Template arguments and errors are Engine's.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
class Assembly {
public:
    using Rule = typename Setup::optimizer::rule;
    using Options = engine_options_t<Setup>;
    using Numerics = typename Setup::precision;
    using Element = typename Numerics::element;
    using Kept = typename Numerics::kept;
    static constexpr std::size_t states = optim::state_count_v<Rule>;
    using Formats = FormatsOf<Numerics>;
    static constexpr bool has_exceptions = Formats::has_exceptions;
    using State = typename detail::StateOfPrecision<typename Setup::offload::tier, Numerics, states>::type;
    using Shards = detail::shards_on_t<typename Setup::parameter_offload::tier, Element>;
    using Store = typename detail::ShardsOfPrecision<typename Setup::parameter_offload::tier, Numerics>::type;
    using Pass = StatePass<Numerics, states, State, Compute>;
    using Update = StateUpdate<Rule, Numerics, State, Compute>;
    static_assert(sizeof(std::conditional_t<Setup::averaging::enabled,
                                            detail::AverageOn<typename Setup::averaging, Kept>, char>) > 0);
    static constexpr Sharded sharded{Setup::sharding::shards_state != ShardedOver::nothing,
                                     Setup::sharding::shards_gradients != ShardedOver::nothing,
                                     Setup::sharding::shards_parameters != ShardedOver::nothing};

    Assembly(Comm& comm, std::vector<Parameter> parameters, Options given, Compute device)
        : Assembly{comm, std::move(parameters), std::make_unique<Options>(detail::checked(std::move(given))), device} {}
    Assembly(const Assembly&) = delete;
    Assembly& operator=(const Assembly&) = delete;
    ~Assembly() { exchange.close(); }

    /// Whether units are whole only while they compute.
    [[nodiscard]] bool gathers() const noexcept { return buckets.shards_units(); }
    /// Posts what a pass that failed has not, waits for all of it, and makes a failure of one rank one of all ranks.
    void end_pass() {
        weights.finish();
        failure.tell(exchange);
    }

private:
    std::unique_ptr<Options> options_;
    TrainedModel model_;

public:
    Options& options = *options_;
    Compute compute;
    std::shared_ptr<detail::BufferPool> pool =
        std::make_shared<detail::BufferPool>(compute.device(), compute.pinning());
    ExchangeOver<Comm, Compute> exchange;
    Buckets buckets;
    std::vector<UpdateGroup<Rule>> groups;  ///< the last one is that of the options
    LocalFailure failure{State::fails_alone || Shards::fails_alone};
    TierFolder folder{State::wants_folder || Shards::wants_folder};
    State state;
    Store shards{*pool};
    std::unique_ptr<ShardedAverage> average = made_average();  ///< nullptr without one
    GradientReduction gradients{exchange, *pool, buckets, gradient_options()};
    WeightGathering weights{exchange, buckets};
    Pass pass{state, shards, buckets, *pool, failure};
    std::unique_ptr<UnitGathering> gathering;          ///< where units are gathered or recomputed
    std::map<const void*, std::int32_t> unit_numbers;  ///< there, by tensor
    std::vector<Parameter> frozen;                     ///< what does not require a gradient

private:
    Assembly(Comm& comm, std::vector<Parameter> parameters, std::unique_ptr<Options> checked, Compute device)
        : options_{std::move(checked)},
          model_{sorted_model(
              comm, with_exceptions(std::move(parameters), *options_, has_exceptions),
              [this](std::string_view name) { return group_of(name); }, described(), device.device(),
              options_->computes_only)},
          compute{std::move(device)},
          exchange{comm, *pool, compute},
          buckets{model_.trained, model_.group_of, bucket_options(comm)} {
        const at::NoGradGuard no_grad;
        make_groups();
        if (sharded.parameters && !model_.has_units() && !options.computes_only) {
            throw Error{Errc::bad_parameter,
                        "ZeroStage<3> shards the parameters of units, and this model has no unit to train",
                        "hold its blocks as std::shared_ptr<strata::Unit<Block>>, or use ZeroStage<2>"};
        }
        if (options.reduce_once_a_step && (sharded.gradients || sharded.parameters)) {
            throw Error{
                Errc::bad_value,
                "reduce_once_a_step adds micro-batches up on each rank, and this sharding keeps no whole gradients there",
                "leave reduce_once_a_step out, or use ZeroStage<1>"};
        }
        TakeOver model{exchange, *pool, buckets, shards, model_.trained, model_.frozen, take_over_options()};
        if constexpr (has_exceptions) shards.set_excepted(model.shards_excepted());
        require_memory(model);
        take_over(model);
        frozen = std::move(model_.frozen);
        model_ = {};
    }

    // ---- what the options say --------------------------------------------------------------------------------------

    [[nodiscard]] std::size_t group_of(std::string_view name) const {
        const auto takes = [&](const ParameterGroup<Rule>& group) { return group.takes && group.takes(name); };
        const auto found = std::find_if(options_->groups.begin(), options_->groups.end(), takes);
        return static_cast<std::size_t>(found - options_->groups.begin());
    }
    [[nodiscard]] std::string described() const {
        const Options& o = *options_;
        std::string text = "bucket_numel " + std::to_string(o.bucket_numel) + ", gradient_accumulation_steps " +
                           std::to_string(o.gradient_accumulation_steps) +
                           (o.reduce_once_a_step ? ", reduce_once_a_step" : "");
        if (sharded.parameters) {
            text += ", prefetch_bucket_bytes " + std::to_string(o.prefetch_bucket_bytes) + ", max_live_parameters " +
                    std::to_string(o.max_live_parameters);
        }
        return text;
    }
    [[nodiscard]] Buckets::Options bucket_options(Comm& comm) const {
        return {.bucket_numel = options_->bucket_numel,
                .replicates_state = !sharded.state,
                .shards_units = sharded.parameters && (Shards::gathers_alone || comm.world() > 1),
                .rank = comm.rank(),
                .world = comm.world()};
    }
    [[nodiscard]] static TakeOver::Options take_over_options() {
        TakeOver::Options options{.dtype = Formats::dtype(false),
                                  .excepted_dtype = Formats::dtype(true),
                                  .device = Pass::device_memory,
                                  .state = memory_of<Compute>(State::memory)};
        if constexpr (has_exceptions) options.excepted_state = memory_of<Compute>(State::excepted_memory);
        return options;
    }
    [[nodiscard]] GradientReduction::Options gradient_options() const {
        return {.dtype = Formats::gradient_dtype(false),
                .excepted_dtype = Formats::gradient_dtype(true),
                .sharded = sharded.gradients,
                .overlap = options_->overlap,
                .once_a_step = options_->reduce_once_a_step,
                .buckets_in_flight = options_->buckets_in_flight,
                .micro_batches = options_->gradient_accumulation_steps};
    }
    void make_groups() {
        for (const ParameterGroup<Rule>& group : options.groups) {
            for (std::size_t k = 0; k < states; ++k) {
                if (optim::initial_state<Rule>(group.update, k) == optim::initial_state<Rule>(options.update, k))
                    continue;
                throw Error{Errc::bad_value,
                            "a parameter group starts the state " + std::string{Rule::state_names[k]} +
                                " with another value than the other parameters",
                            "give every group the same initial value"};
            }
            groups.push_back({group.lr_factor, group.update});
        }
        groups.push_back({1.0, options.update});
    }
    [[nodiscard]] std::unique_ptr<ShardedAverage> made_average() const {
        if constexpr (Setup::averaging::enabled) {
            using Average = detail::AverageOn<typename Setup::averaging, Kept>;
            if constexpr (Average::holds)
                return std::make_unique<AverageOf<typename Average::type>>(options_->ema);
            else
                return nullptr;
        } else {
            return nullptr;
        }
    }

    // ---- the model's way in ----------------------------------------------------------------------------------------

    /// Compares what is going to be allocated with what this node and the device have free, before any of it is.
    void require_memory(const TakeOver& model) {
        const PlaceBytes trained_shards = shards.bytes(buckets.shard_numels());
        const MemoryPlan plan{.device_is_host = Compute::is_host,
                              .dtype = Formats::dtype(false),
                              .excepted_dtype = Formats::dtype(true),
                              .gradients = gradient_options(),
                              .state = state_bytes(),
                              .average = average ? average->bytes(buckets.share_numels()) : PlaceBytes{},
                              .trained_shards = trained_shards,
                              .frozen_shards = shards.bytes(model.shard_numels()) - trained_shards};
        const MemoryPlan::Need need = plan.need(buckets, model_.frozen);
        const std::string fix = plan.fix(sharded);
        detail::require_node_memory(
            exchange.all_gather_texts(detail::memory_need(static_cast<std::uint64_t>(need.host))), fix);
        if constexpr (!Compute::is_host) {
            compute.release_cached();
            exchange.agree([&] {
                detail::require_device_memory(compute.device(), static_cast<std::uint64_t>(need.device),
                                              compute.free_memory(), fix);
            });
        }
    }

    [[nodiscard]] PlaceBytes state_bytes() const {
        if constexpr (has_exceptions)
            return State::bytes(buckets.part_numels(), buckets.unexcepted());
        else
            return State::bytes(buckets.part_numels());
    }

    /// Files first, then bucket by bucket: values, shards, master, states. What fails on one rank does so on all.
    void take_over(TakeOver& model) {
        model.take_frozen();
        folder.agree_on_name(exchange);
        exchange.agree([&] { make_tiers(model); });
        std::array<float, states> initial{};
        for (std::size_t k = 0; k < states; ++k) initial[k] = optim::initial_state<Rule>(options.update, k);
        failure.keep([&] { state.fill(initial, [&](std::size_t bucket) { return take_bucket(model, bucket); }); });
        // After a failure the values of the other buckets are still exchanged: the other ranks wait for that.
        while (model.taken() < buckets.size()) failure.keep([&] { take_bucket(model, model.taken()); });
        for (std::size_t i = 0; i < model.frozen_units().size(); ++i) failure.keep([&] { model.take_frozen_unit(i); });
        failure.tell(exchange);
        if (sharded.parameters || Setup::recompute::any) hand_over_units(model);
        pool->trim();
        if constexpr (!Compute::is_host) compute.release_cached();
    }
    void make_tiers(const TakeOver& model) {
        folder.open(options.tiers.nvme_path, exchange.rank(), options.tiers.nvme_lock_timeout);
        const auto context = [&](const char* name, offload::PipelineOptions windows) {
            if (!windows.pinning.pin) windows.pinning = compute.pinning();
            return TierContext{*pool, folder.get(), name, std::move(windows)};
        };
        const TierContext of_state = context("optimizer", options.tiers.state);
        if constexpr (has_exceptions)
            state.make(of_state, buckets.part_numels(), buckets.unexcepted());
        else
            state.make(of_state, buckets.part_numels());
        shards.make(context("parameters", options.tiers.units), model.shard_numels());
        if (average) average->make(context("average", options.tiers.state), buckets.share_numels());
    }
    at::Tensor take_bucket(TakeOver& model, std::size_t bucket) {
        const at::Tensor values_B = model.take_bucket(bucket);
        if (average) {  // of the weights as they are kept
            const at::Tensor& weights_B =
                Formats::has_master(buckets.excepted(bucket)) ? values_B : buckets[bucket].weight_B;
            detail::tensor_over(average->values(bucket), pool->device_of(average->memory()))
                .copy_(buckets.own_share(weights_B));
        }
        gradients.take(bucket);
        model.shard_bucket(bucket);
        return model.start_of_state(values_B, buckets.excepted(bucket));
    }
    void hand_over_units(TakeOver& model) {
        const auto recomputed = [](std::int32_t unit, std::int32_t units) -> bool {
            return Setup::recompute::recomputes(unit, units);
        };
        gathering = std::make_unique<UnitGathering>(
            exchange, shards, *pool,
            UnitGathering::Options{.gathers = gathers(),
                                   .recomputes = Setup::recompute::any ? +recomputed : nullptr,
                                   .prefetch_bytes = options.prefetch_bucket_bytes,
                                   .max_live_numel = options.max_live_parameters},
            [this](std::size_t bucket) { gradients.reduce(bucket); });
        gathering->set_buckets(gathers() ? buckets.size() : 0);
        unit_numbers = model.add_units(*gathering);
        if (gathers()) gradients.reduce_when_told([this](std::size_t bucket) { gathering->bucket_ready(bucket); });
    }
};

}  // namespace strata::zero
