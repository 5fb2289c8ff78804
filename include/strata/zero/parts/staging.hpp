#pragma once
// strata/zero/parts/staging.hpp - Staging: what lives on one side of a device's bus, for work on the other side.

#include <span>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/policy/place.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero {

/// The memory where bytes of a place are worked on: the host's or the device's, which are one when the CPU is the device.
template <class Compute>
constexpr Place memory_of(Place place) noexcept {
    return Compute::is_host || place != Place::device ? Place::host : Place::device;
}

/// Spans in the memory where they are wanted: themselves if they are there, else copies, which last as long as this object.
/// Copies from the device have arrived when take() returns. Place::host or Place::device, as memory_of() says.
class Staging {
public:
    explicit Staging(detail::BufferPool& pool) : pool_{pool} {}

    /// `there`, or a copy of it in the memory `wanted`.
    ///
    ///   in   the copy begins with its values; otherwise what it holds is undefined
    ///   out  put_back() writes the copy over them
    template <class T>
    [[nodiscard]] std::span<T> take(std::span<T> there, Place is, Place wanted, bool in, bool out = false) {
        if (is == wanted || there.empty()) return there;
        using Value = std::remove_const_t<T>;
        const std::span<Value> values{const_cast<Value*>(there.data()), there.size()};
        Copy& copy = copies_.emplace_back();
        copy.original = detail::tensor_over(values, pool_.device_of(is));
        copy.values =
            pool_.empty(static_cast<std::int64_t>(there.size()), detail::dtype_v<Value>, MemoryKind::buffers, wanted);
        copy.out = out;
        if (in) copy.values.copy_(copy.original);
        return detail::elements<T>(copy.values);
    }

    void put_back() {
        for (const Copy& copy : copies_) {
            if (copy.out) copy.original.copy_(copy.values);
        }
        copies_.clear();
    }

private:
    struct Copy {
        at::Tensor original;
        at::Tensor values;
        bool out = false;
    };

    detail::BufferPool& pool_;
    std::vector<Copy> copies_;
};

}  // namespace strata::zero
