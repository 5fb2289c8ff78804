#pragma once
// strata/zero/impl/gradient_reduction.ipp - buckets of gradients, and the order in which they are reduced.

#include <algorithm>
#include <exception>
#include <string>

#include <ATen/core/grad_mode.h>

#include <strata/core/error.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>

namespace strata::zero {

STRATA_INLINE GradientReduction::GradientReduction(Exchange& exchange, detail::BufferPool& pool, Buckets& buckets,
                                                   const Options& options, ShardStore* tier, LocalFailure* failure)
    : exchange_{exchange},
      pool_{pool},
      buckets_{buckets},
      options_{options},
      tier_{options.sums_on_tier ? tier : nullptr},
      failure_{failure},
      sums_(buckets.size()),
      arrived_(buckets.parameters().size(), 0) {}

STRATA_INLINE std::int64_t GradientReduction::bytes_kept(const Options& options, bool excepted, std::int64_t padded,
                                                         std::int64_t share) {
    const auto sum = share * static_cast<std::int64_t>(c10::elementSize(sum_dtype_of(options, excepted)));
    if (options.sharded) return options.sums_on_tier || options.used_at_once ? 0 : sum;
    const bool own_sum = options.micro_batches > 1 && !options.once_a_step;
    return padded * static_cast<std::int64_t>(c10::elementSize(bucket_dtype_of(options, excepted))) +
           (own_sum ? sum : 0);
}

STRATA_INLINE void GradientReduction::take(std::size_t bucket) {
    Sum& s = sums_[bucket];
    if (!options_.sharded)
        s.gradient_B =
            pool_.zeros(buckets_.padded_of(bucket), bucket_dtype(bucket), MemoryKind::gradients, Place::device);
    if (tier_ != nullptr || options_.used_at_once) return;
    const bool view = !options_.sharded && (!accumulates() || options_.once_a_step);
    s.sum_S = view ? buckets_.own_share(s.gradient_B)
                   : pool_.zeros(buckets_.share_of(bucket), sum_dtype(bucket), MemoryKind::gradients, Place::device);
}

STRATA_INLINE void GradientReduction::begin_pass() {
    if (passes_ == options_.micro_batches) {
        throw Error{Errc::wrong_call_order,
                    "backward() was called " + std::to_string(passes_ + 1) + " times without step()",
                    "call step() after every gradient_accumulation_steps = " + std::to_string(options_.micro_batches) +
                        " backward passes"};
    }
    arrived_.assign(arrived_.size(), 0);
    for (Sum& s : sums_) {
        s.arrived = 0;
        s.offered = false;
    }
    unreduced_ = unfinished_ = sums_.size();
}

STRATA_INLINE at::Tensor& GradientReduction::gradient_of(std::size_t bucket) {
    at::Tensor& gradient_B = sums_[bucket].gradient_B;
    if (!gradient_B.defined())
        gradient_B =
            pool_.empty(buckets_.padded_of(bucket), bucket_dtype(bucket), MemoryKind::gradients, Place::device);
    return gradient_B;
}

STRATA_INLINE bool GradientReduction::arrived(std::size_t parameter) {
    const at::NoGradGuard no_grad;
    const TrainedParameter& p = buckets_.parameter(parameter);
    Sum& s = sums_[p.bucket];
    const at::Tensor gradient = p.tensor.grad();
    at::Tensor{p.tensor}.mutable_grad().reset();
    if (gradient.defined() && gradient.layout() != at::kStrided) {
        throw Error{Errc::bad_parameter, "the parameter " + buckets_.name(parameter) + " has a sparse gradient",
                    "make its layer with sparse = false"};
    }
    if (has_left(p.bucket)) {
        throw Error{Errc::bad_parameter,
                    "the parameter " + buckets_.name(parameter) + " got a second gradient in one backward pass",
                    "register it, or the module that has it, in every recomputed unit whose forward uses it"};
    }
    const at::Tensor target = gradient_of(p.bucket).narrow(0, p.offset, p.tensor.numel()).view(p.tensor.sizes());
    const bool adds = arrived_[parameter] != 0 || adds_up_here();
    if (!gradient.defined()) {  // of recomputed units that could have used it
        if (!adds) target.zero_();
    } else if (adds) {
        target.add_(gradient);
    } else {
        target.copy_(gradient);
    }
    if (arrived_[parameter] == 0) {
        arrived_[parameter] = 1;
        ++s.arrived;
    }
    const bool complete = s.arrived == buckets_[p.bucket].bucket.parameter_count;
    if (offer_) {
        if (complete && !s.offered) {
            prepare(p.bucket);
            s.offered = true;
            offer_(p.bucket);
        }
    } else if ((options_.sharded || options_.overlap) && reduces_now()) {
        while (unreduced_ > 0 && sums_[unreduced_ - 1].arrived == buckets_[unreduced_ - 1].bucket.parameter_count) {
            reduce_next();
        }
    }
    return complete;
}

/// Makes zeros of what no gradient came for; where micro-batches are added up here, what is there stays.
STRATA_INLINE void GradientReduction::prepare(std::size_t bucket) {
    if (adds_up_here()) return;
    const at::Tensor& gradient_B = gradient_of(bucket);
    if (options_.used_at_once) buckets_.bump_versions(bucket);
    const Bucket& b = buckets_[bucket].bucket;
    for (std::size_t i = b.first_parameter; i < b.first_parameter + b.parameter_count; ++i) {
        const TrainedParameter& p = buckets_.parameter(i);
        if (arrived_[i] == 0) gradient_B.narrow(0, p.offset, p.tensor.numel()).zero_();
    }
    gradient_B.narrow(0, b.numel, gradient_B.numel() - b.numel).zero_();
}

STRATA_INLINE void GradientReduction::for_each_sum(offload::Access access,
                                                   core::FunctionRef<void(std::size_t, const at::Tensor&)> look) {
    for (std::size_t i = 0; i < buckets(); ++i) {
        at::Tensor sum_S;
        keep([&] { sum_S = open_sum(i, access); });
        if (!sum_S.defined()) return;
        try {
            look(i, sum_S);
        } catch (...) {
            keep([&] { close_sum(i, access); });
            throw;
        }
        keep([&] { close_sum(i, access); });
    }
}

STRATA_INLINE void GradientReduction::reduce(std::size_t bucket) {
    const at::NoGradGuard no_grad;
    Sum& s = sums_[bucket];
    if (options_.used_at_once) {
        exchange_.reduce_scatter(s.gradient_B, buckets_.own_share(s.gradient_B));
        use_(bucket, s.gradient_B);
        s.gradient_B.reset();
        return;
    }
    const offload::Access access = adds_sums() ? offload::Access::update : offload::Access::write;
    at::Tensor sum_S = s.sum_S;
    if (tier_ != nullptr) keep([&] { sum_S = tier_->open(bucket, access); });
    add_up(bucket, sum_S);
    if (options_.sharded) s.gradient_B.reset();
    if (tier_ != nullptr && sum_S.defined()) keep([&] { tier_->close(bucket, access); });
}

/// The sum over ranks of a pass becomes the sum, or is added to it. Straight into its memory where that is the device's and has
/// nothing yet.
///
///   sum_S  undefined: a tier could not open it, and the other ranks get what they wait for all the same
STRATA_INLINE void GradientReduction::add_up(std::size_t bucket, const at::Tensor& sum_S) {
    const at::Tensor& gradient_B = sums_[bucket].gradient_B;
    if (sum_S.defined() && sum_S.device() == gradient_B.device() && !adds_sums())
        return exchange_.reduce_scatter(gradient_B, sum_S);
    const at::Tensor micro_S =
        pool_.empty(buckets_.share_of(bucket), sum_dtype(bucket), MemoryKind::gradients, Place::device);
    exchange_.reduce_scatter(gradient_B, micro_S);
    if (!sum_S.defined()) return;
    if (adds_sums()) {
        sum_S.add_(micro_S.to(sum_S.device()));
    } else {
        sum_S.copy_(micro_S);
    }
}

STRATA_INLINE at::Tensor GradientReduction::open_sum(std::size_t bucket, offload::Access access) {
    if (tier_ == nullptr) return sums_[bucket].sum_S;
    const at::Tensor sum_S = tier_->open(bucket, access);
    const std::size_t end = std::min(buckets(), bucket + 1 + tier_->reads_ahead());
    for (std::size_t next = bucket + 1; next < end; ++next) tier_->read_ahead(next, access);
    return sum_S;
}

STRATA_INLINE void GradientReduction::close_sum(std::size_t bucket, offload::Access access) {
    if (tier_ != nullptr) tier_->close(bucket, access);
}

STRATA_INLINE void GradientReduction::reduce_next() {
    finish(static_cast<std::size_t>(options_.buckets_in_flight) - 1);
    const std::size_t bucket = --unreduced_;
    prepare(bucket);
    sums_[bucket].ticket = exchange_.post("gradients", [this, bucket] { reduce(bucket); });
}

/// Waits until at most `left` reductions are under way, the oldest first.
STRATA_INLINE void GradientReduction::finish(std::size_t left) {
    while (unfinished_ - unreduced_ > left) {
        sums_[unfinished_ - 1].ticket.wait();
        --unfinished_;
    }
}

STRATA_INLINE void GradientReduction::reduce_rest() {
    while (unreduced_ > 0) reduce_next();
    finish(0);
}

STRATA_INLINE void GradientReduction::end_pass() {
    if (reduces_now()) {
        reduce_rest();
    } else {
        for (std::size_t i = 0; i < sums_.size(); ++i) prepare(i);
    }
}

STRATA_INLINE void GradientReduction::prepare_rest() {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        if (!sums_[i].offered) prepare(i);
    }
}

STRATA_INLINE void GradientReduction::fail_pass(bool began, bool reduces) {
    if (!reduces || exchange_.alone()) {
        spoiled_ = began && passes_ > 0;  // the first one of a step begins anew by itself
        return;
    }
    end_pass_for_others();
    count_pass();
    spoiled_ = true;
}

STRATA_INLINE void GradientReduction::end_pass_for_others() {
    const at::NoGradGuard no_grad;
    try {
        end_pass();
    } catch (const Error&) {
        throw;
    } catch (const std::exception& failure) {  // not even memory for zeros: now the others would wait
        throw Error{Errc::rank_failed,
                    std::string{"a backward pass failed, and so did its part for the other ranks: "} + failure.what(),
                    "use smaller batches or recomputation; this rank most likely ran out of memory"};
    }
}

STRATA_INLINE void GradientReduction::gather_sums(std::size_t bucket) {
    if (bucket == sums_.size()) return;
    Sum& s = sums_[bucket];
    const bool own_memory = accumulates() && !options_.once_a_step;
    s.gathered_B = own_memory
                       ? pool_.empty(buckets_.padded_of(bucket), sum_dtype(bucket), MemoryKind::buffers, Place::device)
                       : s.gradient_B;
    s.ticket =
        exchange_.post("gradient sums", [this, from = s.sum_S, to = s.gathered_B] { exchange_.all_gather(from, to); });
}

STRATA_INLINE const at::Tensor& GradientReduction::gathered_B(std::size_t bucket) const {
    sums_[bucket].ticket.wait();
    return sums_[bucket].gathered_B;
}

}  // namespace strata::zero
