#pragma once
// strata/zero/detail/kept_state.hpp - where master weights and the rule's states live, and the pass over them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/offload/windows.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero::detail {

/// A run of elements of one bucket that is updated as one.
///
///   Kept    what weights and states are kept in
///   states  how many states an element has
template <class Kept, std::size_t states>
struct StateRun {
    std::size_t bucket = 0;
    std::int64_t begin = 0;  ///< in the rank's share of the bucket; at stage 0 in the bucket
    std::int64_t numel = 0;
    std::span<Kept> weight;  ///< the master; where there is none, the engine puts the parameters themselves here
    std::array<std::span<Kept>, states> state;
    bool last = true;        ///< of its bucket
};

/// Memory of the host or of the device: one run a bucket.
///
/// Both kinds: make() and then fill() once, in the constructor of an engine.
template <class Kept, std::size_t states, bool has_master>
class StateInMemory {
public:
    using Run = StateRun<Kept, states>;
    StateInMemory(BufferPool& pool, Place place) : pool_{pool}, place_{place} {}

    /// numels  of this rank's part of every bucket
    void make(std::vector<std::int64_t> numels, offload::SwapFolder*, const offload::PipelineOptions&) {
        numels_ = std::move(numels);
    }

    /// Sets the states to `initial`, and the masters to what `weight_of` returns for each bucket in turn: fp32.
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        for (std::size_t i = 0; i < numels_.size(); ++i) {
            const at::Tensor weight = weight_of(i);
            Arrays& arrays = buckets_.emplace_back();
            if constexpr (has_master) arrays.master = empty(i).copy_(weight);
            for (std::size_t k = 0; k < states; ++k) arrays.state[k] = empty(i).fill_(initial[k]);
        }
    }

    /// Calls `call` with every run, in the order of buckets and elements. Where there is no master `weight` is empty.
    template <class Call>
    void run(offload::Access, Call&& call) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const Arrays& arrays = buckets_[i];
            Run found{.bucket = i, .numel = numels_[i], .weight = {}, .state = {}};
            if constexpr (has_master) found.weight = elements<Kept>(arrays.master);
            for (std::size_t k = 0; k < states; ++k) found.state[k] = elements<Kept>(arrays.state[k]);
            call(found);
        }
    }
    void prefetch() {}

private:
    struct Arrays {
        at::Tensor master;
        std::array<at::Tensor, states> state;
    };
    [[nodiscard]] at::Tensor empty(std::size_t bucket) {
        return pool_.empty(numels_[bucket], dtype_v<Kept>, Held::state, place_);
    }

    BufferPool& pool_;
    Place place_;
    std::vector<std::int64_t> numels_;
    std::vector<Arrays> buckets_;
};

/// A file of windows.
template <class Kept, std::size_t states, bool has_master>
class StateOnDisk {
public:
    using Run = StateRun<Kept, states>;
    StateOnDisk(BufferPool& pool, Place) : pool_{pool} {}
    StateOnDisk(const StateOnDisk&) = delete;
    StateOnDisk& operator=(const StateOnDisk&) = delete;
    ~StateOnDisk() {
        if (pipeline_) count(-1);
    }

    /// Makes the file. Local. Throws what WindowPipeline throws.
    void make(std::vector<std::int64_t> numels, offload::SwapFolder* folder, const offload::PipelineOptions& options) {
        static_assert(arrays > 0);
        const std::size_t bytes = offload::window_bytes(options.budget_bytes, offload::free_host_memory(), 0);
        runs_ = offload::cut_windows(numels, static_cast<std::int64_t>(bytes / (arrays * sizeof(Kept))));
        std::vector<offload::WindowArrays> windows;
        for (const offload::WindowRun& run : runs_) {
            windows.emplace_back(arrays, static_cast<std::size_t>(run.numel) * sizeof(Kept));
            bytes_on_disk_ += static_cast<std::int64_t>(offload::payload_of(windows.back()));
        }
        pipeline_ = std::make_unique<offload::WindowPipeline>(*folder, "optimizer", std::move(windows), options);
        count(1);
    }

    /// As in StateInMemory. Throws the disk's failure, from then on always.
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        at::Tensor weight;
        pipeline_->run(offload::Access::write, [&](const offload::Window& window) {
            const offload::WindowRun& place = runs_[window.index()];
            if (place.begin == 0) {
                weight.reset();  // before the next one is made
                weight = weight_of(place.bucket);
            }
            const Run run = view(window);
            if constexpr (has_master) {
                const auto from = elements<Kept>(weight).subspan(static_cast<std::size_t>(place.begin),
                                                                 static_cast<std::size_t>(place.numel));
                std::copy(from.begin(), from.end(), run.weight.begin());
            }
            for (std::size_t k = 0; k < states; ++k) {
                std::fill(run.state[k].begin(), run.state[k].end(), kept_from<Kept>(initial[k]));
            }
        });
    }

    /// As in StateInMemory; a run is a window. Throws the disk's failure, from then on always.
    template <class Call>
    void run(offload::Access access, Call&& call) {
        pipeline_->run(access, [&](const offload::Window& window) { call(view(window)); });
    }

    /// Starts reading what the next pass begins with. A failure is left for that pass.
    void prefetch() {
        try {
            pipeline_->prefetch();
        } catch (const Error&) {  // run() throws it again
        }
    }

private:
    static constexpr std::size_t arrays = states + (has_master ? 1 : 0);

    [[nodiscard]] Run view(const offload::Window& window) const {
        const std::size_t i = window.index();
        Run run{.bucket = runs_[i].bucket, .begin = runs_[i].begin, .numel = runs_[i].numel, .weight = {}, .state = {}};
        run.last = i + 1 == runs_.size() || runs_[i + 1].bucket != run.bucket;
        for (std::size_t k = 0; k < states; ++k) run.state[k] = window.array<Kept>(k);
        if constexpr (has_master) run.weight = window.array<Kept>(states);
        return run;
    }
    void count(std::int64_t sign) noexcept {
        pool_.meter().add(Held::state, Place::disk, sign * bytes_on_disk_);
        pool_.meter().add(Held::buffers, Place::host, sign * static_cast<std::int64_t>(pipeline_->buffer_bytes()));
    }

    BufferPool& pool_;
    std::vector<offload::WindowRun> runs_;
    std::int64_t bytes_on_disk_ = 0;
    std::unique_ptr<offload::WindowPipeline> pipeline_;
};

}  // namespace strata::zero::detail
