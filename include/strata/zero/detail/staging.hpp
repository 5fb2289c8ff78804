#pragma once
// strata/zero/detail/staging.hpp - Staging: what lives on one side of a device's bus, for work on the other side.

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero::detail {

/// On which side of the bus memory is, or work is done. With the CPU as the device they are one.
enum class Side : std::uint8_t { host, device };

/// Spans on the side where they are wanted: themselves if they are there, else copies, which last as long as this object.
/// Copies from the device have arrived when take() returns.
class Staging {
public:
    explicit Staging(BufferPool& pool) : pool_{pool} {}

    /// `there`, or a copy of it on the side `wanted`.
    ///
    ///   in   the copy begins with its values; otherwise what it holds is undefined
    ///   out  put_back() writes the copy over them
    template <class T>
    [[nodiscard]] std::span<T> take(std::span<T> there, Side is, Side wanted, bool in, bool out = false) {
        if (is == wanted || there.empty()) return there;
        using Value = std::remove_const_t<T>;
        const std::span<Value> values{const_cast<Value*>(there.data()), there.size()};
        Copy& copy = copies_.emplace_back();
        copy.original = tensor_over(values, pool_.device_of(place_of(is)));
        copy.values = pool_.empty(static_cast<std::int64_t>(there.size()), dtype_v<Value>, Held::buffers, place_of(wanted));
        copy.out = out;
        if (in) copy.values.copy_(copy.original);
        return elements<T>(copy.values);
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
    static constexpr Place place_of(Side side) noexcept { return side == Side::host ? Place::host : Place::device; }

    BufferPool& pool_;
    std::vector<Copy> copies_;
};

}  // namespace strata::zero::detail
