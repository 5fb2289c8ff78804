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
    begin_call("step()");
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
    std::vector<Scalars> scalars;
    for (const Group& group : groups_) {
        scalars.push_back(Rule::scalars(group.update, lr * group.lr_factor, step_count_ + 1));
    }
    with_gradient_type([&](auto element) {
        update_all<decltype(element)>(scalars, {static_cast<float>(factor), limit});
    });
    weights_changed();
    return {.grad_norm = norm, .step = ++step_count_, .skipped = false, .loss_scale = loss_scale};
}

template <class Setup, comm::Communicator Comm>
template <class Gradient>
void Engine<Setup, Comm>::update_all(std::span<const Scalars> scalars, const optim::GradientTransform& transform) {
    if constexpr (replicated) gather_gradient(0);
    if constexpr (optim::ElementwiseRule<Rule>) {
        for_runs(offload::Access::update, has_master ? Touch::write : Touch::update, [&](const Run& run) {
            const std::span<const Gradient> gradient = gradient_of<Gradient>(run);
            for_groups(run, [&](std::size_t group, const Run& part) {
                const auto from = static_cast<std::size_t>(part.begin - run.begin);
                detail::update_run<Rule, Gradient, Element>(
                    scalars[group], transform, gradient.subspan(from, static_cast<std::size_t>(part.numel)), part,
                    parameters_of_run(part), rounding_of(part));
            });
            update_average(run);
            if (run.last) gather_weights(buckets_[run.bucket]);
        });
    } else {
        update_layerwise<Gradient>(scalars, transform);
    }
    end_pass();
}

/// Two passes, because the length of a parameter's step depends on norms over all of it.
template <class Setup, comm::Communicator Comm>
template <class Gradient>
void Engine<Setup, Comm>::update_layerwise(std::span<const Scalars> scalars, const optim::GradientTransform& transform) {
    const auto segments = [&](const Run& part) {
        const BucketState& b = buckets_[part.bucket];
        return detail::segments_of(b.offsets, b.bucket.first_parameter, share_of(part.bucket), place_in_bucket(part),
                                   part.numel);
    };
    std::vector<optim::NormSquares> norms(parameters_.size());
    for_runs(offload::Access::update, has_master ? Touch::none : Touch::update, [&](const Run& run) {
        const std::span<const Gradient> gradient = gradient_of<Gradient>(run);
        for_groups(run, [&](std::size_t group, const Run& part) {
            const auto from = static_cast<std::size_t>(part.begin - run.begin);
            optim::advance<Rule, Gradient, Kept>(scalars[group], transform,
                                                 gradient.subspan(from, static_cast<std::size_t>(part.numel)),
                                                 part.weight, part.state, segments(part), norms, rounding_of(part));
        });
    });
    if constexpr (!replicated) {
        std::vector<optim::NormSquares> all(norms.size() * static_cast<std::size_t>(comm_.world()));
        comm_.all_gather(std::as_bytes(std::span{norms}), std::as_writable_bytes(std::span{all}));
        std::fill(norms.begin(), norms.end(), optim::NormSquares{});
        for (std::size_t i = 0; i < all.size(); ++i) norms[i % norms.size()] += all[i];
    }
    std::vector<std::vector<float>> ratios;
    for (const Group& group : groups_) ratios.push_back(optim::trust_ratios<Rule>(group.update, norms));
    for_runs(offload::Access::update, has_master ? Touch::write : Touch::update, [&](const Run& run) {
        for_groups(run, [&](std::size_t group, const Run& part) {
            detail::apply_direction_run<Rule, Element>(scalars[group], part, segments(part), ratios[group],
                                                       parameters_of_run(part), rounding_of(part));
        });
        update_average(run);
        if (run.last) gather_weights(buckets_[run.bucket]);
    });
}

/// A pass over master and state, with the parameters beside them. A disk that fails ends it on this rank only;
/// end_pass() tells the others.
template <class Setup, comm::Communicator Comm>
template <class Call>
void Engine<Setup, Comm>::for_runs(offload::Access access, Touch touch, Call&& call) {
    const auto parameter_access = touch == Touch::read    ? offload::Access::read
                                  : touch == Touch::write ? offload::Access::write
                                                          : offload::Access::update;
    const auto with_parameters = [&](Run run) {
        const BucketState& b = buckets_[run.bucket];
        const bool opens = b.sharded && touch != Touch::none;
        if (opens && run.begin == 0) {
            open_shard_ = shards_.open(b.shard, parameter_access);
            if (b.shard + 1 < shards_.count()) shards_.read_ahead(b.shard + 1, parameter_access);
        }
        if constexpr (!has_master) {
            if (touch != Touch::none) run.weight = parameters_of_run(run);
        }
        call(std::as_const(run));
        if (opens && run.last) shards_.close(b.shard, parameter_access);
    };
    if constexpr (any_disk) {
        try {
            store_.run(access, with_parameters);
        } catch (const Error&) {
            disk_failure_ = std::current_exception();
        }
    } else {
        store_.run(access, with_parameters);
    }
}

/// Calls `call` with the parts of a run that are of one group each, in order. Padding goes with what is before it.
template <class Setup, comm::Communicator Comm>
template <class Call>
void Engine<Setup, Comm>::for_groups(const Run& run, Call&& call) {
    if (groups_.size() == 1) return call(0, run);
    const BucketState& b = buckets_[run.bucket];
    const std::int64_t place = place_in_bucket(run);
    const std::int64_t end = place + run.numel;
    const auto stop_of = [&](std::size_t i) {  // of the bucket's parameter i
        return i + 1 == b.bucket.parameter_count ? std::max(end, b.offsets[i + 1]) : b.offsets[i + 1];
    };
    std::size_t i = 0;
    for (std::int64_t at = place; at < end;) {
        while (stop_of(i) <= at) ++i;
        const std::size_t group = parameters_[b.bucket.first_parameter + i].group;
        while (i + 1 < b.bucket.parameter_count && stop_of(i) < end &&
               parameters_[b.bucket.first_parameter + i + 1].group == group) {
            ++i;
        }
        const std::int64_t stop = std::min(end, stop_of(i));
        const auto from = static_cast<std::size_t>(at - place);
        const auto numel = static_cast<std::size_t>(stop - at);
        Run part = run;
        part.begin = run.begin + (at - place);
        part.numel = stop - at;
        if (!run.weight.empty()) part.weight = run.weight.subspan(from, numel);
        for (auto& state : part.state) state = state.subspan(from, numel);
        call(group, std::as_const(part));
        at = stop;
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
    b.gathered_B = accumulates() ? pool_->empty(b.weight_B.numel(), at::kFloat, Held::buffers, Place::device) : b.gradient_B;
    b.ticket = channel_.post("gradient sums", [this, from = b.gradient_S, to = b.gathered_B] {
        comm_.all_gather(detail::bytes_of(from), detail::bytes_of(to));
    });
}

/// Shares new weights with the other ranks, where they keep them.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::gather_weights(BucketState& b) {
    if constexpr (replicated) return;
    ++gathered_;
    if (b.sharded) return;
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
    if constexpr (any_disk) {
        comm::agree(comm_, [&] {
            if (disk_failure_) std::rethrow_exception(disk_failure_);
        });
    }
}

/// Drops units that were gathered before, ahead of a forward pass or by hold_unit_of(), and tells autograd that saved
/// weights are stale: a graph kept across a step must fail, not compute with new values.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::weights_changed() {
    if (gathers()) gathering_->drop_all();
    for (const TrainedParameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::begin_call(std::string_view call) {
    channel_.wait();  // a forward pass may have gathered ahead, and a backward pass that threw left reductions
    if (!average_in_) return;
    throw Error{Errc::wrong_call_order, std::string{call} + " was called while the average is in the weights' place",
                "call swap_average() again first"};
}

}  // namespace strata::zero
