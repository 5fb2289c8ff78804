#pragma once
// strata/zero/impl/engine_backward.ipp - gradients arrive, and become sums over ranks.

#include <strata/zero/engine.hpp>

namespace strata::zero {

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::backward(const at::Tensor& loss) {
    if (micro_batch_ == options_.gradient_accumulation_steps) {
        throw Error{Errc::wrong_call_order,
                    "backward() was called " + std::to_string(micro_batch_ + 1) + " times without step()",
                    "call step() after every gradient_accumulation_steps = " +
                        std::to_string(options_.gradient_accumulation_steps) + " backward passes"};
    }
    check_parameters_stayed();
    channel_.wait();  // a pass before that threw may have left reductions
    shown_.clear();
    for (TrainedParameter& parameter : parameters_) parameter.arrived = false;
    for (BucketState& bucket : buckets_) bucket.arrived = 0;
    unreduced_ = unfinished_ = buckets_.size();
    if (micro_batch_ + 1 == options_.gradient_accumulation_steps) store_.prefetch();

    if constexpr (scales_loss) {
        loss.to(at::kFloat).mul(loss_scale_.value() / options_.gradient_accumulation_steps).backward();
    } else {
        (accumulates() ? loss.div(options_.gradient_accumulation_steps) : loss).backward();
    }

    const at::NoGradGuard no_grad;
    while (unreduced_ > 0) reduce_next_bucket();
    finish_reductions(0);
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
                    "use it in one recomputed block only, or use ZeroStage<1> with overlap = false"};
    }
    if (!bucket.gradient_B.defined()) bucket.gradient_B = at::empty({bucket.weight_B.numel()}, detail::dtype_v<Collected>);
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
    if (stage == 2 || options_.overlap) {
        while (unreduced_ > 0 && buckets_[unreduced_ - 1].arrived == buckets_[unreduced_ - 1].bucket.parameter_count) {
            reduce_next_bucket();
        }
    }
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::reduce_next_bucket() {
    finish_reductions(static_cast<std::size_t>(options_.buckets_in_flight) - 1);
    BucketState& b = buckets_[--unreduced_];
    if (!b.gradient_B.defined()) b.gradient_B = at::empty({b.weight_B.numel()}, detail::dtype_v<Collected>);
    for (std::size_t i = 0; i < b.bucket.parameter_count; ++i) {
        const TrainedParameter& p = parameters_[b.bucket.first_parameter + i];
        if (!p.arrived) b.gradient_B.narrow(0, p.offset, p.tensor.numel()).zero_();
    }
    b.gradient_B.narrow(0, b.bucket.numel, b.gradient_B.numel() - b.bucket.numel).zero_();

    const bool adds = accumulates() && micro_batch_ > 0;
    if (adds) b.micro_S = at::empty_like(b.gradient_S);
    with_gradient_type([&](auto element) {
        using Sum = decltype(element);
        // The tensors travel along: an exception may end the pass while they are in use.
        b.ticket = channel_.post("gradients", [this, all = b.gradient_B, sum = adds ? b.micro_S : b.gradient_S] {
            comm_.reduce_scatter(std::span<const Collected>{detail::elements<Collected>(all)},
                                 detail::elements<Sum>(sum));
        });
    });
}

/// Waits until at most `left` reductions are under way, the oldest first.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::finish_reductions(std::size_t left) {
    while (unfinished_ - unreduced_ > left) {
        BucketState& b = buckets_[unfinished_ - 1];
        b.ticket.wait();
        --unfinished_;
        if (b.micro_S.defined()) b.gradient_S.add_(b.micro_S);
        b.micro_S.reset();
        if constexpr (stage == 2) b.gradient_B.reset();
    }
}

}  // namespace strata::zero
