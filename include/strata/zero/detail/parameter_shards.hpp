#pragma once
// strata/zero/detail/parameter_shards.hpp - where this rank's shares of the parameters live between the uses of a unit.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero::detail {

/// Shards in memory, of the host or of the device.
///
/// Both kinds: a shard is opened before it is read or written and closed after it; the spans are valid in between. One
/// thread at a time.
template <class Element>
class ShardsInMemory {
public:
    static constexpr bool on_disk = false;
    explicit ShardsInMemory(BufferPool& pool, Place place) : pool_{pool}, place_{place} {}

    /// numels  of every shard
    void make(std::span<const std::int64_t> numels, offload::SwapFolder*, const offload::PipelineOptions&) {
        for (const std::int64_t numel : numels) {
            shards_.push_back(pool_.empty(numel, dtype_v<Element>, Held::parameters, place_));
        }
    }
    [[nodiscard]] std::span<Element> open(std::size_t shard, offload::Access) { return elements<Element>(shards_[shard]); }
    void close(std::size_t, offload::Access) {}
    void read_ahead(std::size_t, offload::Access = offload::Access::read) noexcept {}
    [[nodiscard]] std::size_t count() const noexcept { return shards_.size(); }
    [[nodiscard]] std::size_t reads_ahead() const noexcept { return 0; }

private:
    BufferPool& pool_;
    Place place_;
    std::vector<at::Tensor> shards_;
};

/// Shards in a file, a few of them in memory; a window is a shard.
template <class Element>
class ShardsOnDisk {
public:
    static constexpr bool on_disk = true;
    explicit ShardsOnDisk(BufferPool& pool, Place) : pool_{pool} {}
    ShardsOnDisk(const ShardsOnDisk&) = delete;
    ShardsOnDisk& operator=(const ShardsOnDisk&) = delete;
    ~ShardsOnDisk() {
        if (pipeline_) count(-1);
    }

    /// Makes the file. Throws what WindowPipeline throws.
    void make(std::span<const std::int64_t> numels, offload::SwapFolder* folder, const offload::PipelineOptions& options) {
        std::vector<offload::WindowArrays> windows;
        std::size_t largest = 0;
        for (const std::int64_t numel : numels) {
            const std::size_t bytes = static_cast<std::size_t>(numel) * sizeof(Element);
            windows.push_back({bytes});
            largest = std::max(largest, offload::SwapFile::bytes_of(offload::payload_of({bytes})));
            bytes_on_disk_ += static_cast<std::int64_t>(bytes);
        }
        if (windows.empty()) return;
        offload::PipelineOptions chosen = options;
        if (chosen.budget_bytes == 0) {  // one in use, one on its way out, two on their way in; less on a small node
            const std::uint64_t spare = offload::free_host_memory() / 8;
            chosen.budget_bytes = largest * std::clamp<std::uint64_t>(spare / largest, offload::fewest_buffers, 4);
        }
        open_.resize(windows.size());
        pipeline_ = std::make_unique<offload::WindowPipeline>(*folder, "parameters", std::move(windows), std::move(chosen));
        count(1);
    }
    [[nodiscard]] std::span<Element> open(std::size_t shard, offload::Access access) {
        open_[shard].emplace(pipeline_->acquire(shard, access));
        return open_[shard]->template array<Element>(0);
    }
    void close(std::size_t shard, offload::Access access) {
        pipeline_->release(*open_[shard], access);
        open_[shard].reset();
    }
    /// Starts reading a shard that is opened next with `access`, if a buffer is free. A failure is left for open().
    void read_ahead(std::size_t shard, offload::Access access = offload::Access::read) noexcept {
        if (access == offload::Access::write) return;
        try {
            pipeline_->prefetch(shard);
        } catch (const Error&) {  // open() throws it again
        }
    }
    [[nodiscard]] std::size_t count() const noexcept { return open_.size(); }
    /// How many shards may be asked for ahead of the one in use.
    [[nodiscard]] std::size_t reads_ahead() const noexcept { return pipeline_ ? pipeline_->buffer_count() - 1 : 0; }

private:
    void count(std::int64_t sign) noexcept {
        pool_.meter().add(Held::parameters, Place::disk, sign * bytes_on_disk_);
        pool_.meter().add(Held::buffers, Place::host, sign * static_cast<std::int64_t>(pipeline_->buffer_bytes()));
    }

    BufferPool& pool_;
    std::int64_t bytes_on_disk_ = 0;
    std::unique_ptr<offload::WindowPipeline> pipeline_;
    std::vector<std::optional<offload::Window>> open_;
};

}  // namespace strata::zero::detail
