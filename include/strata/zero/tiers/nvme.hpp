#pragma once
// strata/zero/tiers/nvme.hpp - what the tier Nvme brings: state in a file of windows, and shards in another.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/offload/swap_file.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/offload/windows.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tier_bytes.hpp>
#include <strata/zero/tiers/in_memory.hpp>

namespace strata {

namespace zero::detail {

/// A file of windows, a few of them in memory, counted while it lives. Local.
class CountedWindows {
public:
    ///   bytes  of them on the disk, as they are counted
    CountedWindows(const TierContext& context, std::int64_t bytes, std::vector<offload::WindowArrays> windows,
                   offload::PipelineOptions options)
        : meter_{context.meter()},
          kind_{context.kind()},
          bytes_{bytes},
          pipeline_{context.folder(), context.name(), std::move(windows), std::move(options)} {
        count(1);
    }
    CountedWindows(const CountedWindows&) = delete;
    CountedWindows& operator=(const CountedWindows&) = delete;
    ~CountedWindows() { count(-1); }

    [[nodiscard]] offload::WindowPipeline& operator*() noexcept { return pipeline_; }
    [[nodiscard]] const offload::WindowPipeline& operator*() const noexcept { return pipeline_; }

private:
    void count(std::int64_t sign) noexcept {
        meter_.add(kind_, Place::disk, sign * bytes_);
        meter_.add(MemoryKind::buffers, Place::host, sign * static_cast<std::int64_t>(pipeline_.buffer_bytes()));
    }
    MemoryMeter& meter_;
    MemoryKind kind_;
    std::int64_t bytes_;
    offload::WindowPipeline pipeline_;
};

}  // namespace zero::detail

/// A run is a window. From a disk's first failure on every call throws it.
template <class Kept, std::size_t states, bool has_master>
class Nvme::state {
public:
    static constexpr Place memory = Place::host;
    static constexpr bool fails_alone = true;
    static constexpr bool wants_folder = true;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        return PlaceBytes::at(Place::disk, zero::sum_of(numels) * static_cast<std::int64_t>(arrays * sizeof(Kept)));
    }

    /// With the alignment of arrays. Throws what offload::plan_buffers() throws.
    static zero::TierBytes takes(std::span<const std::int64_t> numels, const zero::TierRoom& room) {
        const auto windows = windows_of(runs_of(numels, room));
        const auto plan = offload::WindowPipeline::plan(windows, room.budget_bytes, room.free_bytes);
        return {PlaceBytes::at(Place::disk, on_disk(windows)),
                PlaceBytes::at(Place::host, static_cast<std::int64_t>(plan.total()))};
    }

    /// Throws what WindowPipeline throws.
    void make(const zero::TierContext& context, std::vector<std::int64_t> numels) {
        runs_ = runs_of(numels, {context.windows().budget_bytes, offload::free_host_memory()});
        std::vector<offload::WindowArrays> windows = windows_of(runs_);
        const std::int64_t bytes = on_disk(windows);
        windows_.emplace(context, bytes, std::move(windows), context.windows());
    }
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        at::Tensor weight;
        (**windows_).run(offload::Access::write, [&](const offload::Window& window) {
            const offload::WindowRun& place = runs_[window.index()];
            if (place.begin == 0) {
                weight.reset();  // before the next one is made
                weight = weight_of(place.bucket);
            }
            zero::start_run(view(window), initial, weight);
        });
    }
    template <class Call>
    void run(offload::Access access, Call&& call) {
        (**windows_).run(access, [&](const offload::Window& window) { call(view(window)); });
    }
    void prefetch() {
        try {
            (**windows_).prefetch();
        } catch (const Error&) {  // run() throws it again
        }
    }
    template <class Call>
    void run_bucket(std::size_t bucket, offload::Access access, Call&& call) {
        (**windows_).run(first_of(bucket), first_of(bucket + 1), access, [&](const offload::Window& window) {
            call(view(window));
        });
    }
    void prefetch_bucket(std::size_t bucket) {
        try {
            for (std::size_t i = first_of(bucket); i < first_of(bucket + 1) && (**windows_).prefetch(i);) ++i;
        } catch (const Error&) {  // run_bucket() throws it again
        }
    }

private:
    using Run = zero::StateRun<Kept, states>;
    static constexpr std::size_t arrays = states + (has_master ? 1 : 0);

    static std::vector<offload::WindowRun> runs_of(std::span<const std::int64_t> numels, const zero::TierRoom& room) {
        const std::size_t window = offload::window_bytes(room.budget_bytes, room.free_bytes, 0);
        return offload::cut_windows(numels, static_cast<std::int64_t>(window / (arrays * sizeof(Kept))));
    }
    static std::vector<offload::WindowArrays> windows_of(const std::vector<offload::WindowRun>& runs) {
        std::vector<offload::WindowArrays> windows;
        for (const offload::WindowRun& run : runs)
            windows.emplace_back(arrays, static_cast<std::size_t>(run.numel) * sizeof(Kept));
        return windows;
    }
    static std::int64_t on_disk(const std::vector<offload::WindowArrays>& windows) {
        std::int64_t bytes = 0;
        for (const auto& one : windows) bytes += static_cast<std::int64_t>(offload::payload_of(one));
        return bytes;
    }
    /// The number of a bucket's first window.
    [[nodiscard]] std::size_t first_of(std::size_t bucket) const {
        const auto before = [](const offload::WindowRun& run, std::size_t wanted) { return run.bucket < wanted; };
        return static_cast<std::size_t>(std::lower_bound(runs_.begin(), runs_.end(), bucket, before) - runs_.begin());
    }
    [[nodiscard]] Run view(const offload::Window& window) const {
        const std::size_t i = window.index();
        Run run{.bucket = runs_[i].bucket, .begin = runs_[i].begin, .numel = runs_[i].numel, .weight = {}, .state = {}};
        run.last = i + 1 == runs_.size() || runs_[i + 1].bucket != run.bucket;
        for (std::size_t k = 0; k < states; ++k) run.state[k] = window.array<Kept>(k);
        if constexpr (has_master) run.weight = window.array<Kept>(states);
        return run;
    }

    std::vector<offload::WindowRun> runs_;
    std::optional<zero::detail::CountedWindows> windows_;
};

/// A window is a shard.
template <class Element>
class Nvme::shards {
public:
    static constexpr bool fails_alone = true;
    static constexpr bool wants_folder = true;
    static constexpr bool gathers_alone = true;
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        return PlaceBytes::at(Place::disk, zero::sum_of(numels) * static_cast<std::int64_t>(sizeof(Element)));
    }

    static zero::TierBytes takes(std::span<const std::int64_t> numels, const zero::TierRoom& room) {
        if (numels.empty()) return {};
        const auto windows = windows_of(numels);
        const auto plan = offload::WindowPipeline::plan(windows, budget_of(windows, room), room.free_bytes);
        return {bytes(numels), PlaceBytes::at(Place::host, static_cast<std::int64_t>(plan.total()))};
    }

    /// Throws what WindowPipeline throws.
    void make(const zero::TierContext& context, std::span<const std::int64_t> numels) {
        if (numels.empty()) return;
        std::vector<offload::WindowArrays> windows = windows_of(numels);
        offload::PipelineOptions chosen = context.windows();
        chosen.budget_bytes = budget_of(windows, {chosen.budget_bytes, offload::free_host_memory()});
        open_.resize(windows.size());
        windows_.emplace(context, bytes(numels)[Place::disk], std::move(windows), std::move(chosen));
    }
    [[nodiscard]] std::span<Element> open(std::size_t shard, offload::Access access) {
        open_[shard].emplace((**windows_).acquire(shard, access));
        return open_[shard]->template array<Element>(0);
    }
    void close(std::size_t shard, offload::Access access) {
        (**windows_).release(*open_[shard], access);
        open_[shard].reset();
    }
    void read_ahead(std::size_t shard, offload::Access access) noexcept {
        if (access == offload::Access::write) return;
        try {
            (**windows_).prefetch(shard);
        } catch (const Error&) {  // open() throws it again
        }
    }
    [[nodiscard]] std::size_t count() const noexcept { return open_.size(); }
    [[nodiscard]] std::size_t reads_ahead() const noexcept { return windows_ ? (**windows_).buffer_count() - 1 : 0; }
    [[nodiscard]] Place memory_of(std::size_t) const noexcept { return Place::host; }

private:
    static std::vector<offload::WindowArrays> windows_of(std::span<const std::int64_t> numels) {
        std::vector<offload::WindowArrays> windows;
        for (const std::int64_t numel : numels) windows.push_back({static_cast<std::size_t>(numel) * sizeof(Element)});
        return windows;
    }
    /// Where none is given: one window in use, one on its way out, two on their way in; less on a small node.
    static std::size_t budget_of(const std::vector<offload::WindowArrays>& windows, const zero::TierRoom& room) {
        if (room.budget_bytes > 0) return room.budget_bytes;
        std::size_t largest = 0;
        for (const auto& one : windows)
            largest = std::max(largest, offload::SwapFile::bytes_of(offload::payload_of(one)));
        return largest * std::clamp<std::uint64_t>(room.free_bytes / 8 / largest, offload::fewest_buffers, 4);
    }

    std::optional<zero::detail::CountedWindows> windows_;
    std::vector<std::optional<offload::Window>> open_;
};

}  // namespace strata
