#pragma once
// strata/zero/impl/engine_state.ipp - what checkpoints read and write.

#include <strata/zero/engine.hpp>

namespace strata::zero {

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
std::vector<StateOutline> Engine<Setup, Comm, Compute>::state_outline() const {
    std::vector<StateOutline> runs;
    for (std::size_t kind = 0; kind <= states + (averages ? 1 : 0); ++kind) {
        for (const BucketState& b : buckets_) {
            const ElementRun own = b.bucket.share_of(comm_.rank(), comm_.world());
            if (own.numel > 0) runs.push_back({kind > states ? average_kind : kind_name(kind), own.begin, own.numel});
        }
    }
    return runs;
}

/// The elements of this rank's share that a run holds, without padding.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
ElementRun Engine<Setup, Comm, Compute>::own_elements(const Run& run) const {
    const ElementRun own = buckets_[run.bucket].bucket.share_of(comm_.rank(), comm_.world());
    if constexpr (replicated) return own;
    const std::int64_t from = std::min(run.begin, own.numel);
    return {own.begin + from, std::min(run.numel, own.numel - from)};
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Sink>
void Engine<Setup, Comm, Compute>::read_state(Sink&& sink) {
    begin_call("read_state()");
    std::vector<float> copy;
    for_runs<Where::on_host>(offload::Access::read, has_master ? Touch::none : Touch::read, [&](const Part<Side::host>& run) {
        const ElementRun own = own_elements(run);
        if (own.numel == 0) return;
        for (std::size_t kind = 0; kind <= states; ++kind) {
            const std::span<const Kept> values =
                own_part(run, kind == 0 ? run.weight : run.state[kind - 1]).first(static_cast<std::size_t>(own.numel));
            if constexpr (std::same_as<Kept, float>) {
                sink(kind_name(kind), own.begin, values);
            } else {
                copy.resize(values.size());
                std::transform(values.begin(), values.end(), copy.begin(), [](Kept value) { return detail::as_float(value); });
                sink(kind_name(kind), own.begin, std::span<const float>{copy});
            }
        }
    });
    failure_.rethrow();
    if constexpr (averages) {
        for (const BucketState& b : buckets_) {
            const ElementRun own = b.bucket.share_of(comm_.rank(), comm_.world());
            detail::Staging staging{*pool_};
            const std::span<const float> average =
                staging.take(detail::elements<const float>(b.average_S), average_side, Side::host, true);
            if (own.numel > 0) sink(average_kind, own.begin, average.first(static_cast<std::size_t>(own.numel)));
        }
    }
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
template <class Source>
void Engine<Setup, Comm, Compute>::write_state(Source&& source, bool average) {
    begin_call("write_state()");
    const at::NoGradGuard no_grad;
    micro_batch_ = 0;
    state_is_whole_ = false;
    const auto round = [](std::span<const Kept> from, std::span<Element> to) {
        std::transform(from.begin(), from.end(), to.begin(), [](Kept value) { return detail::kept_from<Element>(detail::as_float(value)); });
    };
    std::vector<float> copy;
    comm::agree(comm_, [&] {
        for_runs<Where::on_host>(offload::Access::write, Touch::write, [&](const Part<Side::host>& run) {
            const ElementRun own = own_elements(run);
            for (std::size_t kind = 0; kind <= states; ++kind) {
                const std::span<Kept> values = own_part(run, kind == 0 ? run.weight : run.state[kind - 1]);
                copy.assign(values.size(), 0.0F);  // padding
                source(kind_name(kind), own.begin, std::span{copy}.first(static_cast<std::size_t>(own.numel)));
                std::transform(copy.begin(), copy.end(), values.begin(), [](float value) { return detail::kept_from<Kept>(value); });
            }
            if constexpr (has_master) round(own_part(run, run.weight), own_part(run, run.parameters));
        });
        failure_.rethrow();
        if constexpr (averages) {
            for (const BucketState& b : buckets_) {
                const ElementRun own = b.bucket.share_of(comm_.rank(), comm_.world());
                if (!average || own.numel == 0) continue;
                detail::Staging staging{*pool_};
                const std::span<float> values = detail::elements<float>(b.average_S).first(static_cast<std::size_t>(own.numel));
                source(average_kind, own.begin, staging.take(values, average_side, Side::host, false, true));
                staging.put_back();
            }
        }
    });
    if constexpr (replicated) {
        for_runs<Where::on_host>(offload::Access::update, has_master ? Touch::write : Touch::update, [&](const Part<Side::host>& run) {
            for (std::size_t kind = 0; kind <= states; ++kind) {
                const std::span<Kept> values = kind == 0 ? run.weight : run.state[kind - 1];
                exchange_.host().all_gather(std::as_bytes(own_part(run, values)), std::as_writable_bytes(values));
            }
            if constexpr (has_master) round(run.weight, run.parameters);
        });
    }
    end_pass();
    weights_changed();
    state_is_whole_ = true;
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
std::map<std::string, double> Engine<Setup, Comm, Compute>::scalars() const {
    if constexpr (!scales_loss) return {};
    const optim::LossScale::State& state = loss_scale_.state();
    return {{"loss_scale", state.scale},
            {"loss_scale_iteration", static_cast<double>(state.iteration)},
            {"loss_scale_last_overflow", static_cast<double>(state.last_overflow)},
            {"loss_scale_hysteresis_left", static_cast<double>(state.hysteresis_left)}};
}

template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
void Engine<Setup, Comm, Compute>::restore_scalars(const std::map<std::string, double>& values) {
    optim::LossScale::State state = loss_scale_.state();
    const auto restore = [&]<class Value>(const char* name, Value& value) {
        if (const auto found = values.find(name); found != values.end()) value = static_cast<Value>(found->second);
    };
    restore("loss_scale", state.scale);
    restore("loss_scale_iteration", state.iteration);
    restore("loss_scale_last_overflow", state.last_overflow);
    restore("loss_scale_hysteresis_left", state.hysteresis_left);
    loss_scale_.restore(state);
}

}  // namespace strata::zero
