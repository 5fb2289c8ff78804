#pragma once
// strata/testing/device_conformance.hpp - device_failures(): does a device do what zero::ComputeDevice promises?

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>
#include <strata/core/fp16.hpp>
#include <strata/offload/host_arena.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/policy/precision.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/detail/update_run.hpp>
#include <strata/zero/device_kernels.hpp>
#include <strata/zero/tier.hpp>

namespace strata::testing {
namespace detail {

template <zero::ComputeDevice Device>
class DeviceLaws {
public:
    explicit DeviceLaws(const Device& device) : device_{device} {}

    std::vector<std::string> run() && {
        law("copies are the same device", [&] {
            const Device copy = device_;
            return copy.device() == device_.device();
        });
        law("is_host is said of the CPU, and of it alone",
            [&] { return device_.device().is_cpu() == Device::is_host; });
        law("its name has an index, unless it is the CPU",
            [&] { return device_.device().is_cpu() || device_.device().has_index(); });
        law("tensors go there and come back with their bits", [&] {
            const at::Tensor here = numbers<float>(0), there = here.to(device_.device());
            return there.device() == device_.device() && same(here, there);
        });
        law("memory is pinned and unpinned, and holds its values meanwhile", [&] { return pins(); });
        if constexpr (!Device::is_host) {
            law("a fence is copied, and waited for", [&] {
                auto fence = device_.fence();
                const auto copy = fence;
                device_.finish();
                copy.wait();
                fence.wait();
                return true;
            });
            law("free memory is counted in bytes", [&] { return device_.free_memory() >= 1; });
            law("what libtorch keeps for later is given back", [&] {
                const at::Tensor kept = numbers<float>(3).to(device_.device());
                device_.release_cached();
                return same(numbers<float>(3), kept);
            });
            law("work on a stream of its own is done when that is finished", [&] { return works_beside(); });
            law("sum_of_squares of fp32 has the CPU's bits", [&] { return sums<float>(); });
            law("sum_of_squares of bf16 has the CPU's bits", [&] { return sums<bf16>(); });
            law("update_average of fp32 has the CPU's bits", [&] { return averages<float>(); });
            law("update_average of bf16 has the CPU's bits", [&] { return averages<bf16>(); });
            law("update of fp32 has the CPU's bits", [&] { return updates<float, float, float>(); });
            law("update with a bf16 copy has the CPU's bits", [&] { return updates<bf16, bf16, float>(); });
            law("update with a bf16 copy and fp32 gradients has the CPU's bits",
                [&] { return updates<float, bf16, float>(); });
            law("update with an fp16 copy has the CPU's bits", [&] { return updates<float, fp16, float>(); });
            law("update of bf16 has the CPU's bits", [&] { return updates<bf16, bf16, bf16>(); });
            law("advance and apply_direction of fp32 have the CPU's bits",
                [&] { return goes_by_layers<float, float, float>(); });
            law("advance and apply_direction with a bf16 copy have the CPU's bits",
                [&] { return goes_by_layers<bf16, bf16, float>(); });
            law("advance and apply_direction of bf16 have the CPU's bits",
                [&] { return goes_by_layers<bf16, bf16, bf16>(); });
        }
        return std::move(failures_);
    }

private:
    static constexpr std::int64_t numel = 70'001;  // more than a kernel's chunk, and odd
    static constexpr std::size_t states = 2;
    static_assert(optim::state_count_v<AdamW> == states && optim::state_count_v<Lamb> == states);

    template <class Holds>
    void law(const std::string& promise, Holds&& holds) {
        try {
            if (!holds()) failures_.push_back(promise + ": it is not so");
        } catch (const std::exception& error) {
            failures_.push_back(promise + ": it threw: " + error.what());
        }
    }

    /// In host memory.
    template <class T>
    static at::Tensor numbers(int seed) {
        const at::Tensor values = at::empty({numel}, zero::detail::dtype_v<T>);
        std::int64_t i = 0;
        for (T& value : zero::detail::elements<T>(values))
            value = to_element<T>(static_cast<float>(std::abs(std::sin(1.7 * static_cast<double>(++i) + seed)) + 0.01));
        return values;
    }
    static bool same(const at::Tensor& a, const at::Tensor& b) {
        const at::Tensor x = a.cpu(), y = b.cpu();
        return x.nbytes() == y.nbytes() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
    }

    bool pins() const {
        const offload::Pinning pinning = device_.pinning();
        if (!pinning.pin != !pinning.unpin) return false;
        for (int round = 0; round < 2; ++round) {
            const offload::HostArena arena{"conformance", std::size_t{1} << 20, pinning};
            for (std::byte& value : arena.bytes()) value = std::byte{0x5a};
            const at::Tensor there = numbers<float>(round).to(device_.device());
            if (!same(numbers<float>(round), there)) return false;
            for (const std::byte value : arena.bytes())
                if (value != std::byte{0x5a}) return false;
        }
        return true;
    }

    bool works_beside() const {
        const at::Tensor values = numbers<float>(1).to(device_.device());
        device_.finish();
        at::Tensor moved;
        std::exception_ptr thrown;
        std::thread{[&] {
            try {
                const typename Device::Operation own_stream{device_};
                moved = values.mul(2.0F);
                device_.finish();
            } catch (...) {
                thrown = std::current_exception();
            }
        }}.join();
        if (thrown) std::rethrow_exception(thrown);
        return same(numbers<float>(1).mul(2.0F), moved);
    }

    template <class T>
    bool sums() const {
        const at::Tensor here = numbers<T>(2), there = here.to(device_.device());
        const at::Tensor result = at::empty({1}, at::TensorOptions{}.dtype(at::kDouble).device(device_.device()));
        device_.template sum_of_squares<T>(zero::detail::elements<const T>(there),
                                           static_cast<double*>(result.data_ptr()));
        device_.finish();
        const double expected = optim::sum_of_squares<T>(zero::detail::elements<const T>(here));
        return result.cpu().template item<double>() == expected;
    }

    template <class Kept>
    bool averages() const {
        const at::Tensor weight = numbers<Kept>(4), average = numbers<float>(5);
        const at::Tensor weight_there = weight.to(device_.device()), average_there = average.to(device_.device());
        optim::update_average<Kept>(0.9, zero::detail::elements<const Kept>(weight),
                                    zero::detail::elements<float>(average));
        device_.template update_average<Kept>(0.9, zero::detail::elements<const Kept>(weight_there),
                                              zero::detail::elements<float>(average_there));
        device_.finish();
        return same(average, average_there);
    }

    /// Weights, states and the parameters that copies of weights go to: here, and the same there.
    template <class Element, class Kept>
    struct Tensors {
        std::vector<at::Tensor> all{numbers<Kept>(6), numbers<Kept>(7), numbers<Kept>(8), numbers<Element>(9)};

        [[nodiscard]] Tensors on(at::Device device) const {
            Tensors there = *this;
            for (at::Tensor& tensor : there.all) tensor = tensor.to(device);
            return there;
        }
        [[nodiscard]] bool has_bits_of(const Tensors& other) const {
            for (std::size_t i = 0; i < all.size(); ++i)
                if (!same(all[i], other.all[i])) return false;
            return true;
        }
        [[nodiscard]] zero::StateRun<Kept, states> run() const {
            zero::StateRun<Kept, states> run;
            run.numel = numel;
            run.weight = zero::detail::elements<Kept>(all[0]);
            run.state = {zero::detail::elements<Kept>(all[1]), zero::detail::elements<Kept>(all[2])};
            return run;
        }
        [[nodiscard]] std::span<Element> parameters() const { return zero::detail::elements<Element>(all[3]); }
        /// What a device's kernels are given: parameters where they are rounded copies.
        [[nodiscard]] auto copy() const {
            if constexpr (std::same_as<Element, Kept>) {
                return std::span<bf16>{};
            } else {
                return parameters();
            }
        }
    };
    static constexpr optim::StochasticRounding rounding{.seed = 42, .step = 3, .first_element = 11};

    template <class Gradient, class Element, class Kept>
    bool updates() const {
        const Tensors<Element, Kept> here, there = here.on(device_.device());
        const at::Tensor gradient = numbers<Gradient>(10), gradient_there = gradient.to(device_.device());
        const auto scalars = AdamW::scalars({}, 1e-2, 3);
        zero::detail::update_run<AdamW, Gradient, Element>(
            scalars, 0.5F, zero::detail::elements<const Gradient>(gradient), here.run(), here.parameters(), rounding);
        device_.template update<AdamW>(scalars, optim::GradientTransform{0.5F},
                                       zero::detail::elements<const Gradient>(gradient_there), there.run().weight,
                                       there.run().state, there.copy(), rounding);
        device_.finish();
        return here.has_bits_of(there);
    }

    template <class Gradient, class Element, class Kept>
    bool goes_by_layers() const {
        const Tensors<Element, Kept> here, there = here.on(device_.device());
        const at::Tensor gradient = numbers<Gradient>(10), gradient_there = gradient.to(device_.device());
        const auto scalars = Lamb::scalars({}, 1e-2, 3);
        const std::vector<optim::Segment> segments{{0, 5, 0}, {5, 69'000, 1}, {69'005, numel - 69'005, 0}};
        std::vector<optim::NormSquares> norms(2);
        optim::advance<Lamb, Gradient, Kept>(scalars, 0.5F, zero::detail::elements<const Gradient>(gradient),
                                             here.run().weight, here.run().state, segments, norms, rounding);
        const at::Tensor zeros = at::empty({4}, at::kDouble).fill_(0), norms_there = zeros.to(device_.device());
        static_assert(sizeof(optim::NormSquares) == 2 * sizeof(double));
        device_.template advance<Lamb, Gradient, Kept>(
            scalars, optim::GradientTransform{0.5F}, zero::detail::elements<const Gradient>(gradient_there),
            there.run().weight, there.run().state, segments,
            std::span{static_cast<optim::NormSquares*>(norms_there.data_ptr()), norms.size()}, rounding);
        device_.finish();
        const at::Tensor came = norms_there.cpu();
        if (std::memcmp(came.data_ptr(), norms.data(), sizeof(optim::NormSquares) * norms.size()) != 0) return false;
        const std::vector<float> ratios = optim::trust_ratios<Lamb>({}, norms);
        zero::detail::apply_direction_run<Lamb, Element>(scalars, here.run(), segments, ratios, here.parameters(),
                                                         rounding);
        device_.template apply_direction<Lamb, Kept>(scalars, there.run().weight, there.run().state, segments,
                                                     std::span<const float>{ratios}, there.copy(), rounding);
        device_.finish();
        return here.has_bits_of(there);
    }

    Device device_;
    std::vector<std::string> failures_;
};

}  // namespace detail

/// What a device does otherwise than zero::ComputeDevice promises, a sentence each; empty if it conforms. Of one whose
/// memory is not the host's its kernels are tried with AdamW and Lamb, in every combination of number formats that a
/// composition can have. Local. Needs no test framework: `assert(strata::testing::device_failures<MyDevice>().empty());`
///
/// That a model trains there as it does on the CPU is for a test of a trainer with Compute<MyDevice>.
template <zero::ComputeDevice Device>
[[nodiscard]] std::vector<std::string> device_failures(const Device& device = {}) {
    static_assert(Device::is_host || (zero::has_kernels_v<Device, AdamW, Precision<Fp32>> &&
                                      zero::has_kernels_v<Device, Lamb, Precision<Bf16>>),
                  "the device lacks a kernel: zero/compute_device.hpp says which there are");
    return detail::DeviceLaws<Device>{device}.run();
}

}  // namespace strata::testing
