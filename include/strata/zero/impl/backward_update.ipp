#pragma once
// strata/zero/impl/backward_update.ipp - the verdict on a bucket, its update and its weights.

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/zero/parts/backward_update.hpp>

namespace strata::zero {

STRATA_INLINE void BackwardUpdate::check(double max_grad_norm, int micro_batches, OnNonFinite on_non_finite) {
    if (max_grad_norm > 0.0) {
        throw Error{Errc::bad_value,
                    "max_grad_norm is " + OptionCheck::shown(max_grad_norm) +
                        ", and Update<InBackward> has changed weights before the norm of all gradients is known",
                    "set max_grad_norm to 0; max_grad_value clamps element by element"};
    }
    if (micro_batches > 1) {
        throw Error{
            Errc::bad_value,
            "gradient_accumulation_steps is " + std::to_string(micro_batches) +
                ", and Update<InBackward> keeps no gradients that those of another micro-batch could be added to",
            "set gradient_accumulation_steps to 1, and use larger batches or more ranks"};
    }
    if (on_non_finite == OnNonFinite::skip) {
        throw Error{
            Errc::bad_value,
            "on_non_finite is skip, and Update<InBackward> may have changed weights before it meets a gradient that "
            "is not finite",
            "leave on_non_finite at stop"};
    }
}

STRATA_INLINE BackwardUpdate::BackwardUpdate(Exchange& exchange, Buckets& buckets, Calls calls)
    : exchange_{exchange}, buckets_{buckets}, calls_{std::move(calls)} {
    buckets.number_versions();
}

STRATA_INLINE double BackwardUpdate::rate(bool state_is_whole) const {
    if (!state_is_whole) {
        throw Error{Errc::wrong_call_order,
                    "backward() was called after a pass of Update<InBackward> that changed some weights and broke off",
                    "go back to a checkpoint, or make the engine anew"};
    }
    if (!lr_) {
        throw Error{Errc::wrong_call_order,
                    "backward() was called before begin_step(), and Update<InBackward> wants a learning rate",
                    "call begin_step(lr) before the backward pass of each step"};
    }
    return *lr_;
}

STRATA_INLINE void BackwardUpdate::check_rate(double lr) const {
    if (lr_ == lr) return;
    throw Error{Errc::wrong_call_order,
                "step() was given the learning rate " + OptionCheck::shown(lr) +
                    ", and backward() has updated with that of begin_step()",
                "give both the same"};
}

STRATA_INLINE void BackwardUpdate::refuse_gradients(std::string_view call) {
    throw Error{Errc::wrong_call_order,
                std::string{call} + " was called with Update<InBackward>, whose gradients are gone after backward()",
                "leave Update<InBackward> out where gradients are to be looked at"};
}

STRATA_INLINE void BackwardUpdate::begin_pass() {
    const std::size_t all = buckets_.size() * static_cast<std::size_t>(exchange_.world());
    squares_.assign(all, std::numeric_limits<double>::quiet_NaN());
    stopped_ = given_up_ = false;
    if (buckets_.size() > 0) calls_.prefetch(buckets_.size() - 1);
}

STRATA_INLINE void BackwardUpdate::use(std::size_t bucket, const at::Tensor& gradient_B) {
    calls_.prefetch(bucket);
    const at::Tensor sum_S = buckets_.own_share(gradient_B);
    stopped_ = !are_finite(bucket, sum_S) || stopped_;
    if (stopped_) return;
    if (buckets_.replicates_state()) exchange_.all_gather(sum_S, gradient_B);
    has_begun_ = true;
    if (bucket > 0) calls_.prefetch(bucket - 1);  // roughly the order in which gradients arrive
    calls_.update(bucket, buckets_.replicates_state() ? gradient_B : sum_S);
    const TrainedBucket& b = buckets_[bucket];
    if (!buckets_.replicates_state() && !b.sharded) exchange_.all_gather(buckets_.own_share(b.weight_B), b.weight_B);
}

/// Of all ranks. One message of 8 bytes a bucket, beside the computation.
STRATA_INLINE bool BackwardUpdate::are_finite(std::size_t bucket, const at::Tensor& sum_S) {
    const double mine = stopped_ || given_up_ ? std::numeric_limits<double>::quiet_NaN() : calls_.squares(sum_S);
    const auto world = static_cast<std::size_t>(exchange_.world());
    std::vector<double> all(world);
    exchange_.all_gather_bytes(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
    bool finite = true;
    for (std::size_t rank = 0; rank < world; ++rank) {
        squares_[rank * buckets_.size() + bucket] = all[rank];
        finite = finite && std::isfinite(all[rank]);
    }
    return finite;
}

}  // namespace strata::zero
