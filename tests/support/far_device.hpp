#pragma once
// tests/support/far_device.hpp - a device for libtorch whose memory the host may not touch.
//
// To find, without a GPU, every place that takes a device address for a host pointer. The device is libtorch's XPU,
// which this build has no kernels for: its addresses are mapped without any access, so reading one on the host is a
// segmentation fault. Operations run on the CPU over a second mapping of the same memory, with the CPU's bits; random
// numbers come from the CPU's default generator, and no other may be given. As on a GPU, tensors of two devices do not
// mix in one operation, but for numbers (0 dimensions), indices and copies. Everything has happened when a call
// returns. Fresh and freed memory is filled with 0xff: NaN, or -1.
//
// Compiling far_device.cpp into a program is what registers the device.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <c10/core/Device.h>

#include <strata/offload/host_arena.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata_test::far {

/// The one device, with its index.
at::Device device();

/// Whether this is an address of the device.
bool is_far(const void* address);

/// Bytes that tensors and others hold, as they asked for them; and the most since the program began or reset_peak().
std::int64_t bytes_in_use();
std::int64_t peak_bytes();
void reset_peak();

namespace detail {
/// Where the host finds these bytes. Ends the program with a sentence unless all of them lie in one living allocation.
void* host_address(const void* device_address, std::size_t bytes);
}  // namespace detail

/// The same memory where the host may touch it. Ends the program for what is no living memory of the device.
template <class T>
T* on_host(T* device_address) {
    return static_cast<T*>(detail::host_address(device_address, sizeof(T)));
}
template <class T, std::size_t extent>
std::span<T> on_host(std::span<T, extent> memory) {
    if (memory.empty()) return {};
    return {static_cast<T*>(detail::host_address(memory.data(), memory.size_bytes())), memory.size()};
}

/// What has been asked of all Devices since the program began; tests look at differences.
struct Counts {
    std::int64_t fences = 0;
    std::int64_t waits = 0;       ///< for a fence
    std::int64_t finishes = 0;    ///< for a stream
    std::int64_t operations = 0;  ///< streams of their own
    std::int64_t kernels = 0;
    std::int64_t pinned_bytes = 0;  ///< now
};
Counts counts();

/// strata::zero::ComputeDevice over this memory: the CPU's kernels.
class Device {
public:
    static constexpr bool is_host = false;

    [[nodiscard]] at::Device device() const { return far::device(); }

    struct Fence {
        void wait() const;
    };
    [[nodiscard]] Fence fence() const;
    void finish() const;

    class Operation {
    public:
        explicit Operation(const Device& device);
        Operation(const Operation&) = delete;
        Operation& operator=(const Operation&) = delete;
    };

    [[nodiscard]] strata::offload::Pinning pinning() const;
    [[nodiscard]] std::uint64_t free_memory() const;
    void release_cached() const {}

    /// optim::update; `copy` is empty when there is none, `rounding` is for bf16.
    template <strata::optim::ElementwiseRule Rule, class G, class W, class C = strata::bf16>
    void update(const typename Rule::Scalars& scalars, strata::optim::GradientTransform transform,
                std::span<const G> gradient, std::span<W> weight,
                const std::array<std::span<W>, strata::optim::state_count_v<Rule>>& state, std::span<C> copy,
                const strata::optim::StochasticRounding& rounding) const {
        count_kernel();
        if constexpr (std::same_as<W, float>) {
            strata::optim::update<Rule, G, C>(scalars, transform, on_host(gradient), on_host(weight), on_host(state),
                                              on_host(copy));
        } else {
            strata::optim::update<Rule, G>(scalars, transform, on_host(gradient), on_host(weight), on_host(state),
                                           rounding);
        }
    }

    /// optim::sum_of_squares; `result` is a device address.
    template <class G>
    void sum_of_squares(std::span<const G> values, double* result) const {
        count_kernel();
        *far::on_host(result) = strata::optim::sum_of_squares<G>(on_host(values));
    }

    /// optim::update_average.
    template <class W>
    void update_average(double decay, std::span<const W> weight, std::span<float> average) const {
        count_kernel();
        strata::optim::update_average<W>(decay, on_host(weight), on_host(average));
    }

    /// optim::advance; the segments are in host memory, the norms are device addresses.
    template <strata::optim::LayerwiseRule Rule, class G, class W>
    void advance(const typename Rule::Scalars& scalars, strata::optim::GradientTransform transform,
                 std::span<const G> gradient, std::span<const W> weight,
                 const std::array<std::span<W>, strata::optim::state_count_v<Rule>>& state,
                 std::span<const strata::optim::Segment> segments, std::span<strata::optim::NormSquares> norms,
                 const strata::optim::StochasticRounding& rounding) const {
        count_kernel();
        strata::optim::advance<Rule, G, W>(scalars, transform, on_host(gradient), on_host(weight), on_host(state),
                                           segments, on_host(norms), rounding);
    }

    /// optim::apply_direction; segments and ratios are in host memory.
    template <strata::optim::LayerwiseRule Rule, class W, class C = strata::bf16>
    void apply_direction(const typename Rule::Scalars& scalars, std::span<W> weight,
                         const std::array<std::span<W>, strata::optim::state_count_v<Rule>>& state,
                         std::span<const strata::optim::Segment> segments, std::span<const float> ratios,
                         std::span<C> copy, const strata::optim::StochasticRounding& rounding) const {
        count_kernel();
        if constexpr (std::same_as<W, float>) {
            strata::optim::apply_direction<Rule, C>(scalars, on_host(weight), on_host(state), segments, ratios,
                                                    on_host(copy));
        } else {
            strata::optim::apply_direction<Rule>(scalars, on_host(weight), on_host(state), segments, ratios, rounding);
        }
    }

private:
    static void count_kernel();

    template <class T>
    static std::span<T> on_host(std::span<T> memory) {
        return far::on_host(memory);
    }
    template <class W, std::size_t states>
    static std::array<std::span<W>, states> on_host(const std::array<std::span<W>, states>& state) {
        std::array<std::span<W>, states> result;
        for (std::size_t k = 0; k < states; ++k) result[k] = far::on_host(state[k]);
        return result;
    }
};

}  // namespace strata_test::far
