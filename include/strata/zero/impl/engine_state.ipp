#pragma once
// strata/zero/impl/engine_state.ipp - what checkpoints read and write.

#include <strata/zero/engine.hpp>

namespace strata::zero {

template <class Setup, comm::Communicator Comm>
std::vector<StatePiece> Engine<Setup, Comm>::state() {
    check_weights_are_in("state()");
    shown_.clear();
    if constexpr (!shown_in_place) shown_.resize((states + 1) * buckets_.size());
    std::vector<std::vector<StatePiece>> kinds(states + 1);
    for_runs(offload::Access::read, has_master ? Touch::none : Touch::read, [&](const Run& run) {
        const ElementRun own = buckets_[run.bucket].bucket.share_of(comm_.rank(), comm_.world());
        const auto share = static_cast<std::size_t>(share_of(run.bucket));
        const std::size_t skipped = replicated ? share * static_cast<std::size_t>(comm_.rank()) : 0;
        for (std::size_t kind = 0; kind <= states; ++kind) {
            const std::span<Kept> values = kind == 0 ? run.weight : run.state[kind - 1];
            std::span<float> shown;
            if constexpr (shown_in_place) {
                shown = values.subspan(skipped, share);
            } else {
                std::vector<float>& copy = shown_[kind * buckets_.size() + run.bucket];
                copy.resize(share);
                const std::span<Kept> from = replicated ? values.subspan(skipped, share) : values;
                std::transform(from.begin(), from.end(), copy.begin() + run.begin,
                               [](Kept value) { return detail::as_float(value); });
                shown = copy;
            }
            const std::string_view name = kind == 0 ? std::string_view{"weight"} : Rule::state_names[kind - 1];
            if (!run.last || own.numel == 0) continue;
            kinds[kind].push_back({name, own.begin, shown.first(static_cast<std::size_t>(own.numel))});
        }
    });
    if constexpr (any_disk) {
        if (disk_failure_) std::rethrow_exception(disk_failure_);
    }
    if constexpr (averages) {
        std::vector<StatePiece>& average = kinds.emplace_back();
        for (const BucketState& b : buckets_) {
            const ElementRun own = b.bucket.share_of(comm_.rank(), comm_.world());
            if (own.numel == 0) continue;
            average.push_back({average_kind, own.begin,
                               detail::elements<float>(b.average_S).first(static_cast<std::size_t>(own.numel))});
        }
    }
    std::vector<StatePiece> pieces;
    for (const auto& kind : kinds) pieces.insert(pieces.end(), kind.begin(), kind.end());
    return pieces;
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::state_restored() {
    check_weights_are_in("state_restored()");
    const at::NoGradGuard no_grad;
    micro_batch_ = 0;
    const bool anew = !shown_.empty();
    for_runs(anew ? offload::Access::write : offload::Access::read, has_master || anew ? Touch::write : Touch::read,
             [&](const Run& run) {
        const auto share = static_cast<std::size_t>(share_of(run.bucket));
        const auto rank = static_cast<std::size_t>(comm_.rank());
        for (std::size_t kind = 0; kind <= states; ++kind) {
            const std::span<Kept> values = kind == 0 ? run.weight : run.state[kind - 1];
            if (!shown_.empty()) {
                const std::vector<float>& from = shown_[kind * buckets_.size() + run.bucket];
                const std::span<Kept> to = replicated ? values.subspan(share * rank, share) : values;
                std::transform(from.begin() + run.begin, from.begin() + run.begin + static_cast<std::ptrdiff_t>(to.size()),
                               to.begin(), [](float value) { return detail::kept_from<Kept>(value); });
            }
            if constexpr (replicated) {
                comm_.all_gather(std::as_bytes(values.subspan(share * rank, share)), std::as_writable_bytes(values));
            }
        }
        if constexpr (has_master) {
            const std::span<Element> rounded = parameters_of_run(run);
            std::transform(run.weight.begin(), run.weight.end(), rounded.begin(),
                           [](Kept value) { return detail::kept_from<Element>(value); });
        }
        if (run.last) gather_weights(buckets_[run.bucket]);
    });
    shown_.clear();
    end_pass();
    weights_changed();
}

template <class Setup, comm::Communicator Comm>
std::map<std::string, double> Engine<Setup, Comm>::scalars() const {
    if constexpr (!scales_loss) return {};
    const optim::LossScale::State& state = loss_scale_.state();
    return {{"loss_scale", state.scale},
            {"loss_scale_iteration", static_cast<double>(state.iteration)},
            {"loss_scale_last_overflow", static_cast<double>(state.last_overflow)},
            {"loss_scale_hysteresis_left", static_cast<double>(state.hysteresis_left)}};
}

template <class Setup, comm::Communicator Comm>
void Engine<Setup, Comm>::restore_scalars(const std::map<std::string, double>& values) {
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
