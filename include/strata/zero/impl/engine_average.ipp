#pragma once
// strata/zero/impl/engine_average.ipp - the moving average of the weights: kept up, and put in their place.

#include <strata/zero/engine.hpp>

namespace strata::zero {

/// Moves the average of a run's elements towards their new weights, in the steps that are due.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <detail::Side side>
void Engine<Setup, Comm, Compute>::update_average([[maybe_unused]] const Part<side>& run) {
    if constexpr (averages) {
        const std::int64_t step = step_count_ + 1;
        if (step % options_.ema.interval != 0) return;
        detail::Staging staging{*pool_};
        const std::span<const Kept> weight =
            staging.take(std::span<const Kept>{own_part(run, run.weight)}, side, average_side, true);
        const std::span<float> average = average_of(run, weight.size());
        if constexpr (average_side == Side::host) {
            optim::update_average<Kept>(options_.ema.at(step), weight, average);
        } else {
            compute_.template update_average<Kept>(options_.ema.at(step), weight, average);
        }
    }
}

/// The average of the elements of a run that are in this rank's share.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
std::span<float> Engine<Setup, Comm, Compute>::average_of(const Run& run, std::size_t numel) const {
    return detail::elements<float>(buckets_[run.bucket].average_S)
        .subspan(replicated ? 0 : static_cast<std::size_t>(run.begin), numel);
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::swap_average()
    requires(Setup::averaging::enabled)
{
    const at::NoGradGuard no_grad;
    channel_.wait();
    const bool in = !average_in_;
    const auto exchange = [&](const Part<Side::host>& run) {
        BucketState& b = buckets_[run.bucket];
        detail::Staging staging{*pool_};
        const std::span<Element> parameters = own_part(run, run.parameters);
        const auto numel = parameters.size();
        const std::span<const float> average =
            staging.take(std::span<const float>{average_of(run, numel)}, average_side, Side::host, in);
        const auto rounded = [](auto value) { return detail::kept_from<Element>(detail::as_float(value)); };
        if constexpr (has_master) {
            const std::span<Kept> weight = own_part(run, run.weight);
            if (in) {
                std::transform(average.begin(), average.end(), parameters.begin(), rounded);
            } else {
                std::transform(weight.begin(), weight.end(), parameters.begin(), rounded);
            }
        } else {
            if (in && !b.set_aside_S.defined()) {
                b.set_aside_S = pool_->empty(share_of(run.bucket), dtype, Held::state, aside_place);
            }
            const auto begin = replicated ? 0 : static_cast<std::size_t>(run.begin);
            const auto aside = detail::elements<Element>(b.set_aside_S).subspan(begin, numel);
            if (in) {
                std::copy(parameters.begin(), parameters.end(), aside.begin());
                std::transform(average.begin(), average.end(), parameters.begin(), rounded);
            } else {
                std::copy(aside.begin(), aside.end(), parameters.begin());
            }
        }
    };
    // The pass is over the parameters as a whole; at stage 0 the other ranks' part comes from them below.
    for_runs<Where::on_host>(offload::Access::read, replicated || !has_master ? Touch::update : Touch::write, exchange,
                         [&](const Run& run) {
                             if (!run.last) return;
                             BucketState& b = buckets_[run.bucket];
                             if (!in) b.set_aside_S.reset();
                             if constexpr (replicated) {
                                 post_weights(b);
                             } else {
                                 gather_weights(b);
                             }
                         });
    end_pass();
    average_in_ = in;
    weights_changed();
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::restart_average()
    requires(Setup::averaging::enabled)
{
    const at::NoGradGuard no_grad;
    channel_.wait();
    for_runs<Where::on_host>(offload::Access::read, has_master ? Touch::none : Touch::read, [&](const Part<Side::host>& run) {
        const std::span<const Kept> weight = own_part(run, run.weight);
        detail::Staging staging{*pool_};
        const std::span<float> average =
            staging.take(average_of(run, weight.size()), average_side, Side::host, false, true);
        std::transform(weight.begin(), weight.end(), average.begin(), [](Kept value) { return detail::as_float(value); });
        staging.put_back();
    });
    failure_.tell(comm_);
}

}  // namespace strata::zero
