#pragma once
// strata/zero/parts/assembly.hpp - Assembly: the parts of an engine, made for a setup and filled with a model.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/averages/ema.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/answers.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/engine_settings.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/formats.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/gradient_tier.hpp>
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
    using Store = typename detail::StoreOfSetup<Setup>::type;
    using Sums = GradientTier<typename Setup::gradient_offload::tier, Numerics>;
    using Pass = StatePass<Numerics, states, State, Compute>;
    using Update = StateUpdate<Rule, Numerics, State, Compute>;
    static_assert(sizeof(std::conditional_t<Setup::averaging::enabled,
                                            detail::AverageOn<typename Setup::averaging, Kept>, char>) > 0);
    using Settings = EngineSettings<Setup>;
    static constexpr Sharded sharded = Settings::sharded;
    static_assert(sizeof(typename detail::UpdatesByBucket<Settings::updates_in_backward, State>::Report) > 0);

    Assembly(Comm& comm, std::vector<Parameter> given, Options wanted, Compute device)
        : Assembly{comm, asked<Setup>(comm, std::move(given), std::move(wanted)), device, nullptr} {}
    /// The same model, of which now other parameters require a gradient, with initial states. `before` has released what it
    /// can, lends this object the rest, and is of no use afterwards. Predicates are not asked again.
    explicit Assembly(Assembly& before) : Assembly{before.comm_, before.answers_, before.compute, &before} {}
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

    /// Gathers the unit that a parameter belongs to, and drops the one of the call before. Nothing where it is whole anyway.
    void hold_unit_of(const at::Tensor& parameter) {
        if (!gathers()) return;
        const auto found = unit_numbers.find(parameter.unsafeGetTensorImpl());
        if (found != unit_numbers.end()) gathering->hold_only(found->second);
    }

    // ---- other parameters are to be trained -------------------------------------------------------------------------

    /// The table of what requires a gradient now.
    [[nodiscard]] Buckets next_buckets() const {
        std::vector<Parameter> trained;
        std::vector<std::size_t> group_of_each;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (!parameters[i].tensor.requires_grad()) continue;
            trained.push_back(parameters[i]);
            group_of_each.push_back(answers_->group_of[i]);
        }
        return {trained, group_of_each, bucket_options()};
    }
    /// Lets gradients, states and average go. What is left are the values of the model.
    void release() {
        gradients.release();
        sums.reset();
        average.reset();
        // Tiers have no call for that; `pass` refers to it, and its class is made without arguments.
        std::destroy_at(&state);
        std::construct_at(&state);
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            if (!buckets[i].sharded) buckets[i].weight_B.reset();  // its parameters have the memory
        }
        pool->trim();
    }
    /// What a tier of this engine is lent. `name` is of a file, which no other of the engine's files has.
    [[nodiscard]] TierContext tier_context(std::string name, MemoryKind kind, offload::PipelineOptions windows) const {
        if (!windows.pinning.pin) windows.pinning = compute.pinning();
        if (times_made_ > 0) name += "." + std::to_string(times_made_);
        return {*pool, folder->get(), std::move(name), kind, std::move(windows)};
    }

private:
    Comm& comm_;
    std::shared_ptr<Answers<Setup>> answers_;
    Settings settings_{answers_->options};
    std::int64_t times_made_;  // with other parameters, before this time

public:
    Options& options = answers_->options;
    const std::vector<Parameter>& parameters = answers_->parameters;  ///< all of them, exceptions last

private:
    TrainedModel model_;

public:
    Compute compute;
    std::shared_ptr<detail::BufferPool> pool;
    ExchangeOver<Comm, Compute> exchange;
    Buckets buckets;
    std::vector<UpdateGroup<Rule>> groups = settings_.groups();  ///< the last one is that of the options
    LocalFailure failure{State::fails_alone || Shards::fails_alone || Sums::fails_alone};
    std::shared_ptr<TierFolder> folder;
    State state;
    Store shards{*pool};
    std::unique_ptr<ShardedAverage> average;  ///< nullptr without one
    std::unique_ptr<ShardStore> sums = Sums::store(options.gradient_accumulation_steps, buckets,
                                                   *pool);  ///< of gradients; nullptr where no tier has them
    GradientReduction gradients{exchange, *pool, buckets, settings_.gradients(exchange.world()), sums.get(), &failure};
    WeightGathering weights{exchange, buckets};
    Pass pass{state, shards, buckets, *pool, failure};
    std::unique_ptr<UnitGathering> gathering;          ///< where units are gathered or recomputed
    std::map<const void*, std::int32_t> unit_numbers;  ///< there, by tensor
    std::vector<Parameter> frozen;                     ///< what does not require a gradient

private:
    Assembly(Comm& comm, std::shared_ptr<Answers<Setup>> answers, Compute device, Assembly* before)
        : comm_{comm},
          answers_{std::move(answers)},
          times_made_{before == nullptr ? 0 : before->times_made_ + 1},
          model_{sorted_model(comm, parameters, answers_->group_of, settings_.described(answers_->recomputed),
                              device.device(), options.computes_only)},
          compute{std::move(device)},
          pool{before == nullptr ? std::make_shared<detail::BufferPool>(compute.device(), compute.pinning())
                                 : before->pool},
          exchange{comm, *pool, compute},
          buckets{model_.trained, model_.group_of, bucket_options()},
          folder{before == nullptr
                     ? std::make_shared<TierFolder>(State::wants_folder || Shards::wants_folder || Sums::wants_folder)
                     : before->folder} {
        const at::NoGradGuard no_grad;
        if (before == nullptr) detail::check_values_are_there(parameters);
        require_units<Setup>(model_, options.computes_only);
        TakeOver model{exchange, *pool, buckets, shards, model_.trained, model_.frozen, take_over_options(before)};
        sort_shards<Setup>(shards, model.sizes_of_shards());
        if (before == nullptr) answers_->name = agreed_name(exchange, options.name);
        exchange.call_it(answers_->name);
        require_memory(model);
        take_over(model, before);
        frozen = std::move(model_.frozen);
        model_ = {};
    }

    [[nodiscard]] Buckets::Options bucket_options() const {
        return settings_.buckets(sharded.parameters && (Settings::template gathers_alone<Shards> || comm_.world() > 1),
                                 comm_.rank(), comm_.world());
    }
    [[nodiscard]] static TakeOver::Options take_over_options(Assembly* before) {
        TakeOver::Options options{.dtype = Formats::dtype(false),
                                  .excepted_dtype = Formats::dtype(true),
                                  .device = Pass::device_memory,
                                  .state = memory_of<Compute>(State::memory),
                                  .quantised = Settings::frozen_format};
        if constexpr (has_exceptions) options.excepted_state = memory_of<Compute>(State::excepted_memory);
        if (before == nullptr) return options;
        options.gather = [before](const at::Tensor& parameter) { before->hold_unit_of(parameter); };
        if (options.quantised != nullptr && before->gathers())
            options.bytes_of = [before](const at::Tensor& parameter) { return before->gathering->bytes_of(parameter); };
        return options;
    }
    // ---- the model's way in ----------------------------------------------------------------------------------------

    /// Compares what is going to be allocated with what this node and the device have free, before any of it is.
    void require_memory(const TakeOver& model) {
        MemoryPlan plan{.device_is_host = Compute::is_host,
                        .dtype = Formats::dtype(false),
                        .excepted_dtype = Formats::dtype(true),
                        .quantised = Settings::frozen_format,
                        .gradients = settings_.gradients(exchange.world()),
                        .beside = model.bytes_beside()};
        exchange.agree([&] {  // tiers and averages may be a program's own
            average = made_average<typename Setup::averaging, Kept>(options);
            plan.state = state_bytes();
            if (average) plan.average = average->bytes(buckets.share_numels());
            if (sums) plan.sums = sums->bytes(buckets.share_numels());
            plan.trained_shards = shards.bytes(buckets.shard_numels());
            plan.frozen_shards = shards.bytes(model.shard_numels()) - plan.trained_shards;
        });
        require_room(plan.need(buckets, model_.frozen), plan.fix(sharded), exchange, compute);
    }

    [[nodiscard]] PlaceBytes state_bytes() const {
        if constexpr (has_exceptions)
            return State::bytes(buckets.part_numels(), buckets.unexcepted());
        else
            return State::bytes(buckets.part_numels());
    }

    /// Files first, then bucket by bucket: values, shards, master, states. What fails on one rank does so on all.
    void take_over(TakeOver& model, Assembly* before) {
        model.take_frozen();
        if (before == nullptr) folder->agree_on_name(exchange);
        exchange.agree([&] {
            if (before == nullptr)
                folder->open(options.tiers.nvme_path, exchange.rank(), options.tiers.nvme_lock_timeout);
            make_tiers(model);
        });
        const auto take = [&](std::size_t bucket) { return take_bucket(model, bucket); };
        // A tier's class is not to be one of each caller.
        const core::FunctionRef<at::Tensor(std::size_t)> values_of = take;
        failure.keep([&] { state.fill(answers_->initial, values_of); });
        // After a failure the values of the other buckets are still exchanged: the other ranks wait for that.
        while (model.taken() < buckets.size()) failure.keep([&] { take_bucket(model, model.taken()); });
        for (std::size_t i = 0; i < model.frozen_units().size(); ++i) failure.keep([&] { model.take_frozen_unit(i); });
        failure.tell(exchange);
        model.end_values();
        if (before != nullptr && before->gathers()) before->gathering->drop_all();
        if (sharded.parameters || Setup::recompute::any) hand_over_units(model);
        pool->trim();
        if constexpr (!Compute::is_host) compute.release_cached();
    }
    void make_tiers(const TakeOver& model) {
        const TierContext of_state = tier_context("optimizer", MemoryKind::state, options.tiers.state);
        if constexpr (has_exceptions)
            state.make(of_state, buckets.part_numels(), buckets.unexcepted());
        else
            state.make(of_state, buckets.part_numels());
        shards.make(tier_context("parameters", MemoryKind::parameters, options.tiers.units), model.shard_numels());
        const auto shares = buckets.share_numels();
        if (sums) sums->make(tier_context("gradients", MemoryKind::gradients, options.tiers.gradients), shares);
        if (average) average->make(tier_context("average", MemoryKind::state, options.tiers.state), shares);
    }
    at::Tensor take_bucket(TakeOver& model, std::size_t bucket) {
        const at::Tensor values = model.take_bucket(bucket);
        if (average) {  // of the weights as they are kept
            const bool has_master = Formats::has_master(buckets.excepted(bucket));
            detail::tensor_over(average->values(bucket), pool->device_of(average->memory()))
                .copy_(has_master ? model.own_values(bucket, values) : model.own_weights(bucket));
        }
        gradients.take(bucket);
        model.shard_bucket(bucket);
        return model.start_of_state(values, buckets.excepted(bucket), values.numel() != buckets.padded_of(bucket));
    }
    void hand_over_units(TakeOver& model) {
        gathering =
            std::make_unique<UnitGathering>(exchange, shards, *pool,
                                            UnitGathering::Options{.gathers = gathers(),
                                                                   .recomputed = answers_->recomputed,
                                                                   .prefetch_bytes = options.prefetch_bucket_bytes,
                                                                   .max_live_numel = options.max_live_parameters},
                                            [this](std::size_t bucket) { gradients.reduce(bucket); });
        gathering->set_buckets(gathers() ? buckets.size() : 0);
        unit_numbers = model.add_units(*gathering);
        if (gathers()) gradients.reduce_when_told([this](std::size_t bucket) { gathering->bucket_ready(bucket); });
    }
};

}  // namespace strata::zero
