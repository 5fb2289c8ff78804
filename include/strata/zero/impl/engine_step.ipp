#pragma once
// strata/zero/impl/engine_step.ipp - sums of gradients become new weights on all ranks.

#include <strata/zero/engine.hpp>

namespace strata::zero {

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
double Engine<Setup, Comm, Compute>::gradient_norm() {
    std::vector<double> mine(buckets_.size());
    with_gradient_type([&](auto element) {
        using Gradient = decltype(element);
        if constexpr (Compute::is_host) {
            for (std::size_t i = 0; i < mine.size(); ++i) {
                mine[i] = optim::sum_of_squares<Gradient>(detail::elements<Gradient>(buckets_[i].gradient_S));
            }
        } else {
            const at::Tensor sums = pool_->empty(std::ssize(mine), at::kDouble, Held::buffers, Place::device);
            for (std::size_t i = 0; i < mine.size(); ++i) {
                compute_.template sum_of_squares<Gradient>(detail::elements<const Gradient>(buckets_[i].gradient_S),
                                                           static_cast<double*>(sums.data_ptr()) + i);
            }
            const at::Tensor here = sums.cpu();
            std::copy_n(static_cast<const double*>(here.data_ptr()), mine.size(), mine.begin());
        }
    });
    const auto world = static_cast<std::size_t>(comm_.world());
    std::vector<double> all(mine.size() * world);
    exchange_.host().all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
    double total = 0.0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        for (std::size_t rank = 0; rank < world; ++rank) total += all[rank * mine.size() + i];
    }
    return std::sqrt(total) / static_cast<double>(world);  // of the mean, while buckets hold the sum
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
StepResult Engine<Setup, Comm, Compute>::step(double lr, bool loss_is_finite) {
    if (micro_batch_ != options_.gradient_accumulation_steps) {
        throw Error{Errc::wrong_call_order,
                    "step() was called after " + std::to_string(micro_batch_) + " backward passes instead of " +
                        std::to_string(options_.gradient_accumulation_steps),
                    "call backward() gradient_accumulation_steps times before each step()"};
    }
    if (!(lr >= 0.0 && std::isfinite(lr))) {
        throw Error{Errc::bad_learning_rate,
                    "the learning rate of step " + std::to_string(step_count_ + 1) + " is " + OptionCheck::shown(lr),
                    "use a schedule whose rate is finite and not below 0 at every step of the run"};
    }
    begin_call("step()");
    micro_batch_ = 0;
    const at::NoGradGuard no_grad;
    const double loss_scale = scales_loss ? loss_scale_.value() : 1.0;
    const auto skipped = [&](double norm, bool non_finite) {
        return StepResult{.grad_norm = norm, .step = step_count_, .skipped = true, .non_finite = non_finite, .loss_scale = loss_scale};
    };
    if (!loss_is_finite) {  // no loss scale mends that
        non_finite_.met(step_count_ + 1, "loss");
        return skipped(std::numeric_limits<double>::quiet_NaN(), true);
    }
    double norm = gradient_norm();
    if constexpr (scales_loss) {
        const auto verdict = loss_scale_.update(!std::isfinite(norm));
        if (verdict.skip) return skipped(norm, false);
        norm *= verdict.unscale;
    }
    if (!std::isfinite(norm)) {
        non_finite_.met(step_count_ + 1, "gradient norm");
        return skipped(norm, true);
    }
    non_finite_.passed();
    const double factor = optim::clip_coefficient(norm, options_.max_grad_norm) / comm_.world() / loss_scale;
    const auto limit = options_.max_grad_value > 0.0 ? static_cast<float>(options_.max_grad_value)
                                                     : std::numeric_limits<float>::infinity();
    std::vector<Scalars> scalars;
    for (const Group& group : groups_) {
        scalars.push_back(Rule::scalars(group.update, lr * group.lr_factor, step_count_ + 1));
    }
    state_is_whole_ = false;
    with_gradient_type([&](auto element) {
        update_all<decltype(element)>(scalars, {static_cast<float>(factor), limit});
    });
    weights_changed();
    state_is_whole_ = true;
    return {.grad_norm = norm, .step = ++step_count_, .skipped = false, .loss_scale = loss_scale};
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Gradient>
void Engine<Setup, Comm, Compute>::update_all(std::span<const Scalars> scalars, const optim::GradientTransform& transform) {
    if constexpr (replicated) gather_gradient(0);
    if constexpr (optim::ElementwiseRule<Rule>) {
        const auto update = [&]<Side side>(const Part<side>& run) {
            detail::Staging staging{*pool_};
            const std::span<const Gradient> gradient = gradient_of<Gradient>(run, side, staging);
            for_groups(run, [&](std::size_t group, const Part<side>& part) {
                update_part<Gradient>(part, scalars[group], transform, part_of(gradient, run, part));
            });
            update_average(run);
        };
        for_runs<Where::beside_state>(offload::Access::update, has_master ? Touch::write : Touch::update, update,
                                      [&](const Run& run) {
                                          if (run.last) gather_weights(buckets_[run.bucket]);
                                      });
    } else {
        update_layerwise<Gradient>(scalars, transform);
    }
    end_pass();
}

// The kernels, of the host or of the device, for the part of a run that is of one group.

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Gradient, detail::Side side>
void Engine<Setup, Comm, Compute>::update_part(const Part<side>& part, const Scalars& scalars,
                                               const optim::GradientTransform& transform,
                                               std::span<const Gradient> gradient) {
    if constexpr (side == Side::host) {
        detail::update_run<Rule, Gradient, Element>(scalars, transform, gradient, part, part.parameters, rounding_of(part));
    } else {
        compute_.template update<Rule>(scalars, transform, gradient, part.weight, part.state, rounded_copy(part),
                                       rounding_of(part));
    }
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Gradient, detail::Side side>
void Engine<Setup, Comm, Compute>::advance_part(const Part<side>& part, const Scalars& scalars,
                                                const optim::GradientTransform& transform,
                                                std::span<const Gradient> gradient,
                                                const std::vector<optim::Segment>& segments,
                                                std::span<optim::NormSquares> sums) {
    if constexpr (side == Side::host) {
        optim::advance<Rule, Gradient, Kept>(scalars, transform, gradient, part.weight, part.state, segments, sums,
                                             rounding_of(part));
    } else {
        compute_.template advance<Rule, Gradient, Kept>(scalars, transform, gradient, part.weight, part.state, segments,
                                                        sums, rounding_of(part));
    }
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <detail::Side side>
void Engine<Setup, Comm, Compute>::apply_part(const Part<side>& part, const Scalars& scalars,
                                              const std::vector<optim::Segment>& segments,
                                              std::span<const float> ratios) {
    if constexpr (side == Side::host) {
        detail::apply_direction_run<Rule, Element>(scalars, part, segments, ratios, part.parameters, rounding_of(part));
    } else {
        compute_.template apply_direction<Rule, Kept>(scalars, part.weight, part.state, segments, ratios,
                                                      rounded_copy(part), rounding_of(part));
    }
}

/// Two passes, because the length of a parameter's step depends on norms over all of it.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Gradient>
void Engine<Setup, Comm, Compute>::update_layerwise(std::span<const Scalars> scalars, const optim::GradientTransform& transform) {
    const auto segments = [&](const Run& part) {
        const BucketState& b = buckets_[part.bucket];
        return detail::segments_of(b.offsets, b.bucket.first_parameter, share_of(part.bucket), place_in_bucket(part),
                                   part.numel);
    };
    detail::LayerNorms layer_norms{*pool_, parameters_.size()};
    const auto advance = [&]<Side side>(const Part<side>& run) {
        detail::Staging staging{*pool_};
        const std::span<const Gradient> gradient = gradient_of<Gradient>(run, side, staging);
        const std::span<optim::NormSquares> sums = layer_norms.on(side);
        for_groups(run, [&](std::size_t group, const Part<side>& part) {
            advance_part<Gradient>(part, scalars[group], transform, part_of(gradient, run, part), segments(part), sums);
        });
    };
    for_runs<Where::beside_state>(offload::Access::update, has_master ? Touch::none : Touch::update, advance);
    std::vector<optim::NormSquares> norms = layer_norms.together();
    if constexpr (!replicated) {
        std::vector<optim::NormSquares> all(norms.size() * static_cast<std::size_t>(comm_.world()));
        exchange_.host().all_gather(std::as_bytes(std::span{norms}), std::as_writable_bytes(std::span{all}));
        std::fill(norms.begin(), norms.end(), optim::NormSquares{});
        for (std::size_t i = 0; i < all.size(); ++i) norms[i % norms.size()] += all[i];
    }
    std::vector<std::vector<float>> ratios;
    for (const Group& group : groups_) ratios.push_back(optim::trust_ratios<Rule>(group.update, norms));
    const auto apply = [&]<Side side>(const Part<side>& run) {
        for_groups(run, [&](std::size_t group, const Part<side>& part) {
            apply_part(part, scalars[group], segments(part), ratios[group]);
        });
        update_average(run);
    };
    for_runs<Where::beside_state>(offload::Access::update, has_master ? Touch::write : Touch::update, apply,
                                  [&](const Run& run) {
                                      if (run.last) gather_weights(buckets_[run.bucket]);
                                  });
}

/// A pass over master and state, with the parameters beside them; all of a run is on one side of the bus during its call.
/// What fails on this rank only ends the pass on it; end_pass() tells the others.
///
///   done  called with a run whose values are back where they live
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <typename Engine<Setup, Comm, Compute>::Where where, class Call, class Done>
void Engine<Setup, Comm, Compute>::for_runs(offload::Access access, Touch touch, Call&& call, Done&& done) {
    const auto parameter_access = touch == Touch::read    ? offload::Access::read
                                  : touch == Touch::write ? offload::Access::write
                                                          : offload::Access::update;
    detail::RunOrder order{replicated};
    const auto visit = [&]<class Kind>(const Kind& run) {
        constexpr Side run_side = side_of(Kind::memory);
        constexpr Side side = where == Where::on_host ? Side::host : run_side;
        order.next(run, run.bucket < buckets_.size() ? part_numel(run.bucket) : 0);
        const BucketState& b = buckets_[run.bucket];
        const bool opens = b.sharded && touch != Touch::none;
        if (opens && run.begin == 0) {
            open_shard_ = shards_.open(b.shard, parameter_access);
            if (b.shard + 1 < shards_.count()) shards_.read_ahead(b.shard + 1, parameter_access);
        }
        const std::span<Element> parameters = touch == Touch::none ? std::span<Element>{} : parameters_of_run(run);
        work_on<side>(run, run_side, access, parameters, b.sharded ? side_of_shard(b.shard) : device_side, parameter_access,
                      call);
        if (opens && run.last) shards_.close(b.shard, parameter_access);
        done(run);
    };
    failure_.keep([&] {
        state_.run(access, visit);
        order.end(buckets_.size());
    });
}

/// Calls `call` with a run and its parameters where it works, and puts back what it has changed.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <detail::Side side, class Call>
void Engine<Setup, Comm, Compute>::work_on(const Run& run, Side run_is, offload::Access access, std::span<Element> parameters,
                                           Side parameters_are, offload::Access parameter_access, Call&& call) {
    detail::Staging staging{*pool_};
    const auto here = [&](auto values, Side is, offload::Access how) {
        return staging.take(values, is, side, how != offload::Access::write, how != offload::Access::read);
    };
    Part<side> part{run, here(parameters, parameters_are, parameter_access)};
    part.weight = here(run.weight, run_is, access);
    if constexpr (!has_master) part.weight = part.parameters;
    for (std::size_t k = 0; k < states; ++k) part.state[k] = here(run.state[k], run_is, access);
    call(std::as_const(part));
    staging.put_back();
}

/// Calls `call` with the parts of a run that are of one group each, in order. Padding goes with what is before it.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <detail::Side side, class Call>
void Engine<Setup, Comm, Compute>::for_groups(const Part<side>& run, Call&& call) {
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
        Part<side> part = run;
        part.begin = run.begin + (at - place);
        part.numel = stop - at;
        if (!run.weight.empty()) part.weight = run.weight.subspan(from, numel);
        if (!run.parameters.empty()) part.parameters = run.parameters.subspan(from, numel);
        for (auto& state : part.state) state = state.subspan(from, numel);
        call(group, std::as_const(part));
        at = stop;
    }
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Gradient>
std::span<const Gradient> Engine<Setup, Comm, Compute>::gradient_of(const Run& run, Side side, detail::Staging& staging) {
    BucketState& b = buckets_[run.bucket];
    if constexpr (replicated) {
        if (run.bucket > 0) buckets_[run.bucket - 1].gathered_B.reset();
        gather_gradient(run.bucket + 1);
        b.ticket.wait();
    }
    const auto all = detail::elements<const Gradient>(replicated ? b.gathered_B : b.gradient_S);
    return staging.take(all.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.numel)), device_side,
                        side, true);
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::gather_gradient(std::size_t index) {
    if (index == buckets_.size()) return;
    BucketState& b = buckets_[index];
    b.gathered_B = accumulates() ? pool_->empty(b.weight_B.numel(), at::kFloat, Held::buffers, Place::device) : b.gradient_B;
    b.ticket = channel_.post("gradient sums", [this, from = b.gradient_S, to = b.gathered_B] {
        exchange_.all_gather(from, to);
    });
}

/// Shares new weights with the other ranks, where they keep them.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::gather_weights(BucketState& b) {
    if constexpr (replicated) return;
    ++gathered_;
    if (!b.sharded) post_weights(b);
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::post_weights(BucketState& b) {
    channel_.post("weights", [this, all = b.weight_B] { exchange_.all_gather(own_share(all), all); });
}

/// Posts what a pass that failed has not, waits for all of it, and makes a failure of one rank one of all ranks.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::end_pass() {
    if constexpr (replicated) {
        if (!buckets_.empty()) buckets_.back().gathered_B.reset();
    } else {
        while (gathered_ < buckets_.size()) gather_weights(buckets_[gathered_]);
        gathered_ = 0;
    }
    channel_.wait();
    failure_.tell(comm_);
}

/// Drops units that were gathered before, ahead of a forward pass or by hold_unit_of(), and tells autograd that saved
/// weights are stale: a graph kept across a step must fail, not compute with new values.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::weights_changed() {
    if (gathers()) gathering_->drop_all();
    for (const TrainedParameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::begin_call(std::string_view call) {
    channel_.wait();  // a forward pass may have gathered ahead, and a backward pass that threw left reductions
    if (!average_in_) return;
    throw Error{Errc::wrong_call_order, std::string{call} + " was called while the average is in the weights' place",
                "call swap_average() again first"};
}

}  // namespace strata::zero
