#pragma once
// strata/zero/detail/kept_state.hpp - where master weights and the rule's states live, and the pass over them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>

#include <strata/offload/host_memory.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/offload/windows.hpp>
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
    std::span<Kept> weight;  ///< the master; where there is none, the parameters themselves
    std::array<std::span<Kept>, states> state;
    bool last = true;        ///< of its bucket
};

/// What a StateOnDisk needs to know; StateInMemory ignores it.
struct DiskPlace {
    std::filesystem::path disk;
    std::string run_id;
    int rank = 0;
    offload::PipelineOptions pipeline{};
};

/// Host memory beside the parameters: one run a bucket.
template <class Kept, std::size_t states>
class StateInMemory {
public:
    using Run = StateRun<Kept, states>;

    /// The next bucket: its master, or a view of its parameters. Kept elements.
    void add(const at::Tensor& weight) { buckets_.push_back({weight, {}}); }

    /// After all buckets. `initial` is what the states start with.
    void start(const std::array<float, states>& initial, const DiskPlace&) {
        for (Arrays& arrays : buckets_) {
            for (std::size_t k = 0; k < states; ++k) arrays.state[k] = at::full_like(arrays.weight, initial[k]);
        }
    }

    /// Calls `call` with every run, in the order of buckets and elements.
    template <class Call>
    void run(offload::Access, Call&& call) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const Arrays& arrays = buckets_[i];
            Run found{.bucket = i, .numel = arrays.weight.numel(), .weight = elements<Kept>(arrays.weight), .state = {}};
            for (std::size_t k = 0; k < states; ++k) found.state[k] = elements<Kept>(arrays.state[k]);
            call(found);
        }
    }
    void prefetch() {}

private:
    struct Arrays {
        at::Tensor weight;
        std::array<at::Tensor, states> state;
    };
    std::vector<Arrays> buckets_;
};

/// A file of windows. Masters live there too; parameters that are the weights themselves stay where they are.
template <class Kept, std::size_t states, bool has_master>
class StateOnDisk {
public:
    using Run = StateRun<Kept, states>;

    void add(const at::Tensor& weight) { weights_.push_back(weight); }

    /// Makes the file and writes the first values; masters leave the memory. Local. Throws what SwapFolder and
    /// WindowPipeline throw.
    void start(const std::array<float, states>& initial, const DiskPlace& place) {
        constexpr std::size_t arrays = states + (has_master ? 1 : 0);
        static_assert(arrays > 0);
        std::vector<std::int64_t> numels;
        for (const at::Tensor& weight : weights_) numels.push_back(weight.numel());
        const std::size_t bytes =
            offload::window_bytes(place.pipeline.budget_bytes, offload::free_host_memory(), 0);
        runs_ = offload::cut_windows(numels, static_cast<std::int64_t>(bytes / (arrays * sizeof(Kept))));
        std::vector<offload::WindowArrays> windows;
        for (const offload::WindowRun& run : runs_) {
            windows.emplace_back(arrays, static_cast<std::size_t>(run.numel) * sizeof(Kept));
        }
        folder_ = std::make_unique<offload::SwapFolder>(place.disk, place.run_id, place.rank);
        pipeline_ = std::make_unique<offload::WindowPipeline>(*folder_, "optimizer", std::move(windows), place.pipeline);
        pipeline_->run(offload::Access::write, [&](const offload::Window& window) {
            const Run run = view(window);
            if constexpr (has_master) {
                const std::span<Kept> from = weight_of(runs_[window.index()]);
                std::copy(from.begin(), from.end(), run.weight.begin());
            }
            for (std::size_t k = 0; k < states; ++k) {
                std::fill(run.state[k].begin(), run.state[k].end(), kept_from<Kept>(initial[k]));
            }
        });
        if constexpr (has_master) weights_.clear();
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
    [[nodiscard]] std::span<Kept> weight_of(const offload::WindowRun& run) const {
        return elements<Kept>(weights_[run.bucket])
            .subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.numel));
    }
    [[nodiscard]] Run view(const offload::Window& window) const {
        const std::size_t i = window.index();
        Run run{.bucket = runs_[i].bucket, .begin = runs_[i].begin, .numel = runs_[i].numel, .weight = {}, .state = {}};
        run.last = i + 1 == runs_.size() || runs_[i + 1].bucket != run.bucket;
        for (std::size_t k = 0; k < states; ++k) run.state[k] = window.array<Kept>(k);
        if constexpr (has_master) {
            run.weight = window.array<Kept>(states);
        } else {
            run.weight = weight_of(runs_[i]);
        }
        return run;
    }

    std::vector<at::Tensor> weights_;
    std::vector<offload::WindowRun> runs_;
    std::unique_ptr<offload::SwapFolder> folder_;
    std::unique_ptr<offload::WindowPipeline> pipeline_;  // ends before its folder
};

}  // namespace strata::zero::detail
