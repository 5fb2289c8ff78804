// The CPU, the device that stands in for a GPU and one of a user's own keep what a device promises; the kit finds those that do not.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/policy/precision.hpp>
#include <strata/testing/device_conformance.hpp>
#include <strata/zero/compute_device.hpp>

#include "../../../examples/undumped_device.hpp"
#include "../../support/far_device.hpp"

namespace {

namespace optim = strata::optim;
namespace far = strata_test::far;
using strata::testing::device_failures;
using Failures = std::vector<std::string>;

TEST(DeviceConformance, TheCpuConforms) { EXPECT_EQ(device_failures<strata::zero::CpuDevice>(), Failures{}); }

TEST(DeviceConformance, ADeviceWhoseMemoryTheHostMayNotTouchConforms) {
    EXPECT_EQ(device_failures<far::Device>(), Failures{});
}

//! [conformance]
TEST(DeviceConformance, ADeviceOfAUsersOwnConforms) { EXPECT_EQ(device_failures<my::Undumped>(), Failures{}); }
//! [conformance]

// ---- devices that are wrong, each in one way -------------------------------------------------------------------------

std::string first_failure(const Failures& failures) { return failures.empty() ? "none" : failures.front(); }

struct PinsOnly : strata::zero::CpuDevice {
    [[nodiscard]] strata::offload::Pinning pinning() const {
        return {.pin = [](std::span<std::byte>) {}, .unpin = nullptr};
    }
};
struct RefusesToPin : strata::zero::CpuDevice {
    [[nodiscard]] strata::offload::Pinning pinning() const {
        return {.pin = [](std::span<std::byte>) { throw std::runtime_error{"no more pages"}; },
                .unpin = [](std::span<std::byte>) {}};
    }
};
struct SaysItIsTheHost : far::Device {
    static constexpr bool is_host = true;
};
TEST(DeviceConformance, TheKitNamesWhatADeviceSaysWrong) {
    EXPECT_EQ(first_failure(device_failures<PinsOnly>()),
              "memory is pinned and unpinned, and holds its values meanwhile: it is not so");
    EXPECT_EQ(first_failure(device_failures<RefusesToPin>()),
              "memory is pinned and unpinned, and holds its values meanwhile: it threw: no more pages");
    EXPECT_EQ(first_failure(device_failures<SaysItIsTheHost>()),
              "is_host is said of the CPU, and of it alone: it is not so");
}

/// Averages as if nothing was to be kept, and forgets the copies of weights.
struct AveragesWrongly : far::Device {
    template <class Kept>
    void update_average(double, std::span<const Kept> weight, std::span<float> average) const {
        far::Device::update_average<Kept>(0.0, weight, average);
    }
};
struct ForgetsCopies : far::Device {
    template <optim::ElementwiseRule Rule, class G, class W, std::size_t states, class C>
    void update(const typename Rule::Scalars& scalars, const optim::GradientTransform& transform,
                std::span<const G> gradient, std::span<W> weight, const std::array<std::span<W>, states>& state,
                std::span<C>, const optim::StochasticRounding& rounding) const {
        far::Device::update<Rule, G, W, C>(scalars, transform, gradient, weight, state, std::span<C>{}, rounding);
    }
};
struct SumsInPlaceOfSquares : far::Device {
    template <class G>
    void sum_of_squares(std::span<const G>, double* result) const {
        *far::on_host(result) = 1;
    }
};
TEST(DeviceConformance, TheKitNamesTheKernelThatIsWrong) {
    EXPECT_EQ(device_failures<AveragesWrongly>(),
              (Failures{"update_average of fp32 has the CPU's bits: it is not so",
                        "update_average of bf16 has the CPU's bits: it is not so"}));
    EXPECT_EQ(device_failures<SumsInPlaceOfSquares>(),
              (Failures{"sum_of_squares of fp32 has the CPU's bits: it is not so",
                        "sum_of_squares of bf16 has the CPU's bits: it is not so"}));
    EXPECT_EQ(device_failures<ForgetsCopies>(),
              (Failures{"update with a bf16 copy has the CPU's bits: it is not so",
                        "update with a bf16 copy and fp32 gradients has the CPU's bits: it is not so",
                        "update with an fp16 copy has the CPU's bits: it is not so"}));
}

// ---- what a composition asks of a device -----------------------------------------------------------------------------

/// Has what ComputeDevice names, and no kernels.
struct WithoutKernels {
    static constexpr bool is_host = false;
    [[nodiscard]] at::Device device() const { return far::device(); }
    [[nodiscard]] strata::offload::Pinning pinning() const { return {}; }
    [[nodiscard]] far::Device::Fence fence() const { return {}; }
    void finish() const {}
    struct Operation {};
    [[nodiscard]] std::uint64_t free_memory() const { return 1; }
    void release_cached() const {}
};
static_assert(strata::zero::ComputeDevice<WithoutKernels>);
template <class Device>
constexpr bool trains_adamw = strata::zero::has_kernels_v<Device, strata::AdamW, strata::Precision<strata::Bf16>>;
template <class Device>
constexpr bool trains_lamb = strata::zero::has_kernels_v<Device, strata::Lamb, strata::Precision<strata::PureBf16>>;
static_assert(!trains_adamw<WithoutKernels> && !trains_lamb<WithoutKernels>);
static_assert(trains_adamw<far::Device> && trains_lamb<far::Device>);
static_assert(trains_adamw<my::Undumped> && trains_lamb<strata::zero::CpuDevice>, "the host's kernels");

/// A layerwise rule needs what this one hides.
struct ElementwiseOnly : far::Device {
    void advance() const {}
};
static_assert(trains_adamw<ElementwiseOnly> && !trains_lamb<ElementwiseOnly>);

struct NotConst : far::Device {
    template <class Kept>
    void update_average(double, std::span<const Kept>, std::span<float>) {}
};
static_assert(!trains_adamw<NotConst>, "engines have their device as a constant");

struct NobodyKnowsWhatItIs : strata::zero::CpuDevice {
    static const bool is_host;
};
struct WithoutPinning {
    static constexpr bool is_host = true;
    [[nodiscard]] at::Device device() const { return at::kCPU; }
};
static_assert(!strata::zero::ComputeDevice<NobodyKnowsWhatItIs> && !strata::zero::ComputeDevice<WithoutPinning>);

}  // namespace
