#pragma once
// strata/zero/engine.hpp - Engine: backward passes become one optimizer step over all ranks.
//
// Shapes: B  elements of a bucket with padding      W  ranks
//         S  = B / W, a rank's share of a bucket    K  states of the update rule

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/error.hpp>
#include <strata/core/fp16.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/loss_scale.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/exchange.hpp>
#include <strata/zero/detail/gradient_hooks.hpp>
#include <strata/zero/detail/layer_norms.hpp>
#include <strata/zero/detail/local_failure.hpp>
#include <strata/zero/detail/loss.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/detail/run_order.hpp>
#include <strata/zero/detail/staging.hpp>
#include <strata/zero/detail/tier_folder.hpp>
#include <strata/zero/detail/unit_gathering.hpp>
#include <strata/zero/detail/update_run.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/non_finite.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/state.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tiers/cpu.hpp>
#include <strata/zero/tiers/device.hpp>
#include <strata/zero/tiers/nvme.hpp>
#include <strata/zero/tiers/split.hpp>

namespace strata::zero {

/// Data-parallel training with sharded state: ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054).
///
///   Engine<Setup<ZeroStage<2>>, comm::SelfComm> engine{comm, parameters_of(*model), {}};
///   engine.backward(model->loss(batch));     // gradient_accumulation_steps times
///   engine.step(1e-4);
///
/// All stages share one layout (zero/layout.hpp), reduce every micro-batch by the same sums in rank order, and form
/// norms from the same partial sums; they therefore give the same bits. What differs is what a
/// rank keeps, in elements for P parameters:
///
///   stage   parameters                 gradients                      master and state
///   0       P                          P                              P each
///   1       P                          P                              P/W each
///   2       P                          P/W and the buckets in flight  P/W each
///   3       P/W and the units in use   P/W and the buckets in flight  P/W each
///
/// memory() counts them. Gradients have the parameters' type, but fp16 ones are collected in fp32, because ranks add up
/// in fp32; with several micro-batches a step they add up in fp32, P/W more. The model keeps its tensors: they become
/// views of the engine's buckets. While an engine lives, do not convert or move the model. After it they stay valid, but
/// for the units of stage 3, whose parameters go with it.
///
/// Buckets are reduced on a thread of the engine's own while backward goes on, and updated weights are gathered while
/// the next bucket is updated. When backward(), step() or write_state() returns, nothing is under way: between them
/// the communicator is the caller's, but for forward passes at stage 3, which are collective: every rank calls the same
/// units in the same order, with or without gradients. Parameters outside of units are whole on every rank at stage 3
/// too; frozen ones inside of units are sharded like the others. In a world of one nothing needs to be gathered, and
/// stage 3 leaves units whole, unless the tier of their shards gathers them alone too, as Nvme does.
///
/// Masters and states are kept by the class `state` of the tier of OffloadTarget<Tier>, and shards of units by the class
/// `shards` of the tier of OffloadTarget<Tier, Parameters>: docs/offload.md, and zero/tier.hpp for a tier of one's own. No
/// tier changes a bit, except under rules with norms of whole parameters (Lamb), whose sums are formed run by run. What fails
/// on one rank only, a disk, is reported on all ranks by the pass that meets it; weights then differ between ranks, and
/// the run is over.
///
/// Recompute<Blocks> keeps no activations inside of units (zero/unit.hpp). Ema<...> keeps an average of the weights in
/// fp32, sharded like the state at every stage: 4 bytes a parameter over all ranks together.
///
/// On another device than the CPU weights, gradients and gathered units are in its memory. The update runs where the state
/// is, on the device or the host. A model on the CPU is moved bucket by bucket. A communicator that knows host memory only
/// exchanges copies. The bits are those of the CPU as far as the forward and backward passes are.
///
///   Setup    strata::Setup<...>; all policies but the backend are read. On the CPU OffloadTarget<Cpu> and
///            OffloadTarget<Device> are the same memory.
///   Comm     outlives the engine
///   Compute  where the model computes
template <class Setup, comm::Communicator Comm, ComputeDevice Compute = CpuDevice>
class Engine {
public:
    using Rule = typename Setup::optimizer::rule;
    using Options = EngineOptions<Rule>;
    using compute_device = Compute;
    static constexpr int stage = Setup::sharding::stage;

    /// Takes over the parameters that require a gradient: they get the values of rank 0, in the setup's precision.
    /// Frozen ones get both too, and are otherwise left alone outside of units. Collective.
    ///
    /// Throws no_parameters, bad_parameter, bad_value, not_enough_memory, and rank_mismatch when ranks have different
    /// models or options; where a tier keeps files also bad_reference, no_space, swap_in_use, swap_lock_timeout and io_failed.
    Engine(Comm& comm, std::vector<Parameter> parameters, Options options = {}, Compute compute = {});
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine() = default;

    /// Backpropagates the loss of one micro-batch and adds its gradients to this rank's share of their sum. Collective.
    ///
    ///   loss  this rank's mean loss; one element. Divided here by the number of micro-batches, and scaled for fp16.
    /// Parameters that the loss does not reach have gradient zero. Throws bad_loss, bad_parameter, wrong_call_order. Where units are
    /// not gathered, a rank whose pass throws has done its part for the others: it may throw alone, and they do not wait.
    void backward(const at::Tensor& loss);

    /// backward() of a rank that has no loss, for it failed: its gradients are zeros, so that the others need not wait for
    /// it, and what comes of them is of no use. Collective with their backward(). Not where units are gathered.
    void backward_without_loss();

    /// Forgets the gradients since the last step. After a pass that threw, or one that is not to be used. Local.
    void forget_gradients();

    /// Whether weights and state are those after step_count() steps: false when an update or write_state() threw half way.
    [[nodiscard]] bool state_is_whole() const noexcept { return state_is_whole_; }
    /// Whether units are whole only while they compute, so that forward passes are collective.
    [[nodiscard]] bool gathers_units() const noexcept { return sharded_; }

    /// Clips, updates and shares the weights, after gradient_accumulation_steps calls of backward(). Collective.
    ///
    ///   loss_is_finite  false: a rank's loss was not, and the step ends as if its gradients were not; the same on every rank
    /// Throws non_finite on all ranks when the gradient norm is, unless the options say OnNonFinite::skip; weights and state are
    /// then unchanged. With fp16 such a step is skipped in any case, on all ranks, and the loss scale falls; loss_scale_exhausted
    /// when it cannot. Also wrong_call_order, and what a tier's disk meets.
    StepResult step(double lr, bool loss_is_finite = true);

    /// Gathers the unit that a parameter, frozen or not, belongs to, and drops the one of the call before; nothing for
    /// parameters that are whole anyway. For reading all parameters one after the other without having them all. Between
    /// passes. Collective.
    void hold_unit_of(const at::Tensor& parameter);
    /// Drops what hold_unit_of() has gathered.
    void drop_units();

    /// Calls `body` while all parameters are whole, so that a rank may use the model on its own in it. Memory for all
    /// of them is needed. Between passes. Collective, though `body` need not be.
    template <class Body>
    void with_whole_model(Body&& body);

    /// Puts the average of the weights in their place, and back: for validation and export. In between backward(),
    /// step(), read_state() and write_state() throw wrong_call_order. Collective. Only with Ema<...>.
    void swap_average()
        requires(Setup::averaging::enabled);
    [[nodiscard]] bool average_is_in() const noexcept { return average_in_; }
    /// Makes the average that of the weights as they are, for a checkpoint without one. Collective.
    void restart_average()
        requires(Setup::averaging::enabled);

    /// The runs of this rank's state, between two steps: the weights, the update rule's states, and with Ema<...> the
    /// average. Stage 0, which has all of it, shows the same share as the other stages. Local.
    [[nodiscard]] std::vector<StateOutline> state_outline() const;

    /// Calls sink(std::string_view kind, std::int64_t begin, std::span<const float> values) with all parts of these runs,
    /// kind by kind in each part of the model; a part is in memory during the call only. Local. Throws wrong_call_order,
    /// and what the disk meets.
    template <class Sink>
    void read_state(Sink&& sink);

    /// Calls source(std::string_view kind, std::int64_t begin, std::span<float> values) to fill the same parts anew, and
    /// makes that take effect on all ranks. Collective, though `source` is not. Throws on all ranks what `source` threw on
    /// one, after which the run is over.
    ///
    ///   average  false: the average is not asked for
    template <class Source>
    void write_state(Source&& source, bool average = true);

    /// What a checkpoint keeps beside step_count() and the state, by name: with fp16 the state of the loss scale, else
    /// nothing. The same on every rank. Names that are missing leave their value as it is.
    [[nodiscard]] std::map<std::string, double> scalars() const;
    void restore_scalars(const std::map<std::string, double>& values);

    /// Optimizer steps done. A restored run sets it: AdamW's bias correction depends on it.
    [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
    void set_step_count(std::int64_t steps) noexcept { step_count_ = steps; }

    /// Trained parameters in order, and their elements in all.
    [[nodiscard]] const std::vector<ParameterInfo>& layout() const noexcept { return layout_; }
    [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }

    /// What this rank holds, by what it is and where. Local, from any thread.
    [[nodiscard]] const MemoryMeter& memory() const noexcept { return pool_->meter(); }
    [[nodiscard]] MemoryMeter& memory() noexcept { return pool_->meter(); }

private:
    using Element = typename Setup::precision::element;  // of parameters
    using Kept = typename Setup::precision::kept;        // of states, and of weights where they are updated
    using Collected = std::conditional_t<std::same_as<Element, fp16>, float, Element>;  // of gradients in buckets
    using Exchange = detail::Exchange<Comm, Compute>;
    using Channel = detail::DeviceChannel<Comm, Compute>;
    using Side = detail::Side;
    using Ticket = typename Channel::Ticket;
    static constexpr bool replicated = stage == 0;
    static constexpr bool has_master = Setup::precision::has_master;
    static constexpr bool scales_loss = Setup::precision::scales_loss;
    static constexpr bool averages = Setup::averaging::enabled;
    static constexpr bool recomputes = Setup::recompute::blocks;
    static constexpr std::size_t states = optim::state_count_v<Rule>;
    static constexpr bool has_keeper = stage == 3 || recomputes;
    static constexpr at::ScalarType dtype = detail::dtype_v<Element>;
    using State = detail::state_on_t<typename Setup::offload::tier, Kept, states, has_master>;
    using Shards = detail::shards_on_t<typename Setup::parameter_offload::tier, Element>;
    static constexpr Place average_place = [] {
        if constexpr (averages) return Setup::averaging::tier::place;
        return Place::host;
    }();
    /// Of weights without a master while the average is in their place.
    static constexpr Place aside_place = Compute::is_host && State::memory == Place::device ? Place::device : Place::host;
    static constexpr Side side_of(Place place) {
        return Compute::is_host || place != Place::device ? Side::host : Side::device;
    }
    static constexpr Side device_side = side_of(Place::device);
    static constexpr Side average_side = side_of(average_place);
    using Gathering = detail::UnitGathering<Shards, Exchange, Channel>;
    using Run = StateRun<Kept, states>;
    /// A run and the parameters it is about, on the side where a pass works.
    template <Side works>
    struct Part : Run {
        static constexpr Side side = works;
        std::span<Element> parameters;
    };
    using Scalars = typename Rule::Scalars;

    struct TrainedParameter {
        at::Tensor tensor;
        std::size_t bucket;
        std::int64_t offset;   // in the bucket
        std::size_t group;     // in groups_
        bool arrived = false;  // its gradient, in the running backward pass
    };
    struct BucketState {
        Bucket bucket;
        bool sharded = false;               // parameters of a unit that is whole only while it computes
        std::size_t shard = 0;              // its number in shards_
        std::int32_t kept_unit = -1;        // its unit's number in gathering_
        bool offered = false;               // its gradients are complete in the running backward pass; stage 3
        std::vector<std::int64_t> offsets;  // of its parameters, and its end
        at::Tensor weight_B;    // what the parameters are views of
        at::Tensor gradient_B;  // from stage 2 on only from a bucket's first gradient to the end of its reduction
        at::Tensor gradient_S;  // sum over ranks and micro-batches; a view of gradient_B where that lasts
        at::Tensor micro_S;     // sum over ranks of one micro-batch, while it is reduced
        at::Tensor gathered_B;  // at stage 0 the sums of all ranks, during an update
        at::Tensor average_S;   // Ema<...>
        at::Tensor set_aside_S; // weights without a master, while the average is in their place
        Ticket ticket;          // of its reduction or gathering
        std::size_t arrived = 0;
    };
    struct Group {
        double lr_factor;
        typename Rule::Options update;
    };
    /// The parameters that a pass over the state reads or writes with it.
    enum class Touch : std::uint8_t { none, read, write, update };
    /// Where a pass works.
    enum class Where : std::uint8_t { on_host, beside_state };

    /// Frozen parameters of a unit, which are sharded with it.
    struct FrozenUnit {
        std::int32_t unit = -1;
        std::vector<at::Tensor> tensors;
        std::int64_t numel = 0;
    };

    void plan_buckets(const std::vector<Parameter>& trained);
    void require_memory(const std::vector<Parameter>& frozen) const;
    void start(const std::vector<Parameter>& trained, const std::vector<Parameter>& frozen);
    at::Tensor take_bucket(std::size_t index, const std::vector<Parameter>& trained);
    std::vector<FrozenUnit> take_frozen(const std::vector<Parameter>& frozen);
    at::Tensor take_frozen_unit(const FrozenUnit& unit, std::size_t shard);
    void fill_shard(std::size_t shard, const at::Tensor& values_S);
    void keep_units(const std::vector<Parameter>& trained, const std::vector<Parameter>& frozen,
                    const std::vector<FrozenUnit>& frozen_units,
                    const std::vector<typename Gathering::Flat>& frozen_flats);
    void check_parameters_stayed() const;
    void begin_call(std::string_view call);
    void gradient_arrived(std::size_t index);
    void prefetch_state();
    void prepare_gradient(BucketState& bucket);
    void reduce(BucketState& bucket, bool adds);
    void reduce_next_bucket();
    void finish_reductions(std::size_t left);
    void begin_backward();
    void reduce_what_is_left();
    void backpropagate(const at::Tensor& loss);
    double gradient_norm();
    template <class Gradient>
    void update_all(std::span<const Scalars> scalars, const optim::GradientTransform& transform);
    template <class Gradient>
    void update_layerwise(std::span<const Scalars> scalars, const optim::GradientTransform& transform);
    template <Where where, class Call, class Done>
    void for_runs(offload::Access access, Touch touch, Call&& call, Done&& done);
    template <Where where, class Call>
    void for_runs(offload::Access access, Touch touch, Call&& call) {
        for_runs<where>(access, touch, std::forward<Call>(call), [](const Run&) {});
    }
    template <Side side, class Call>
    void work_on(const Run& run, Side run_is, offload::Access access, std::span<Element> parameters, Side parameters_are,
                 offload::Access parameter_access, Call&& call);
    template <Side side, class Call>
    void for_groups(const Part<side>& part, Call&& call);
    template <class Gradient, Side side>
    void update_part(const Part<side>& part, const Scalars& scalars, const optim::GradientTransform& transform,
                     std::span<const Gradient> gradient);
    template <class Gradient, Side side>
    void advance_part(const Part<side>& part, const Scalars& scalars, const optim::GradientTransform& transform,
                      std::span<const Gradient> gradient, const std::vector<optim::Segment>& segments,
                      std::span<optim::NormSquares> sums);
    template <Side side>
    void apply_part(const Part<side>& part, const Scalars& scalars, const std::vector<optim::Segment>& segments,
                    std::span<const float> ratios);
    /// The elements of a run's values that are a part's.
    template <class Value>
    [[nodiscard]] static std::span<Value> part_of(std::span<Value> values, const Run& run, const Run& part) {
        return values.subspan(static_cast<std::size_t>(part.begin - run.begin), static_cast<std::size_t>(part.numel));
    }
    template <class Gradient>
    std::span<const Gradient> gradient_of(const Run& run, Side side, detail::Staging& staging);
    void gather_gradient(std::size_t index);
    void gather_weights(BucketState& bucket);
    void post_weights(BucketState& bucket);
    void end_pass();
    template <Side side>
    void update_average(const Part<side>& run);
    [[nodiscard]] std::span<float> average_of(const Run& run, std::size_t numel) const;
    [[nodiscard]] ElementRun own_elements(const Run& run) const;
    [[nodiscard]] std::vector<std::int64_t> state_numels() const;
    [[nodiscard]] std::vector<std::int64_t> shard_numels(const std::vector<Parameter>& frozen) const;
    [[nodiscard]] bool shards_frozen(const Parameter& parameter) const {
        return sharded_ && parameter.unit >= 0 && parameter.tensor.is_floating_point();
    }
    [[nodiscard]] Side side_of_shard(std::size_t shard) const { return side_of(shards_.memory_of(shard)); }
    [[nodiscard]] at::Device device_of(Side side) const {
        return pool_->device_of(side == Side::host ? Place::host : Place::device);
    }
    [[nodiscard]] static std::string_view kind_name(std::size_t kind) {
        return kind == 0 ? weight_kind : Rule::state_names[kind - 1];
    }
    void weights_changed();

    /// Elements of the parameters that a run is about; at stage 3 between the opening and the closing of their shard.
    [[nodiscard]] std::span<Element> parameters_of_run(const Run& run) const {
        const BucketState& b = buckets_[run.bucket];
        const auto all = b.sharded ? open_shard_ : detail::elements<Element>(b.weight_B);
        return all.subspan(static_cast<std::size_t>(b.sharded ? run.begin : place_in_bucket(run)),
                           static_cast<std::size_t>(run.numel));
    }
    [[nodiscard]] std::int64_t place_in_bucket(const Run& run) const {
        return replicated ? run.begin : share_of(run.bucket) * comm_.rank() + run.begin;
    }
    [[nodiscard]] std::int64_t share_of(std::size_t bucket) const {
        return share_numel(buckets_[bucket].bucket.numel, comm_.world());
    }
    [[nodiscard]] std::int64_t padded_of(std::size_t bucket) const { return share_of(bucket) * comm_.world(); }
    /// Elements of a bucket whose state is on this rank.
    [[nodiscard]] std::int64_t part_numel(std::size_t bucket) const { return replicated ? padded_of(bucket) : share_of(bucket); }
    [[nodiscard]] optim::StochasticRounding rounding_of(const Run& run) const {
        return {.seed = options_.rounding_seed,
                .step = step_count_ + 1,
                .first_element = buckets_[run.bucket].bucket.begin + place_in_bucket(run)};
    }
    [[nodiscard]] bool accumulates() const noexcept { return options_.gradient_accumulation_steps > 1; }
    [[nodiscard]] bool gathers() const noexcept { return sharded_; }
    [[nodiscard]] at::Tensor own_share(const at::Tensor& all_B) const {
        const std::int64_t share = all_B.numel() / comm_.world();
        return all_B.narrow(0, share * comm_.rank(), share);  // (S)
    }
    /// The part of a run that is in this rank's share; all of it from stage 1 on. Elements of the share.
    template <class Value>
    [[nodiscard]] std::span<Value> own_part(const Run& run, std::span<Value> values) const {
        if constexpr (!replicated) return values;
        const auto share = static_cast<std::size_t>(share_of(run.bucket));
        return values.subspan(share * static_cast<std::size_t>(comm_.rank()), share);
    }
    /// Calls `call` with a value of the type that gradient_S has.
    template <class Call>
    void with_gradient_type(Call&& call) {
        if (accumulates()) {
            call(float{});
        } else {
            call(Collected{});
        }
    }

    /// The rounded weights that an update writes beside the masters; none where there are no masters.
    template <Side side>
    [[nodiscard]] static auto rounded_copy(const Part<side>& part) {
        if constexpr (has_master) {
            return part.parameters;
        } else {
            return std::span<bf16>{};
        }
    }

    Comm& comm_;
    Compute compute_;
    Options options_;
    std::shared_ptr<detail::BufferPool> pool_ =
        std::make_shared<detail::BufferPool>(compute_.device(), compute_.pinning());
    Exchange exchange_{comm_, *pool_, compute_};
    std::vector<Group> groups_;  // the last one is that of the options
    std::vector<ParameterInfo> layout_;
    std::vector<TrainedParameter> parameters_;
    std::vector<BucketState> buckets_;
    std::map<const void*, std::int32_t> unit_of_;  // by tensor: units that are gathered
    std::int64_t numel_ = 0;
    std::int64_t step_count_ = 0;
    int micro_batch_ = 0;          // backward passes since the last step
    std::size_t unreduced_ = 0;    // buckets 0 .. unreduced_ - 1 still wait in this backward pass
    std::size_t unfinished_ = 0;   // buckets unreduced_ .. unfinished_ - 1 are being reduced
    std::size_t gathered_ = 0;     // buckets 0 .. gathered_ - 1 are being gathered
    bool sharded_ = false;         // units are whole only while they compute
    bool average_in_ = false;
    bool state_is_whole_ = true;
    bool in_backward_ = false;     // gradients that arrive are of this engine's backward pass
    optim::LossScale loss_scale_;
    NonFiniteSteps non_finite_{options_.on_non_finite, options_.non_finite_limit};
    detail::TierFolder<State::wants_folder || Shards::wants_folder> folder_;
    State state_;
    Shards shards_;
    std::span<Element> open_shard_;
    detail::LocalFailure<State::fails_alone || Shards::fails_alone> failure_;
    std::unique_ptr<Gathering> gathering_;
    Channel channel_;  // after what its operations read and write
    std::unique_ptr<detail::GradientHooks> hooks_;
};

}  // namespace strata::zero

#include <strata/zero/impl/engine_average.ipp>
#include <strata/zero/impl/engine_backward.ipp>
#include <strata/zero/impl/engine_setup.ipp>
#include <strata/zero/impl/engine_state.ipp>
#include <strata/zero/impl/engine_step.ipp>
