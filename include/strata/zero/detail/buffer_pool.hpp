#pragma once
// strata/zero/detail/buffer_pool.hpp - memory of an engine's tensors: counted, and used again.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/offload/host_arena.hpp>
#include <strata/zero/memory_meter.hpp>

namespace strata::zero::detail {

/// Gives out memory for tensors and keeps what comes back for the next of the same size: buckets and units come and go
/// every pass, and fresh pages cost more than their copy. What is given out and what waits are together never more than
/// has been given out at once.
///
/// Where the device is not the CPU, Place::device is memory of libtorch's own allocator, which keeps what comes back by
/// itself, and Place::host is made known to the device.
///
/// Outlives its tensors by itself: each holds a reference. Thread-safe.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
public:
    explicit BufferPool(at::Device device = at::kCPU, offload::Pinning pinning = {})
        : device_{device}, pinning_{std::move(pinning)} {}
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;
    ~BufferPool();

    /// Memory aligned to a cache line, contents undefined. Throws std::bad_alloc, and what the device's allocator throws.
    [[nodiscard]] at::DataPtr take(std::size_t bytes, MemoryKind kind, Place place);

    /// A contiguous tensor of one dimension, contents undefined.
    [[nodiscard]] at::Tensor empty(std::int64_t numel, at::ScalarType dtype, MemoryKind kind, Place place);
    [[nodiscard]] at::Tensor zeros(std::int64_t numel, at::ScalarType dtype, MemoryKind kind, Place place);

    /// Gives what waits here, and what free() has kept for itself, back to the system. Takes milliseconds.
    void trim() noexcept;

    [[nodiscard]] MemoryMeter& meter() noexcept { return meter_; }

    /// Where memory of this place is; the CPU for Place::host and Place::disk, whose memory is the buffers before it.
    [[nodiscard]] at::Device device_of(Place place) const noexcept {
        return place == Place::device ? device_ : at::Device{at::kCPU};
    }

private:
    struct Block;
    struct DeviceBlock;
    static void give_back(void* block) noexcept;
    static void give_back_to_device(void* block) noexcept;
    [[nodiscard]] at::DataPtr take_from_device(std::size_t bytes, MemoryKind kind);
    [[nodiscard]] void* allocate(std::size_t bytes);
    void release(void* memory, std::size_t bytes) noexcept;
    void free_idle(std::size_t bytes_at_most) noexcept;

    at::Device device_;
    offload::Pinning pinning_;
    MemoryMeter meter_;
    std::mutex mutex_;
    std::map<std::size_t, std::vector<void*>> idle_;  // by bytes
    std::size_t idle_bytes_ = 0;
    std::size_t used_bytes_ = 0;
    std::size_t most_used_ = 0;
};

/// Takes the memory of a tensor's storage away; every view of it has none from then on, and its use throws.
void drop_memory(const at::Tensor& tensor) noexcept;
/// The same of memory that nobody takes again: its pages go back to the system at once, and do not wait in the heap. For a storage of
/// libtorch's own on the CPU.
void return_memory(const at::Tensor& tensor) noexcept;
/// Gives it memory for all its elements.
void give_memory(const at::Tensor& tensor, at::DataPtr memory);
/// Makes every operation on a tensor throw c10::Error, or ends that: where there is no memory, those that work element by
/// element would not look and read from address 0. Views that were made before are left as they are.
void forbid_use(const at::Tensor& tensor, bool forbidden) noexcept;

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/buffer_pool.ipp>
#endif
