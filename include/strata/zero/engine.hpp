#pragma once
// strata/zero/engine.hpp - Engine: backward passes become one optimizer step over all ranks.
//
// Shapes: B  elements of a bucket with padding      W  ranks
//         S  = B / W, a rank's share of a bucket    K  states of the update rule

#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/error.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/zero/detail/gradient_hooks.hpp>
#include <strata/zero/detail/preparation.hpp>
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
/// the norm from the same partial sums; in fp32 they therefore give the same bits. What differs is what a
/// rank keeps, in elements for P parameters:
///
///   stage   gradients                      master and state
///   0       P                              P each
///   1       P                              P/W each
///   2       P/W and the buckets in flight  P/W each
///
/// Gradients have the parameters' type; with several micro-batches a step they add up in fp32, P/W more.
/// The model keeps its tensors: they become views of the engine's buckets and stay valid after it. While an engine
/// lives, do not convert or move the model.
///
///   Setup  strata::Setup<...>; sharding, optimizer and precision are read. On the CPU OffloadTarget<Cpu> and
///          OffloadTarget<Device> are the same memory, so there the offload policy makes no difference.
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
    /// Throws no_parameters, bad_parameter, bad_value, and rank_mismatch when ranks have different models or options.
    Engine(Comm& comm, std::vector<Parameter> parameters, Options options = {});
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Backpropagates the loss of one micro-batch and adds its gradients to this rank's share of their sum. Collective.
    ///
    ///   loss  this rank's mean loss; one element. Divided here by the number of micro-batches.
    /// Parameters that the loss does not reach have gradient zero. Throws bad_parameter, wrong_call_order.
    void backward(const at::Tensor& loss);

    /// Clips, updates and shares the weights, after gradient_accumulation_steps calls of backward(). Collective.
    ///
    /// Throws non_finite on all ranks when the gradient norm is; weights and state are then unchanged. Also
    /// wrong_call_order.
    StepResult step(double lr);

    /// This rank's share of the weights in fp32 and of the update rule's states, between two steps. Stage 0, which has
    /// all of it, shows the same share as the other stages. Local; valid while the engine lives.
    [[nodiscard]] std::vector<StatePiece> state();

    /// Makes what was written into the pieces of state() take effect on all ranks. Collective.
    void state_restored();

    /// Optimizer steps done. A restored run sets it: AdamW's bias correction depends on it.
    [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
    void set_step_count(std::int64_t steps) noexcept { step_count_ = steps; }

    /// Trained parameters in order, and their elements in all.
    [[nodiscard]] const std::vector<ParameterInfo>& layout() const noexcept { return layout_; }
    [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }

private:
    static constexpr bool replicated = stage == 0;
    static constexpr bool has_master = Setup::precision::has_master;
    static constexpr std::size_t states = optim::state_count_v<Rule>;
    using Element = std::conditional_t<has_master, bf16, float>;  // of parameters and their gradients
    static constexpr at::ScalarType dtype = has_master ? at::kBFloat16 : at::kFloat;

    struct TrainedParameter {
        at::Tensor tensor;
        std::size_t bucket;
        std::int64_t offset;   // in the bucket
        bool arrived = false;  // its gradient, in the running backward pass
    };
    struct BucketState {
        Bucket bucket;
        at::Tensor weight_B;    // what the parameters are views of
        at::Tensor gradient_B;  // at stage 2 only from a bucket's first gradient to its reduction
        at::Tensor gradient_S;  // sum over ranks and micro-batches; a view of gradient_B where that lasts
        at::Tensor master;      // fp32, (S) or at stage 0 (B); of fp32 parameters a view of weight_B
        std::array<at::Tensor, states> state;  // fp32, like master
        std::size_t arrived = 0;
    };

    void take_bucket(const Bucket& bucket, const std::vector<Parameter>& trained);
    void check_parameters_stayed() const;
    void gradient_arrived(std::size_t index);
    void reduce_next_bucket();
    double gradient_norm();
    template <class Gradient>
    void update_bucket(BucketState& bucket, const typename Rule::Scalars& scalars, float scale);
    void weights_changed();

    [[nodiscard]] bool accumulates() const noexcept { return options_.gradient_accumulation_steps > 1; }
    [[nodiscard]] at::Tensor own_share(const at::Tensor& all_B) const {
        const std::int64_t share = all_B.numel() / comm_.world();
        return all_B.narrow(0, share * comm_.rank(), share);  // (S)
    }
    /// Calls `call` with a value of the type that gradient_S has.
    template <class Call>
    void with_gradient_type(Call&& call) {
        if (has_master && !accumulates()) {
            call(bf16{});
        } else {
            call(float{});
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
    std::unique_ptr<detail::GradientHooks> hooks_;
};

template <class Setup, comm::Communicator Comm>
Engine<Setup, Comm>::Engine(Comm& comm, std::vector<Parameter> parameters, Options options)
    : comm_{comm}, options_{std::move(options)} {
    const at::NoGradGuard no_grad;
    detail::check_options(options_.bucket_numel, options_.gradient_accumulation_steps);
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
    b.master = replicated ? values_B : own_share(values_B);
    if (has_master && !replicated) b.master = b.master.clone();  // lets values_B go
    for (at::Tensor& state : b.state) state = at::zeros({b.master.numel()}, at::kFloat);

    const at::ScalarType gradient_type = accumulates() ? at::kFloat : dtype;
    if constexpr (stage < 2) b.gradient_B = at::zeros({padded}, dtype);
    b.gradient_S =
        stage < 2 && !accumulates() ? own_share(b.gradient_B) : at::zeros({padded / comm_.world()}, gradient_type);

    for (std::size_t i = first; i < first + bucket.parameter_count; ++i) {
        at::Tensor tensor = trained[i].tensor;
        const std::int64_t offset = layout_[i].begin - bucket.begin;
        tensor.mutable_grad().reset();
        tensor.set_data(b.weight_B.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
        parameters_.push_back({tensor, buckets_.size(), offset});
    }
    buckets_.push_back(std::move(b));
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

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::backward(const at::Tensor& loss) {
    if (micro_batch_ == options_.gradient_accumulation_steps) {
        throw Error{Errc::wrong_call_order,
                    "backward() was called " + std::to_string(micro_batch_ + 1) + " times without step()",
                    "call step() after every gradient_accumulation_steps = " +
                        std::to_string(options_.gradient_accumulation_steps) + " backward passes"};
    }
    check_parameters_stayed();
    for (TrainedParameter& parameter : parameters_) parameter.arrived = false;
    for (BucketState& bucket : buckets_) bucket.arrived = 0;
    unreduced_ = buckets_.size();

    (accumulates() ? loss.div(options_.gradient_accumulation_steps) : loss).backward();

    const at::NoGradGuard no_grad;
    while (unreduced_ > 0) reduce_next_bucket();
    ++micro_batch_;
}

// Runs inside backward(), on the thread that called it.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::gradient_arrived(std::size_t index) {
    const at::NoGradGuard no_grad;
    TrainedParameter& parameter = parameters_[index];
    BucketState& bucket = buckets_[parameter.bucket];
    const at::Tensor gradient = parameter.tensor.grad();
    parameter.tensor.mutable_grad().reset();
    if (gradient.layout() != at::kStrided) {
        throw Error{Errc::bad_parameter, "the parameter " + layout_[index].name + " has a sparse gradient",
                    "make its layer with sparse = false"};
    }
    if (parameter.bucket >= unreduced_) {
        throw Error{Errc::bad_parameter,
                    "the parameter " + layout_[index].name + " got a second gradient in one backward pass",
                    "use it in one recomputed block only, or use ZeroStage<1>"};
    }
    if (!bucket.gradient_B.defined()) bucket.gradient_B = at::empty({bucket.weight_B.numel()}, dtype);
    const at::Tensor target =
        bucket.gradient_B.narrow(0, parameter.offset, parameter.tensor.numel()).view(parameter.tensor.sizes());
    if (parameter.arrived) {
        target.add_(gradient);
    } else {
        target.copy_(gradient);
        parameter.arrived = true;
        ++bucket.arrived;
    }
    // One order on all ranks, last bucket first, because that is roughly how gradients arrive: a bucket that is
    // complete early waits for those after it.
    if constexpr (stage == 2) {
        while (unreduced_ > 0 && buckets_[unreduced_ - 1].arrived == buckets_[unreduced_ - 1].bucket.parameter_count) {
            reduce_next_bucket();
        }
    }
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::reduce_next_bucket() {
    BucketState& b = buckets_[--unreduced_];
    if (!b.gradient_B.defined()) b.gradient_B = at::empty({b.weight_B.numel()}, dtype);
    for (std::size_t i = 0; i < b.bucket.parameter_count; ++i) {
        const TrainedParameter& p = parameters_[b.bucket.first_parameter + i];
        if (!p.arrived) b.gradient_B.narrow(0, p.offset, p.tensor.numel()).zero_();
    }
    b.gradient_B.narrow(0, b.bucket.numel, b.gradient_B.numel() - b.bucket.numel).zero_();

    const std::span<const Element> all = detail::elements<Element>(b.gradient_B);
    if (!accumulates()) {
        comm_.reduce_scatter(all, detail::elements<Element>(b.gradient_S));
    } else if (micro_batch_ == 0) {
        comm_.reduce_scatter(all, detail::elements<float>(b.gradient_S));
    } else {
        const at::Tensor sum_S = at::empty_like(b.gradient_S);
        comm_.reduce_scatter(all, detail::elements<float>(sum_S));
        b.gradient_S.add_(sum_S);
    }
    if constexpr (stage == 2) b.gradient_B.reset();
}

template <class Setup, comm::Communicator Comm>
double Engine<Setup, Comm>::gradient_norm() {
    std::vector<double> mine(buckets_.size());
    with_gradient_type([&](auto element) {
        using Gradient = decltype(element);
        for (std::size_t i = 0; i < mine.size(); ++i) {
            mine[i] = optim::sum_of_squares<Gradient>(detail::elements<Gradient>(buckets_[i].gradient_S));
        }
    });
    const auto world = static_cast<std::size_t>(comm_.world());
    std::vector<double> all(mine.size() * world);
    comm_.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
    double total = 0.0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        for (std::size_t rank = 0; rank < world; ++rank) total += all[rank * mine.size() + i];
    }
    return std::sqrt(total) / static_cast<double>(world);  // of the mean, while buckets hold the sum
}

template <class Setup, comm::Communicator Comm>
StepResult Engine<Setup, Comm>::step(double lr) {
    if (micro_batch_ != options_.gradient_accumulation_steps) {
        throw Error{Errc::wrong_call_order,
                    "step() was called after " + std::to_string(micro_batch_) + " backward passes instead of " +
                        std::to_string(options_.gradient_accumulation_steps),
                    "call backward() gradient_accumulation_steps times before each step()"};
    }
    micro_batch_ = 0;
    const at::NoGradGuard no_grad;
    const double norm = gradient_norm();
    if (!std::isfinite(norm)) {
        throw Error{
            Errc::non_finite, "the gradient norm of step " + std::to_string(step_count_ + 1) + " is not finite",
            "lower the learning rate, clip with max_grad_norm, or look for broken samples in this step's batches"};
    }
    const auto scale = static_cast<float>(optim::clip_coefficient(norm, options_.max_grad_norm) / comm_.world());
    const auto scalars = Rule::scalars(options_.update, lr, step_count_ + 1);
    with_gradient_type([&](auto element) {
        for (BucketState& bucket : buckets_) update_bucket<decltype(element)>(bucket, scalars, scale);
    });
    weights_changed();
    return {.grad_norm = norm, .step = ++step_count_};
}

template <class Setup, comm::Communicator Comm>
template <class Gradient>
void Engine<Setup, Comm>::update_bucket(BucketState& b, const typename Rule::Scalars& scalars, float scale) {
    at::Tensor gradient = b.gradient_S;
    if constexpr (replicated) {
        gradient = accumulates() ? at::empty({b.weight_B.numel()}, at::kFloat) : b.gradient_B;
        comm_.all_gather(detail::bytes_of(b.gradient_S), detail::bytes_of(gradient));
    }
    const at::Tensor weight = replicated ? b.weight_B : own_share(b.weight_B);
    std::array<std::span<float>, states> state;
    for (std::size_t k = 0; k < states; ++k) state[k] = detail::elements<float>(b.state[k]);
    std::span<bf16> copy;
    if constexpr (has_master) copy = detail::elements<bf16>(weight);
    optim::update<Rule, Gradient>(scalars, scale, detail::elements<Gradient>(gradient),
                                  detail::elements<float>(b.master), state, copy);
    if constexpr (!replicated) comm_.all_gather(detail::bytes_of(weight), detail::bytes_of(b.weight_B));
}

template <class Setup, comm::Communicator Comm>
std::vector<StatePiece> Engine<Setup, Comm>::state() {
    std::vector<StatePiece> pieces;
    const auto add = [&](std::string_view kind, const BucketState& b, const at::Tensor& tensor) {
        const ElementRun run = b.bucket.share_of(comm_.rank(), comm_.world());
        const at::Tensor share_S = replicated ? own_share(tensor) : tensor;
        if (run.numel == 0) return;
        pieces.push_back(
            {kind, run.begin, detail::elements<float>(share_S).first(static_cast<std::size_t>(run.numel))});
    };
    for (const BucketState& b : buckets_) add("weight", b, b.master);
    for (std::size_t k = 0; k < states; ++k) {
        for (const BucketState& b : buckets_) add(Rule::state_names[k], b, b.state[k]);
    }
    return pieces;
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::state_restored() {
    const at::NoGradGuard no_grad;
    micro_batch_ = 0;
    const auto gather = [&](const at::Tensor& all_B) {
        comm_.all_gather(detail::bytes_of(own_share(all_B)), detail::bytes_of(all_B));
    };
    for (BucketState& b : buckets_) {
        if constexpr (replicated) {
            gather(b.master);
            for (const at::Tensor& state : b.state) gather(state);
        }
        if constexpr (has_master) (replicated ? b.weight_B : own_share(b.weight_B)).copy_(b.master);
        if constexpr (!replicated) gather(b.weight_B);
    }
    weights_changed();
}

/// Tells autograd that saved weights are stale: a graph kept across a step must fail, not compute with new values.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::weights_changed() {
    for (const TrainedParameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace strata::zero
