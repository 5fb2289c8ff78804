#pragma once
// strata/zero/impl/buffer_pool.ipp - allocations behind tensors.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <strata/core/heap.hpp>
#include <strata/core/kept_blocks.hpp>
#include <strata/zero/detail/buffer_pool.hpp>

namespace strata::zero::detail {

struct BufferPool::Block {
    std::shared_ptr<BufferPool> pool;
    void* memory;
    std::size_t bytes;
    MemoryKind kind;
    Place place;
};

/// Memory of the device's allocator, counted.
struct BufferPool::DeviceBlock {
    std::shared_ptr<BufferPool> pool;
    at::Tensor memory;
    std::size_t bytes;
    MemoryKind kind;
};

STRATA_INLINE BufferPool::~BufferPool() { free_idle(0); }

STRATA_INLINE void* BufferPool::allocate(std::size_t bytes) {
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    // Large blocks in huge pages: a new one is filled at once, and faults of small pages would take as long.
    const std::size_t alignment = bytes >= huge_page ? huge_page : 64;
    const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, size);
    if (memory == nullptr) throw std::bad_alloc{};
    if (bytes >= huge_page) ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish
    if (!pinning_.pin || bytes == 0) return memory;
    try {
        pinning_.pin({static_cast<std::byte*>(memory), bytes});
    } catch (...) {
        std::free(memory);
        throw;
    }
    return memory;
}

STRATA_INLINE void BufferPool::release(void* memory, std::size_t bytes) noexcept {
    if (pinning_.unpin && bytes > 0) pinning_.unpin({static_cast<std::byte*>(memory), bytes});
    std::free(memory);
}

/// Called with the lock held, or by the destructor.
STRATA_INLINE void BufferPool::free_idle(std::size_t bytes_at_most) noexcept {
    while (idle_bytes_ > bytes_at_most) {
        const auto largest = std::prev(idle_.end());
        release(largest->second.back(), largest->first);
        idle_bytes_ -= largest->first;
        largest->second.pop_back();
        if (largest->second.empty()) idle_.erase(largest);
    }
}

STRATA_INLINE void BufferPool::trim() noexcept {
    {
        const std::lock_guard lock{mutex_};
        free_idle(0);
        most_used_ = used_bytes_;
    }
    core::give_back_memory();
}

STRATA_INLINE at::DataPtr BufferPool::take(std::size_t bytes, MemoryKind kind, Place place) {
    if (!device_of(place).is_cpu()) return take_from_device(bytes, kind);
    void* memory = nullptr;
    {
        const std::lock_guard lock{mutex_};
        used_bytes_ += bytes;
        most_used_ = std::max(most_used_, used_bytes_);
        if (const auto found = idle_.find(bytes); found != idle_.end()) {
            memory = found->second.back();
            found->second.pop_back();
            if (found->second.empty()) idle_.erase(found);
            idle_bytes_ -= bytes;
        }
        free_idle(most_used_ - used_bytes_);
    }
    if (memory == nullptr) {
        try {
            memory = allocate(bytes);
        } catch (...) {
            const std::lock_guard lock{mutex_};
            used_bytes_ -= bytes;
            throw;
        }
    }
    meter_.add(kind, place, static_cast<std::int64_t>(bytes));
    auto block = std::make_unique<Block>(Block{shared_from_this(), memory, bytes, kind, place});
    return {memory, block.release(), &BufferPool::give_back, at::Device{at::kCPU}};
}

STRATA_INLINE void BufferPool::give_back(void* context) noexcept {
    const std::unique_ptr<Block> block{static_cast<Block*>(context)};
    BufferPool& pool = *block->pool;
    pool.meter_.subtract(block->kind, block->place, static_cast<std::int64_t>(block->bytes));
    const std::lock_guard lock{pool.mutex_};
    pool.used_bytes_ -= block->bytes;
    try {
        pool.idle_[block->bytes].push_back(block->memory);
        pool.idle_bytes_ += block->bytes;
    } catch (...) {  // no memory for the list
        pool.release(block->memory, block->bytes);
    }
}

STRATA_INLINE at::DataPtr BufferPool::take_from_device(std::size_t bytes, MemoryKind kind) {
    const auto options = at::TensorOptions{}.dtype(at::kByte).device(device_);
    // Through a tensor, because the allocator itself may not be ready before libtorch has been asked for one.
    at::Tensor memory = at::empty({static_cast<std::int64_t>(bytes)}, options);
    void* const data = memory.data_ptr();
    auto block = std::make_unique<DeviceBlock>(DeviceBlock{shared_from_this(), std::move(memory), bytes, kind});
    meter_.add(kind, Place::device, static_cast<std::int64_t>(bytes));
    return {data, block.release(), &BufferPool::give_back_to_device, device_};
}

STRATA_INLINE void BufferPool::give_back_to_device(void* context) noexcept {
    const std::unique_ptr<DeviceBlock> block{static_cast<DeviceBlock*>(context)};
    block->pool->meter_.subtract(block->kind, Place::device, static_cast<std::int64_t>(block->bytes));
}

STRATA_INLINE at::Tensor BufferPool::empty(std::int64_t numel, at::ScalarType dtype, MemoryKind kind, Place place) {
    const std::size_t bytes = static_cast<std::size_t>(numel) * at::elementSize(dtype);
    at::DataPtr memory = take(bytes, kind, place);
    void* const data = memory.get();
    const at::Device device = device_of(place);
    at::Tensor tensor = at::for_blob(data, {numel})
                            .options(at::TensorOptions{}.dtype(dtype).device(device))
                            .target_device(device)
                            .make_tensor();
    tensor.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
    return tensor;
}

STRATA_INLINE at::Tensor BufferPool::zeros(std::int64_t numel, at::ScalarType dtype, MemoryKind kind, Place place) {
    return empty(numel, dtype, kind, place).zero_();
}

STRATA_INLINE void drop_memory(const at::Tensor& tensor) noexcept {
    auto* const storage = tensor.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(at::DataPtr{nullptr, storage->device()});
    storage->set_nbytes(0);
}

STRATA_INLINE void return_memory(const at::Tensor& tensor) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.storage().data());
    core::give_back_pages(begin, begin + tensor.storage().nbytes());
    drop_memory(tensor);
}

STRATA_INLINE void give_memory(const at::Tensor& tensor, at::DataPtr memory) {
    auto* const storage = tensor.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(std::move(memory));
    storage->set_nbytes(static_cast<std::size_t>(tensor.numel() * tensor.element_size()));
}

// Operations on a tensor with this mark go to the Python interpreter the tensor came from, and these came from none.
STRATA_INLINE void forbid_use(const at::Tensor& tensor, bool forbidden) noexcept {
    tensor.unsafeGetTensorImpl()->set_python_dispatch(forbidden);
}

}  // namespace strata::zero::detail
