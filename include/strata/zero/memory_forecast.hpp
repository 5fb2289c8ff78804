#pragma once
// strata/zero/memory_forecast.hpp - forecast_memory(): the bytes that an engine would take on a rank, without one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/averages/ema.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/engine_settings.hpp>
#include <strata/zero/parts/exceptions.hpp>
#include <strata/zero/parts/formats.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/gradient_tier.hpp>
#include <strata/zero/parts/pass_peaks.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/sharded_average.hpp>
#include <strata/zero/parts/state_in_formats.hpp>
#include <strata/zero/parts/take_over.hpp>
#include <strata/zero/parts/trained_model.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tier_bytes.hpp>
#include <strata/zero/tiers/cpu.hpp>
#include <strata/zero/tiers/device.hpp>
#include <strata/zero/tiers/nvme.hpp>
#include <strata/zero/tiers/split.hpp>

namespace strata::zero {

/// Bytes on one rank, by what they hold and where they are. Shares have equal sizes, so that it is any rank.
struct MemoryForecast {
    /// What Engine::memory() shows when the engine has been made, and at most in a step behind the first one, where reductions of
    /// gradients are slower than backward. By MemoryKind.
    std::array<PlaceBytes, memory_kind_count> made{};
    std::array<PlaceBytes, memory_kind_count> most{};
    std::int64_t frozen = 0;  ///< of whole frozen parameters on the device, which no meter counts
    std::vector<std::string>
        inexact{};  ///< what a tier of the program's own keeps without saying all that it takes: "gradients"

    [[nodiscard]] const PlaceBytes& made_of(MemoryKind kind) const noexcept {
        return made[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] const PlaceBytes& most_of(MemoryKind kind) const noexcept {
        return most[static_cast<std::size_t>(kind)];
    }
    /// Of all kinds, frozen parameters included.
    [[nodiscard]] PlaceBytes made_in_all() const noexcept { return sum(made); }
    [[nodiscard]] PlaceBytes most_in_all() const noexcept { return sum(most); }

private:
    [[nodiscard]] PlaceBytes sum(const std::array<PlaceBytes, memory_kind_count>& kinds) const noexcept {
        PlaceBytes all = PlaceBytes::at(Place::device, frozen);
        for (const PlaceBytes& kind : kinds) all = all + kind;
        return all;
    }
};

/// For whom a forecast is made.
struct ForecastFor {
    int world = 1;
    /// Of the host's memory, where the size of buffers for a disk is left to the engine; 0: what is free now.
    std::uint64_t free_host_bytes = 0;
};

/// A parameter of which nothing is known but its shape: it has no memory, and its values cannot be read. For forecast_memory().
///
///   unit  the number of its unit, from 0 in the order of the model; -1: outside of units
[[nodiscard]] Parameter outlined_parameter(std::string name, const std::vector<std::int64_t>& sizes, std::int32_t unit,
                                           bool is_trained = true);

namespace detail {

/// Sums of what classes of tiers say.
class ForecastSums {
public:
    explicit ForecastSums(MemoryForecast& forecast) : forecast_{forecast} {}
    void add(MemoryKind kind, Place place, std::int64_t bytes) {
        forecast_.made[static_cast<std::size_t>(kind)][place] += bytes;
    }
    void add(MemoryKind kind, const PlaceBytes& bytes) {
        PlaceBytes& all = forecast_.made[static_cast<std::size_t>(kind)];
        all = all + bytes;
    }
    void add(MemoryKind kind, const TierBytes& bytes) {
        add(kind, bytes.kept);
        add(MemoryKind::buffers, bytes.buffers);
        if (!bytes.is_exact) forecast_.inexact.emplace_back(name_of(kind));
    }

private:
    MemoryForecast& forecast_;
};

/// What is no tier's: whole parameters and gradients, and the peaks of a step.
void forecast_the_rest(MemoryForecast& forecast, const Buckets& buckets, const std::vector<Parameter>& frozen,
                       const std::vector<FrozenUnit>& frozen_units, const PassFacts& facts);

}  // namespace detail

/// The memory of Engine<Setup, ...> for a model, by the code that such an engine lays its buckets out with and by what the classes of its
/// tiers say; nothing is allocated. A class that says only what it keeps (zero::SaysWhatItTakes) is counted by that, and named in `inexact`.
///
/// Not in it: activations and what libraries allocate; while an engine begins, the bucket that it takes over; on a GPU, what is on its way
/// across the bus, of one bucket at a time.
///
///   Setup       Setup<Policies...>
///   Compute     where the engine computes: CpuDevice, or one with a memory of its own
///   parameters  parameters_of(model), made in_units() or not; or outlined_parameter()s of a model that there is not
///   options     as the engine would have them; options.tiers.nvme_path is not looked at
/// Local. Throws bad_value, bad_parameter and no_parameters as the engine would.
template <class Setup, ComputeDevice Compute = CpuDevice>
[[nodiscard]] MemoryForecast forecast_memory(std::vector<Parameter> parameters, const ForecastFor& whom,
                                             engine_options_t<Setup> options = {}) {
    using Numerics = typename Setup::precision;
    using Formats = FormatsOf<Numerics>;
    using Settings = EngineSettings<Setup>;
    using State = typename detail::StateOfPrecision<typename Setup::offload::tier, Numerics,
                                                    optim::state_count_v<typename Setup::optimizer::rule>>::type;
    using Shards = detail::shards_on_t<typename Setup::parameter_offload::tier, typename Numerics::element>;
    using Store = typename detail::StoreOfSetup<Setup>::type;

    options = detail::checked(std::move(options));
    const Settings settings{options};
    settings.check();
    PassFacts facts{.gradients = settings.gradients(whom.world),
                    .dtype = Formats::dtype(false),
                    .excepted_dtype = Formats::dtype(true),
                    .device_is_host = Compute::is_host,
                    .prefetch_bytes = options.prefetch_bucket_bytes,
                    .max_live_numel = options.max_live_parameters,
                    .model = with_exceptions(std::move(parameters), options, Formats::has_exceptions)};
    TrainedModel model;
    model.frozen = exceptions_last(facts.model);
    model.trained = detail::split_off_frozen(model.frozen, at::kCPU, options.computes_only);
    model.group_of.resize(model.trained.size());
    require_units<Setup>(model, options.computes_only);
    const bool shards_units =
        Settings::sharded.parameters && (Settings::template gathers_alone<Shards> || whom.world > 1);
    const Buckets buckets{model.trained, model.group_of, settings.buckets(shards_units, 0, whom.world)};
    const FrozenFormats formats{facts.dtype, facts.excepted_dtype, Settings::frozen_format};
    const auto frozen_units = shards_units ? frozen_units_of(model.frozen, formats) : std::vector<FrozenUnit>{};

    MemoryForecast forecast;
    detail::ForecastSums sums{forecast};
    const std::uint64_t free_bytes = whom.free_host_bytes > 0 ? whom.free_host_bytes : offload::free_host_memory();
    const auto room = [&](const offload::PipelineOptions& windows) {
        return TierRoom{windows.budget_bytes, free_bytes};
    };
    if constexpr (Formats::has_exceptions)
        sums.add(MemoryKind::state,
                 State::takes(buckets.part_numels(), buckets.unexcepted(), room(options.tiers.state)));
    else
        sums.add(MemoryKind::state, taken_by<State>(buckets.part_numels(), room(options.tiers.state)));
    if (const auto average = made_average<typename Setup::averaging, typename Numerics::kept>(options))
        sums.add(MemoryKind::state, average->bytes(buckets.share_numels()));

    const auto pool = std::make_shared<detail::BufferPool>();
    Store shards{*pool};
    const ShardSizes sizes = shard_sizes(buckets, frozen_units);
    sort_shards<Setup>(shards, sizes);
    sums.add(MemoryKind::parameters, shards.takes(sizes.numels, room(options.tiers.units)));
    using Gradients = GradientTier<typename Setup::gradient_offload::tier, Numerics>;
    if (const auto on_tier = Gradients::store(options.gradient_accumulation_steps, buckets, *pool))
        sums.add(MemoryKind::gradients, on_tier->takes(buckets.share_numels(), room(options.tiers.gradients)));
    detail::forecast_the_rest(forecast, buckets, model.frozen, frozen_units, facts);
    return forecast;
}

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/memory_forecast.ipp>
#endif
