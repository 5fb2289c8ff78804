#pragma once
// strata/zero/parts/engine_works.hpp - EngineWorks: the parts of an engine, and what works on them.

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/communicator.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/non_finite.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/assembly.hpp>
#include <strata/zero/parts/average_swap.hpp>
#include <strata/zero/parts/backward_pass.hpp>
#include <strata/zero/parts/backward_update.hpp>
#include <strata/zero/parts/gradient_norm.hpp>
#include <strata/zero/parts/scaler.hpp>
#include <strata/zero/parts/state_transfer.hpp>
#include <strata/zero/parts/whole_model.hpp>
#include <strata/zero/state.hpp>

namespace strata::zero {

/// All of an engine but its counts. Made anew when other parameters are to be trained. Template arguments and errors are Engine's.
template <class Setup, comm::Communicator Comm, ComputeDevice Compute>
struct EngineWorks {
    using Parts = Assembly<Setup, Comm, Compute>;
    using Pass = typename Parts::Pass;
    /// Of weights without a master while the average is in their place.
    static constexpr Place aside =
        Compute::is_host && Parts::State::memory == Place::device ? Place::device : Place::host;
    using Swap = AverageSwap<Pass, aside>;

    EngineWorks(Comm& comm, std::vector<Parameter> parameters, typename Parts::Options options, Compute compute)
        : parts{comm, std::move(parameters), std::move(options), std::move(compute)} {}
    /// What comes after `before`, of which only the table of parts is of use then: Assembly.
    explicit EngineWorks(EngineWorks& before)
        : parts{before.parts}, non_finite{before.non_finite}, scaler{before.scaler} {
        if (early) early->begin_as(*before.early);
    }
    EngineWorks(const EngineWorks&) = delete;
    EngineWorks& operator=(const EngineWorks&) = delete;
    ~EngineWorks() { parts.exchange.close(); }  // before what its operations use goes

    Parts parts;
    NonFiniteSteps non_finite{parts.options.on_non_finite, parts.options.non_finite_limit};
    Scaler scaler{Setup::precision::scales_loss, parts.options.loss_scale};
    GradientNorm<Compute> norm{parts.exchange, *parts.pool, parts.compute};
    typename Parts::Update update{parts.pass,     parts.gradients, parts.weights, parts.buckets,
                                  parts.exchange, *parts.pool,     parts.compute};
    std::unique_ptr<BackwardUpdate> early = made_early();  ///< with Update<InBackward>
    StateTransfer<Pass> transfer{parts.pass,     kinds(),     parts.average.get(), parts.buckets,
                                 parts.exchange, *parts.pool, parts.failure};
    WholeModel<Pass> whole{parts.pass,    parts.gathers() ? parts.gathering.get() : nullptr,
                           parts.weights, parts.buckets,
                           parts.frozen,  parts.exchange,
                           parts.failure};
    std::optional<Swap> swap = made_swap();
    BackwardPass passes{
        {parts.exchange, parts.buckets, parts.gradients, parts.gathering.get(), scaler, parts.frozen, early.get()},
        [this] { parts.state.prefetch(); }};

private:
    [[nodiscard]] static std::vector<std::string_view> kinds() {
        std::vector<std::string_view> names{weight_kind};
        names.insert(names.end(), Parts::Rule::state_names.begin(), Parts::Rule::state_names.end());
        return names;
    }
    [[nodiscard]] std::unique_ptr<BackwardUpdate> made_early() {
        if constexpr (Parts::Settings::updates_in_backward && detail::GivesBuckets<typename Parts::State>) {
            const auto updates = [this](std::size_t bucket, const at::Tensor& sums) {
                update.run_bucket(bucket, sums);
                if constexpr (!Compute::is_host) {  // alone the next allocation comes on the same stream
                    if (!parts.exchange.alone()) parts.compute.finish();
                }
            };
            auto made = std::make_unique<BackwardUpdate>(
                parts.exchange, parts.buckets,
                BackwardUpdate::Calls{[this](const at::Tensor& sum_S) { return norm.squares_of(sum_S); },
                                      [this](std::size_t bucket) { parts.state.prefetch_bucket(bucket); }, updates});
            parts.gradients.hand_over(
                [at = made.get()](std::size_t bucket, const at::Tensor& gradient_B) { at->use(bucket, gradient_B); });
            return made;
        } else {
            return nullptr;
        }
    }
    [[nodiscard]] std::optional<Swap> made_swap() {
        if (parts.average == nullptr) return std::nullopt;
        return std::optional<Swap>{std::in_place, parts.pass,    *parts.average,
                                   parts.weights, parts.buckets, *parts.pool};
    }
};

}  // namespace strata::zero
