#pragma once
// strata/train/impl/tensor_memory.ipp - an allocator in front of libtorch's own.

#include <cstddef>
#include <cstring>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <strata/core/kept_blocks.hpp>
#include <strata/train/tensor_memory.hpp>

namespace strata::train {
namespace detail {

/// libtorch has made allocate() const or not, and has copy_data() or not, by version: what it has is overridden, and so no function says
/// `override`.
class KeptTensorMemory final : public at::Allocator {
public:
    explicit KeptTensorMemory(at::Allocator& below) noexcept : below_{below} { below_delete = below.raw_deleter(); }
    at::DataPtr allocate(std::size_t bytes) const {
        void* const block = bytes < core::KeptBlocks::least_bytes ? nullptr : core::kept_blocks().take(bytes);
        if (block == nullptr) return below_.allocate(bytes);  // whose error it is when there is no memory
        return {block, block, &KeptTensorMemory::give, at::Device{at::kCPU}};
    }
    at::DataPtr allocate(std::size_t bytes) { return std::as_const(*this).allocate(bytes); }
    /// For memory whose size its owner does not know: of either.
    at::DeleterFnPtr raw_deleter() const { return &KeptTensorMemory::give; }
    void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

private:
    static void give(void* block) {
        if (!core::kept_blocks().give(block)) below_delete(block);
    }
    static inline at::DeleterFnPtr below_delete = nullptr;
    at::Allocator& below_;
};

}  // namespace detail

STRATA_INLINE void keep_tensor_memory() {
    static const bool once = [] {
        static auto* const allocator = new detail::KeptTensorMemory{*c10::GetCPUAllocator()};  // as long as the process
        c10::SetCPUAllocator(allocator);
        return true;
    }();
    static_cast<void>(once);
}

}  // namespace strata::train
