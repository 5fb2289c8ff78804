#pragma once
// strata/zero/impl/engine_step.ipp - sums of gradients become new weights on all ranks.

#include <strata/zero/engine.hpp>

namespace strata::zero {

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
    double norm = gradient_norm();
    const double loss_scale = scales_loss ? loss_scale_.value() : 1.0;
    if constexpr (scales_loss) {
        const auto verdict = loss_scale_.update(!std::isfinite(norm));
        if (verdict.skip) return {.grad_norm = norm, .step = step_count_, .skipped = true, .loss_scale = loss_scale};
        norm *= verdict.unscale;
    }
    if (!std::isfinite(norm)) {
        throw Error{
            Errc::non_finite, "the gradient norm of step " + std::to_string(step_count_ + 1) + " is not finite",
            "lower the learning rate, clip with max_grad_norm, or look for broken samples in this step's batches"};
    }
    const double factor = optim::clip_coefficient(norm, options_.max_grad_norm) / comm_.world() / loss_scale;
    const auto limit = options_.max_grad_value > 0.0 ? static_cast<float>(options_.max_grad_value)
                                                     : std::numeric_limits<float>::infinity();
    const auto scalars = Rule::scalars(options_.update, lr, step_count_ + 1);
    with_gradient_type([&](auto element) {
        update_all<decltype(element)>(scalars, {static_cast<float>(factor), limit});
    });
    weights_changed();
    return {.grad_norm = norm, .step = ++step_count_, .skipped = false, .loss_scale = loss_scale};
}

template <class Setup, comm::Communicator Comm>
template <class Gradient>
void Engine<Setup, Comm>::update_all(const typename Rule::Scalars& scalars, const optim::GradientTransform& transform) {
    if constexpr (replicated) gather_gradient(0);
    const auto finish = [&](const Run& run) {
        if (!replicated && run.last) gather_weights(buckets_[run.bucket]);
    };
    if constexpr (optim::ElementwiseRule<Rule>) {
        for_runs(offload::Access::update, [&](const Run& run) {
            detail::update_run<Rule, Gradient, Element>(scalars, transform, gradient_of<Gradient>(run), run,
                                                        parameters_of_run(run), rounding_of(run));
            finish(run);
        });
    } else {
        const auto segments = [&](const Run& run) {
            const BucketState& b = buckets_[run.bucket];
            return detail::segments_of(b.offsets, b.bucket.first_parameter, share_of(run.bucket), place_in_bucket(run),
                                       run.numel);
        };
        std::vector<optim::NormSquares> norms(parameters_.size());
        for_runs(offload::Access::update, [&](const Run& run) {
            optim::advance<Rule, Gradient, Kept>(scalars, transform, gradient_of<Gradient>(run), run.weight, run.state,
                                                 segments(run), norms, rounding_of(run));
        });
        if constexpr (!replicated) {
            std::vector<optim::NormSquares> all(norms.size() * static_cast<std::size_t>(comm_.world()));
            comm_.all_gather(std::as_bytes(std::span{norms}), std::as_writable_bytes(std::span{all}));
            std::fill(norms.begin(), norms.end(), optim::NormSquares{});
            for (std::size_t i = 0; i < all.size(); ++i) norms[i % norms.size()] += all[i];
        }
        const std::vector<float> ratios = optim::trust_ratios<Rule>(options_.update, norms);
        for_runs(offload::Access::update, [&](const Run& run) {
            detail::apply_direction_run<Rule, Element>(scalars, run, segments(run), ratios, parameters_of_run(run),
                                                       rounding_of(run));
            finish(run);
        });
    }
    end_pass();
}

/// A pass over master and state. A disk that fails ends it on this rank only; end_pass() tells the others.
template <class Setup, comm::Communicator Comm>
template <class Call>
void Engine<Setup, Comm>::for_runs(offload::Access access, Call&& call) {
    if constexpr (on_disk) {
        try {
            store_.run(access, call);
        } catch (const Error&) {
            disk_failure_ = std::current_exception();
        }
    } else {
        store_.run(access, call);
    }
}

template <class Setup, comm::Communicator Comm>
template <class Gradient>
std::span<const Gradient> Engine<Setup, Comm>::gradient_of(const Run& run) {
    BucketState& b = buckets_[run.bucket];
    if constexpr (replicated) {
        if (run.bucket > 0) buckets_[run.bucket - 1].gathered_B.reset();
        gather_gradient(run.bucket + 1);
        b.ticket.wait();
    }
    return detail::elements<Gradient>(replicated ? b.gathered_B : b.gradient_S)
        .subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.numel));
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::gather_gradient(std::size_t index) {
    if (index == buckets_.size()) return;
    BucketState& b = buckets_[index];
    b.gathered_B = accumulates() ? at::empty({b.weight_B.numel()}, at::kFloat) : b.gradient_B;
    b.ticket = channel_.post("gradient sums", [this, from = b.gradient_S, to = b.gathered_B] {
        comm_.all_gather(detail::bytes_of(from), detail::bytes_of(to));
    });
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::gather_weights(BucketState& b) {
    ++gathered_;
    channel_.post("weights", [this, all = b.weight_B] {
        comm_.all_gather(detail::bytes_of(own_share(all)), detail::bytes_of(all));
    });
}

/// Posts what a pass that failed has not, waits for all of it, and makes a failure of one rank's disk one of all ranks.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::end_pass() {
    if constexpr (replicated) {
        buckets_.back().gathered_B.reset();
    } else {
        while (gathered_ < buckets_.size()) gather_weights(buckets_[gathered_]);
        gathered_ = 0;
    }
    channel_.wait();
    if constexpr (on_disk) {
        comm::agree(comm_, [&] {
            if (disk_failure_) std::rethrow_exception(disk_failure_);
        });
    }
}

/// Tells autograd that saved weights are stale: a graph kept across a step must fail, not compute with new values.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::weights_changed() {
    for (const TrainedParameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace strata::zero
