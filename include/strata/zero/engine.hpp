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
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/channel.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/error.hpp>
#include <strata/core/fp16.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/loss_scale.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/offload_target.hpp>
#include <strata/zero/detail/gradient_hooks.hpp>
#include <strata/zero/detail/kept_state.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/detail/update_run.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/state_piece.hpp>

namespace strata::zero {

/// Data-parallel training with sharded state: stages 0, 1 and 2 of ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054).
///
///   Engine<Setup<ZeroStage<2>>, comm::SelfComm> engine{comm, parameters_of(*model), {}};
///   engine.backward(model->loss(batch));     // gradient_accumulation_steps times
///   engine.step(1e-4);
///
/// All stages share one layout (zero/layout.hpp), reduce every micro-batch by the same sums in rank order, and form
/// norms from the same partial sums; they therefore give the same bits. What differs is what a
/// rank keeps, in elements for P parameters:
///
///   stage   gradients                      master and state
///   0       P                              P each
///   1       P                              P/W each
///   2       P/W and the buckets in flight  P/W each
///
/// Gradients have the parameters' type, but fp16 ones are collected in fp32, because ranks add up in fp32; with several
/// micro-batches a step they add up in fp32, P/W more. The model keeps its tensors: they become views of the engine's
/// buckets and stay valid after it. While an engine lives, do not convert or move the model.
///
/// Buckets are reduced on a thread of the engine's own while backward goes on, and updated weights are gathered while
/// the next bucket is updated. When backward(), step() or state_restored() returns, nothing is under way: between them
/// the communicator is the caller's.
///
/// OffloadTarget<Nvme> keeps master and state in a file of windows below EngineOptions::nvme_path (docs/offload.md). It
/// changes no bit, except under rules with norms of whole parameters (Lamb), whose sums are formed window by window.
/// A disk that fails is reported by step() on all ranks; weights then differ between ranks, and the run is over.
///
///   Setup  strata::Setup<...>; sharding, optimizer, precision and offload are read. On the CPU OffloadTarget<Cpu> and
///          OffloadTarget<Device> are the same memory.
///   Comm   outlives the engine
template <class Setup, comm::Communicator Comm>
class Engine {
public:
    using Rule = typename Setup::optimizer::rule;
    using Options = EngineOptions<Rule>;
    static constexpr int stage = Setup::sharding::stage;

    /// Takes over the parameters that require a gradient: they get the values of rank 0, in the setup's precision.
    /// Frozen ones get both too, and are otherwise left alone. Collective.
    ///
    /// Throws no_parameters, bad_parameter, bad_value, and rank_mismatch when ranks have different models or options;
    /// with OffloadTarget<Nvme> also not_found, no_space, not_enough_memory, swap_in_use and io_failed.
    Engine(Comm& comm, std::vector<Parameter> parameters, Options options = {});
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Backpropagates the loss of one micro-batch and adds its gradients to this rank's share of their sum. Collective.
    ///
    ///   loss  this rank's mean loss; one element. Divided here by the number of micro-batches, and scaled for fp16.
    /// Parameters that the loss does not reach have gradient zero. Throws bad_parameter, wrong_call_order.
    void backward(const at::Tensor& loss);

    /// Clips, updates and shares the weights, after gradient_accumulation_steps calls of backward(). Collective.
    ///
    /// Throws non_finite on all ranks when the gradient norm is; weights and state are then unchanged. With fp16 such a
    /// step is skipped instead, on all ranks, and the loss scale falls; loss_scale_exhausted when it cannot. Also
    /// wrong_call_order, and what the disk of OffloadTarget<Nvme> meets.
    StepResult step(double lr);

    /// This rank's share of the weights and of the update rule's states in fp32, between two steps. Stage 0, which has
    /// all of it, shows the same share as the other stages. Local.
    ///
    /// State in fp32 and in host memory is shown in place, valid while the engine lives. State in bf16 or on disk is
    /// copied into host memory (4 bytes a value), which lasts until the next backward() or state_restored(); reading it
    /// from disk throws what the disk meets.
    [[nodiscard]] std::vector<StatePiece> state();

    /// Makes what was written into the pieces of state() take effect on all ranks. Collective.
    void state_restored();

    /// What a checkpoint keeps beside step_count() and state(), by name: with fp16 the state of the loss scale, else
    /// nothing. The same on every rank. Names that are missing leave their value as it is.
    [[nodiscard]] std::map<std::string, double> scalars() const;
    void restore_scalars(const std::map<std::string, double>& values);

    /// Optimizer steps done. A restored run sets it: AdamW's bias correction depends on it.
    [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
    void set_step_count(std::int64_t steps) noexcept { step_count_ = steps; }

    /// Trained parameters in order, and their elements in all.
    [[nodiscard]] const std::vector<ParameterInfo>& layout() const noexcept { return layout_; }
    [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }

private:
    using Element = typename Setup::precision::element;  // of parameters
    using Kept = typename Setup::precision::kept;        // of states, and of weights where they are updated
    using Collected = std::conditional_t<std::same_as<Element, fp16>, float, Element>;  // of gradients in buckets
    using Ticket = typename comm::Channel<Comm>::Ticket;
    static constexpr bool replicated = stage == 0;
    static constexpr bool has_master = Setup::precision::has_master;
    static constexpr bool scales_loss = Setup::precision::scales_loss;
    static constexpr std::size_t states = optim::state_count_v<Rule>;
    static constexpr bool on_disk = std::same_as<typename Setup::offload::tier, Nvme> && (has_master || states > 0);
    static constexpr bool shown_in_place = std::same_as<Kept, float> && !on_disk;
    static constexpr at::ScalarType dtype = detail::dtype_v<Element>;
    using Store = std::conditional_t<on_disk, detail::StateOnDisk<Kept, states, has_master>,
                                     detail::StateInMemory<Kept, states>>;
    using Run = detail::StateRun<Kept, states>;

    struct TrainedParameter {
        at::Tensor tensor;
        std::size_t bucket;
        std::int64_t offset;   // in the bucket
        bool arrived = false;  // its gradient, in the running backward pass
    };
    struct BucketState {
        Bucket bucket;
        std::vector<std::int64_t> offsets;  // of its parameters, and its end
        at::Tensor weight_B;    // what the parameters are views of
        at::Tensor gradient_B;  // at stage 2 only from a bucket's first gradient to the end of its reduction
        at::Tensor gradient_S;  // sum over ranks and micro-batches; a view of gradient_B where that lasts
        at::Tensor micro_S;     // sum over ranks of one micro-batch, while it is reduced
        at::Tensor gathered_B;  // at stage 0 the sums of all ranks, during an update
        Ticket ticket;          // of its reduction or gathering
        std::size_t arrived = 0;
    };

    void take_bucket(const Bucket& bucket, const std::vector<Parameter>& trained);
    void start_state();
    void check_parameters_stayed() const;
    void gradient_arrived(std::size_t index);
    void reduce_next_bucket();
    void finish_reductions(std::size_t left);
    double gradient_norm();
    template <class Gradient>
    void update_all(const typename Rule::Scalars& scalars, const optim::GradientTransform& transform);
    template <class Call>
    void for_runs(offload::Access access, Call&& call);
    template <class Gradient>
    std::span<const Gradient> gradient_of(const Run& run);
    void gather_gradient(std::size_t index);
    void gather_weights(BucketState& bucket);
    void end_pass();
    void weights_changed();

    /// Elements of weight_B that a run is about.
    [[nodiscard]] std::span<Element> parameters_of_run(const Run& run) const {
        return detail::elements<Element>(buckets_[run.bucket].weight_B)
            .subspan(static_cast<std::size_t>(place_in_bucket(run)), static_cast<std::size_t>(run.numel));
    }
    [[nodiscard]] std::int64_t place_in_bucket(const Run& run) const {
        return replicated ? run.begin : share_of(run.bucket) * comm_.rank() + run.begin;
    }
    [[nodiscard]] std::int64_t share_of(std::size_t bucket) const {
        return buckets_[bucket].weight_B.numel() / comm_.world();
    }
    [[nodiscard]] optim::StochasticRounding rounding_of(const Run& run) const {
        return {.seed = options_.rounding_seed,
                .step = step_count_ + 1,
                .first_element = buckets_[run.bucket].bucket.begin + place_in_bucket(run)};
    }
    [[nodiscard]] bool accumulates() const noexcept { return options_.gradient_accumulation_steps > 1; }
    [[nodiscard]] at::Tensor own_share(const at::Tensor& all_B) const {
        const std::int64_t share = all_B.numel() / comm_.world();
        return all_B.narrow(0, share * comm_.rank(), share);  // (S)
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

    Comm& comm_;
    Options options_;
    std::vector<ParameterInfo> layout_;
    std::vector<TrainedParameter> parameters_;
    std::vector<BucketState> buckets_;
    std::int64_t numel_ = 0;
    std::int64_t step_count_ = 0;
    int micro_batch_ = 0;          // backward passes since the last step
    std::size_t unreduced_ = 0;    // buckets 0 .. unreduced_ - 1 still wait in this backward pass
    std::size_t unfinished_ = 0;   // buckets unreduced_ .. unfinished_ - 1 are being reduced
    std::size_t gathered_ = 0;     // buckets 0 .. gathered_ - 1 are being gathered
    optim::LossScale loss_scale_;
    Store store_;
    std::vector<std::vector<float>> shown_;  // what state() copied: weights of all buckets, then each state's
    std::exception_ptr disk_failure_;
    comm::Channel<Comm> channel_;  // after what its operations read and write
    std::unique_ptr<detail::GradientHooks> hooks_;
};

template <class Setup, comm::Communicator Comm>
Engine<Setup, Comm>::Engine(Comm& comm, std::vector<Parameter> parameters, Options options)
    : comm_{comm}, options_{std::move(options)}, loss_scale_{options_.loss_scale}, channel_{comm} {
    const at::NoGradGuard no_grad;
    detail::check_options(options_.bucket_numel, options_.gradient_accumulation_steps, options_.buckets_in_flight);
    detail::check_same_model(comm_.all_gather_varied(
        detail::describe(parameters, options_.bucket_numel, options_.gradient_accumulation_steps)));
    const std::vector<Parameter> trained = detail::split_off_frozen(parameters);
    for (const Parameter& frozen : parameters) {
        const at::Tensor values = detail::converted_frozen(frozen.tensor, dtype);
        comm_.broadcast(detail::bytes_of(values), 0);
        at::Tensor{frozen.tensor}.set_data(values);
    }

    std::vector<ParameterExtent> extents;
    for (const Parameter& parameter : trained) {
        layout_.push_back({parameter.name, parameter.tensor.sizes().vec(), numel_});
        extents.push_back({parameter.tensor.numel(), parameter.unit});
        numel_ += parameter.tensor.numel();
    }
    for (const Bucket& bucket : make_buckets(extents, options_.bucket_numel)) take_bucket(bucket, trained);
    start_state();

    // Last: set_data() to another dtype gives a tensor a new accumulator.
    std::vector<at::Tensor> tensors;
    for (const TrainedParameter& parameter : parameters_) tensors.push_back(parameter.tensor);
    hooks_ = std::make_unique<detail::GradientHooks>(tensors, [this](std::size_t index) { gradient_arrived(index); });
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::take_bucket(const Bucket& bucket, const std::vector<Parameter>& trained) {
    BucketState b;
    b.bucket = bucket;
    const std::int64_t padded = share_numel(bucket.numel, comm_.world()) * comm_.world();
    const at::Tensor values_B = at::zeros({padded}, at::kFloat);
    const std::size_t first = bucket.first_parameter;
    for (std::size_t i = first; i < first + bucket.parameter_count; ++i) {
        const at::Tensor& tensor = trained[i].tensor;
        values_B.narrow(0, layout_[i].begin - bucket.begin, tensor.numel()).view(tensor.sizes()).copy_(tensor.detach());
    }
    comm_.broadcast(detail::bytes_of(values_B), 0);

    b.weight_B = values_B.to(dtype);  // the same tensor for fp32
    const at::Tensor& weights_B = has_master ? values_B : b.weight_B;
    const at::Tensor weights = replicated ? weights_B : own_share(weights_B);
    store_.add(has_master && !replicated ? weights.clone() : weights);  // a clone lets values_B go

    const at::ScalarType gradient_type = accumulates() ? at::kFloat : detail::dtype_v<Collected>;
    if constexpr (stage < 2) b.gradient_B = at::zeros({padded}, detail::dtype_v<Collected>);
    b.gradient_S =
        stage < 2 && !accumulates() ? own_share(b.gradient_B) : at::zeros({padded / comm_.world()}, gradient_type);

    for (std::size_t i = first; i < first + bucket.parameter_count; ++i) {
        at::Tensor tensor = trained[i].tensor;
        const std::int64_t offset = layout_[i].begin - bucket.begin;
        tensor.mutable_grad().reset();
        tensor.set_data(b.weight_B.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
        parameters_.push_back({tensor, buckets_.size(), offset});
        b.offsets.push_back(offset);
    }
    b.offsets.push_back(bucket.numel);
    buckets_.push_back(std::move(b));
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::start_state() {
    std::array<float, states> initial{};
    for (std::size_t k = 0; k < states; ++k) initial[k] = optim::initial_state<Rule>(options_.update, k);
    if constexpr (on_disk) {
        const std::string run_id = comm_.all_gather_varied(offload::new_run_id()).front();
        comm::agree(comm_, [&] {
            if (options_.nvme_path.empty()) {
                throw Error{Errc::bad_value, "OffloadTarget<Nvme> keeps state on disk, and nvme_path is empty",
                            "set nvme_path to a folder on a local disk"};
            }
            store_.start(initial, {options_.nvme_path, run_id, comm_.rank(), options_.nvme});
        });
    } else {
        store_.start(initial, {});
    }
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::check_parameters_stayed() const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const TrainedParameter& p = parameters_[i];
        if (p.tensor.data_ptr() != detail::elements<Element>(buckets_[p.bucket].weight_B).data() + p.offset) {
            throw Error{Errc::bad_parameter,
                        "the parameter " + layout_[i].name + " was converted or moved after the engine had taken it",
                        "call model->to(...) before the trainer is made"};
        }
    }
}

}  // namespace strata::zero

#include <strata/zero/impl/engine_backward.ipp>
#include <strata/zero/impl/engine_state.ipp>
#include <strata/zero/impl/engine_step.ipp>
