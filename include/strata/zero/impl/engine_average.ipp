#pragma once
// strata/zero/impl/engine_average.ipp - the moving average of the weights: kept up, and put in their place.

#include <strata/zero/engine.hpp>

namespace strata::zero {

/// Moves the average of a run's elements towards their new weights, in the steps that are due.
template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::update_average([[maybe_unused]] const Run& run) {
    if constexpr (averages) {
        const std::int64_t step = step_count_ + 1;
        if (step % options_.ema_interval != 0) return;
        const std::span<const Kept> weight = own_part(run, run.weight);
        const auto average = detail::elements<float>(buckets_[run.bucket].average_S)
                                 .subspan(replicated ? 0 : static_cast<std::size_t>(run.begin), weight.size());
        optim::update_average<Kept>(options_.ema.at(step), weight, average);
    }
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::swap_average()
    requires(Setup::averaging::enabled)
{
    const at::NoGradGuard no_grad;
    channel_.wait();
    const bool in = !average_in_;
    for_runs(offload::Access::read, has_master ? Touch::write : Touch::update, [&](const Run& run) {
        BucketState& b = buckets_[run.bucket];
        const std::span<Element> parameters = own_part(run, parameters_of_run(run));
        const auto begin = replicated ? 0 : run.begin;
        const auto numel = parameters.size();
        const auto average = detail::elements<float>(b.average_S).subspan(static_cast<std::size_t>(begin), numel);
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
                b.set_aside_S = pool_->empty(share_of(run.bucket), dtype, Held::state, state_place);
            }
            const auto aside = detail::elements<Element>(b.set_aside_S).subspan(static_cast<std::size_t>(begin), numel);
            if (in) {
                std::copy(parameters.begin(), parameters.end(), aside.begin());
                std::transform(average.begin(), average.end(), parameters.begin(), rounded);
            } else {
                std::copy(aside.begin(), aside.end(), parameters.begin());
            }
        }
        if (!run.last) return;
        if (!in) b.set_aside_S.reset();
        if constexpr (replicated) {
            channel_.post("weights", [this, all = b.weight_B] {
                comm_.all_gather(detail::bytes_of(own_share(all)), detail::bytes_of(all));
            });
        } else {
            gather_weights(b);
        }
    });
    end_pass();
    average_in_ = in;
    weights_changed();
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::restart_average()
    requires(Setup::averaging::enabled)
{
    const at::NoGradGuard no_grad;
    channel_.wait();
    for_runs(offload::Access::read, has_master ? Touch::none : Touch::read, [&](const Run& run) {
        const std::span<const Kept> weight = own_part(run, run.weight);
        const auto average = detail::elements<float>(buckets_[run.bucket].average_S)
                                 .subspan(replicated ? 0 : static_cast<std::size_t>(run.begin), weight.size());
        std::transform(weight.begin(), weight.end(), average.begin(), [](Kept value) { return detail::as_float(value); });
    });
    if constexpr (any_disk) end_pass();
}

}  // namespace strata::zero
