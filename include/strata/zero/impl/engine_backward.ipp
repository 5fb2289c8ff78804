#pragma once
// strata/zero/impl/engine_backward.ipp - gradients arrive, and become sums over ranks.

#include <strata/zero/engine.hpp>

namespace strata::zero {

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::begin_backward() {
    if (options_.computes_only) {
        throw Error{Errc::wrong_call_order, "backward() was called on an engine that only computes",
                    "leave computes_only out of its options, and give it parameters that require a gradient"};
    }
    if (micro_batch_ == options_.gradient_accumulation_steps) {
        throw Error{Errc::wrong_call_order,
                    "backward() was called " + std::to_string(micro_batch_ + 1) + " times without step()",
                    "call step() after every gradient_accumulation_steps = " +
                        std::to_string(options_.gradient_accumulation_steps) + " backward passes"};
    }
    begin_call("backward()");
    check_parameters_stayed();
    for (TrainedParameter& parameter : parameters_) parameter.arrived = false;
    for (BucketState& bucket : buckets_) {
        bucket.arrived = 0;
        bucket.offered = false;
    }
    unreduced_ = unfinished_ = buckets_.size();
    prefetch_state();
}

namespace detail {

/// True while it lives.
class Raised {
public:
    explicit Raised(bool& flag) : flag_{flag} { flag_ = true; }
    ~Raised() { flag_ = false; }
    Raised(const Raised&) = delete;
    Raised& operator=(const Raised&) = delete;

private:
    bool& flag_;
};

}  // namespace detail

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::backward(const at::Tensor& loss) {
    begin_backward();
    try {
        detail::check_loss(loss);
        const detail::Raised in_backward{in_backward_};
        backpropagate(loss);
    } catch (...) {
        if (gathering_) gathering_->abandon_pass();
        if (!gathers() && comm_.world() > 1) reduce_what_is_left();
        throw;
    }

    const at::NoGradGuard no_grad;
    if (gathers()) {
        for (BucketState& bucket : buckets_) {
            if (!bucket.offered) prepare_gradient(bucket);
        }
        gathering_->end_pass();
    } else {
        while (unreduced_ > 0) reduce_next_bucket();
        finish_reductions(0);
    }
    prefetch_state();
    ++micro_batch_;
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::backward_without_loss() {
    if (gathers()) {
        throw Error{Errc::wrong_call_order, "backward_without_loss() was called where units are gathered",
                    "let ranks agree before they call loss(): forward passes are collective there"};
    }
    begin_backward();
    const at::NoGradGuard no_grad;
    while (unreduced_ > 0) reduce_next_bucket();
    finish_reductions(0);
    ++micro_batch_;
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::forget_gradients() {
    channel_.wait();
    if (gathering_) gathering_->abandon_pass();
    micro_batch_ = 0;
}

/// For the other ranks, after a pass that threw on this one: its gradients are of no use, but theirs wait for them.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::reduce_what_is_left() {
    const at::NoGradGuard no_grad;
    try {
        while (unreduced_ > 0) reduce_next_bucket();
        finish_reductions(0);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& failure) {  // not even memory for zeros: now the others would wait
        throw Error{Errc::rank_failed, std::string{"a backward pass failed, and so did its part for the other ranks: "} + failure.what(),
                    "use smaller batches or recomputation; this rank most likely ran out of memory"};
    }
}

/// Reads what the next step begins with, as far as buffers are free: the last step may still be writing out of them.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::prefetch_state() {
    if (micro_batch_ + 1 == options_.gradient_accumulation_steps) state_.prefetch();
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::backpropagate(const at::Tensor& loss) {
    try {
        if constexpr (scales_loss) {
            loss.to(at::kFloat).mul(loss_scale_.value() / options_.gradient_accumulation_steps).backward();
        } else {
            (accumulates() ? loss.div(options_.gradient_accumulation_steps) : loss).backward();
        }
    } catch (const c10::Error& error) {
        detail::explain_missing_memory(error);
        throw;
    }
}

// Runs inside backward(), on the thread that called it or, for another device than the CPU, on autograd's for that device.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::gradient_arrived(std::size_t index) {
    const at::NoGradGuard no_grad;
    TrainedParameter& parameter = parameters_[index];
    BucketState& bucket = buckets_[parameter.bucket];
    const at::Tensor gradient = parameter.tensor.grad();
    parameter.tensor.mutable_grad().reset();
    if (!in_backward_) return;  // another engine's loss went through this model, as a generator's goes through its critic
    if (gradient.layout() != at::kStrided) {
        throw Error{Errc::bad_parameter, "the parameter " + layout_[index].name + " has a sparse gradient",
                    "make its layer with sparse = false"};
    }
    if (gathers() ? bucket.offered : parameter.bucket >= unreduced_) {
        throw Error{Errc::bad_parameter,
                    "the parameter " + layout_[index].name + " got a second gradient in one backward pass",
                    "use it in one recomputed block only, or use ZeroStage<1> with overlap = false"};
    }
    if (!bucket.gradient_B.defined()) {
        bucket.gradient_B =
            pool_->empty(bucket.weight_B.numel(), detail::dtype_v<Collected>, Held::gradients, Place::device);
    }
    const at::Tensor target =
        bucket.gradient_B.narrow(0, parameter.offset, parameter.tensor.numel()).view(parameter.tensor.sizes());
    if (parameter.arrived) {
        target.add_(gradient);
    } else {
        target.copy_(gradient);
        parameter.arrived = true;
        ++bucket.arrived;
    }
    const bool complete = bucket.arrived == bucket.bucket.parameter_count;
    if (complete) prefetch_state();
    if (gathers()) {
        if (complete && !bucket.offered) {
            prepare_gradient(bucket);
            bucket.offered = true;
            gathering_->bucket_ready(parameter.bucket);
        }
        if (bucket.sharded) gathering_->gradient_arrived(bucket.kept_unit);
        return;
    }
    // One order on all ranks, last bucket first, because that is roughly how gradients arrive: a bucket that is
    // complete early waits for those after it.
    if (stage >= 2 || options_.overlap) {
        while (unreduced_ > 0 && buckets_[unreduced_ - 1].arrived == buckets_[unreduced_ - 1].bucket.parameter_count) {
            reduce_next_bucket();
        }
    }
}

/// Makes zeros of what no gradient came for.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::prepare_gradient(BucketState& b) {
    if (!b.gradient_B.defined()) {
        b.gradient_B = pool_->empty(b.weight_B.numel(), detail::dtype_v<Collected>, Held::gradients, Place::device);
    }
    for (std::size_t i = 0; i < b.bucket.parameter_count; ++i) {
        const TrainedParameter& p = parameters_[b.bucket.first_parameter + i];
        if (!p.arrived) b.gradient_B.narrow(0, p.offset, p.tensor.numel()).zero_();
    }
    b.gradient_B.narrow(0, b.bucket.numel, b.gradient_B.numel() - b.bucket.numel).zero_();
}

/// Adds a bucket's gradients to their sum. On the channel's thread.
///
///   adds  to the sums of the micro-batches before; else these are the first
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::reduce(BucketState& b, bool adds) {
    const at::NoGradGuard no_grad;
    if (adds) b.micro_S = pool_->empty(b.gradient_S.numel(), b.gradient_S.scalar_type(), Held::gradients, Place::device);
    with_gradient_type([&](auto element) {
        using Sum = decltype(element);
        exchange_.template reduce_scatter<Collected, Sum>(b.gradient_B, adds ? b.micro_S : b.gradient_S);
    });
    if (adds) b.gradient_S.add_(b.micro_S);
    b.micro_S.reset();
    if constexpr (stage >= 2) b.gradient_B.reset();
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::reduce_next_bucket() {
    finish_reductions(static_cast<std::size_t>(options_.buckets_in_flight) - 1);
    BucketState& b = buckets_[--unreduced_];
    prepare_gradient(b);
    const bool adds = accumulates() && micro_batch_ > 0;
    b.ticket = channel_.post("gradients", [this, &b, adds] { reduce(b, adds); });
}

/// Waits until at most `left` reductions are under way, the oldest first.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::finish_reductions(std::size_t left) {
    while (unfinished_ - unreduced_ > left) {
        buckets_[unfinished_ - 1].ticket.wait();
        --unfinished_;
    }
}

}  // namespace strata::zero
