#pragma once
// strata/train/impl/huge_pages.ipp - an allocator in front of libtorch's own.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <strata/core/heap.hpp>
#include <strata/train/huge_pages.hpp>

namespace strata::train {
namespace detail {

/// glibc takes blocks of this size and more from the system each time, and gives them back when they are freed.
inline constexpr std::size_t least_on_huge_pages = std::size_t{32} << 20;

/// libtorch has made allocate() const or not, and has copy_data() or not, by version: what it has is overridden, and so no function says
/// `override`.
class HugePageAllocator final : public at::Allocator {
public:
    explicit HugePageAllocator(at::Allocator& below) noexcept : below_{below} {}
    at::DataPtr allocate(std::size_t bytes) const {
        at::DataPtr memory = below_.allocate(bytes);
        const auto begin = reinterpret_cast<std::uintptr_t>(memory.get());
        if (bytes >= least_on_huge_pages) core::ask_for_huge_pages(begin, begin + bytes);
        return memory;
    }
    at::DataPtr allocate(std::size_t bytes) { return std::as_const(*this).allocate(bytes); }
    at::DeleterFnPtr raw_deleter() const { return below_.raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }

private:
    at::Allocator& below_;
};

}  // namespace detail

STRATA_INLINE void use_huge_pages() {
    static const bool once = [] {
        static detail::HugePageAllocator allocator{*c10::GetCPUAllocator()};
        c10::SetCPUAllocator(&allocator);
        return true;
    }();
    static_cast<void>(once);
}

}  // namespace strata::train
