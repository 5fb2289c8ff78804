// The kernels of a GPU, run on the host thread by thread: every grid in an order of its own, the bits against the
// CPU's.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>
#include <strata/core/error.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/clip.hpp>
#include <strata/optim/detail/device_bodies.hpp>
#include <strata/optim/detail/device_layerwise.hpp>
#include <strata/optim/detail/device_sums.hpp>
#include <strata/optim/device_kernels.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/optim/update_kernel.hpp>

#include "golden.hpp"

namespace {

using strata::Adagrad;
using strata::Adam;
using strata::AdamW;
using strata::bf16;
using strata::fp16;
using strata::Lamb;
using strata::Lion;
using strata::Sgd;
using strata::core::SimdLevel;
using strata::optim::GradientTransform;
using strata::optim::NormSquares;
using strata::optim::Segment;
using strata::optim::state_count_v;
using strata::optim::StochasticRounding;
using strata::optim::testing::Descent;
using strata::optim::testing::normal_values;

namespace detail = strata::optim::detail;

/// All threads of one step, in the order given.
template <class Body>
struct StepLoop {
    const Body& body;
    const detail::ChunkPlace& chunk;
    std::int64_t t;
    const std::vector<std::int32_t>& order;
    typename Body::Shared& shared;
    [[gnu::always_inline]] void operator()() const {
        for (const std::int32_t thread : order) body.step(chunk, t, thread, shared);
    }
};
/// All threads of a grid, in the order given.
template <class Body>
struct GridLoop {
    const Body& body;
    const std::vector<std::int64_t>& order;
    [[gnu::always_inline]] void operator()() const {
        for (const std::int64_t i : order) body(i / Body::threads, static_cast<std::int32_t>(i % Body::threads));
    }
};

/// Runs a grid on the host: blocks and their threads in random order. Bodies go through run_at(), whose flags keep a
/// compiler that is told of fused operations from using them.
struct HostLaunch {
    std::mt19937& random;
    int& launches;

    template <class Body>
    void operator()(const Body& body, std::int64_t blocks) const {
        ++launches;
        ASSERT_GT(blocks, 0);
        if constexpr (requires { typename Body::Shared; }) {
            const auto shared = std::make_unique<typename Body::Shared>();
            auto order = shuffled<std::int32_t>(Body::threads);
            for (const std::int64_t block : shuffled<std::int64_t>(blocks)) {
                std::memset(static_cast<void*>(shared.get()), 0xff, sizeof *shared);  // NaN: what nobody wrote shows
                const detail::ChunkPlace chunk = body.fill.chunk(block);
                for (std::int64_t t = 0; t < Body::steps(chunk); ++t) {
                    std::shuffle(order.begin(), order.end(), random);
                    strata::core::run_at(SimdLevel::baseline, StepLoop<Body>{body, chunk, t, order, *shared});
                }
            }
        } else {
            strata::core::run_at(SimdLevel::baseline,
                                 GridLoop<Body>{body, shuffled<std::int64_t>(blocks * Body::threads)});
        }
    }

private:
    template <class T>
    [[nodiscard]] std::vector<T> shuffled(T n) const {
        std::vector<T> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), T{0});
        std::shuffle(order.begin(), order.end(), random);
        return order;
    }
};

/// A grid's launcher, and how often it was called.
struct Host {
    std::mt19937 random{1};
    int launches = 0;
    HostLaunch launch{random, launches};
};

template <class T>
T converted(float value) {
    return strata::to_element<T>(value);
}

/// A run that begins `shift` elements behind an address that 64 divides, with elements around it that must stay.
template <class T>
class Elements {
public:
    Elements(std::size_t n, std::size_t shift, unsigned seed)
        : shift_{margin + shift}, n_{n}, values_(n + margin * 2 + shift) {
        const auto numbers = normal_values(values_.size(), seed);
        std::transform(numbers.begin(), numbers.end(), values_.begin(), converted<T>);
    }
    [[nodiscard]] std::span<T> span() { return std::span{values_}.subspan(shift_, n_); }
    [[nodiscard]] std::span<const T> view() const { return std::span{values_}.subspan(shift_, n_); }
    [[nodiscard]] bool same_bits(const Elements& other) const {
        return values_.size() == other.values_.size() &&
               std::memcmp(values_.data(), other.values_.data(), values_.size() * sizeof(T)) == 0;
    }

private:
    template <class U>
    struct Aligned {
        using value_type = U;
        Aligned() = default;
        template <class V>
        explicit Aligned(const Aligned<V>&) {}
        U* allocate(std::size_t n) { return static_cast<U*>(::operator new (n * sizeof(U), std::align_val_t{64})); }
        void deallocate(U* at, std::size_t) { ::operator delete (at, std::align_val_t{64}); }
        template <class V>
        bool operator==(const Aligned<V>&) const {
            return true;
        }
    };
    static constexpr std::size_t margin = 64;
    std::size_t shift_;
    std::size_t n_;
    std::vector<T, Aligned<T>> values_;
};

/// What a step works on. Squared numbers are the states', as they must not be below 0.
template <class Rule, class G, class W, class C>
struct Replica {
    Elements<G> gradient;
    Elements<W> weight;
    std::vector<Elements<W>> state;
    Elements<C> copy;

    Replica(std::size_t n, std::array<std::size_t, 4> shifts)
        : gradient{n, shifts[0], 1}, weight{n, shifts[1], 2}, copy{n, shifts[3], 3} {
        for (std::size_t k = 0; k < state_count_v<Rule>; ++k) {
            Elements<W> values{n, shifts[2], 4 + static_cast<unsigned>(k)};
            for (W& value : values.span()) value = converted<W>(strata::to_float(value) * strata::to_float(value));
            state.push_back(std::move(values));
        }
    }
    [[nodiscard]] std::array<std::span<W>, state_count_v<Rule>> states() {
        std::array<std::span<W>, state_count_v<Rule>> spans;
        for (std::size_t k = 0; k < spans.size(); ++k) spans[k] = state[k].span();
        return spans;
    }
    [[nodiscard]] bool same_bits(const Replica& other) const {
        bool all = weight.same_bits(other.weight) && copy.same_bits(other.copy);
        for (std::size_t k = 0; k < state.size(); ++k) all = all && state[k].same_bits(other.state[k]);
        return all;
    }
};

/// Sizes around groups, blocks and chunks; places that are aligned alike, and such that are not.
const std::vector<std::size_t> sizes{1, 2, 3, 4, 5, 7, 8, 9, 15, 17, 31, 67, 1023, 1025, 2050, 70'003};
const std::vector<std::array<std::size_t, 4>> places{
    {0, 0, 0, 0}, {1, 1, 1, 1}, {3, 2, 2, 5}, {0, 3, 1, 2}, {7, 0, 4, 6}};

template <class Rule, class G, class C>
void expect_update(bool with_copy) {
    Host host;
    const auto scalars = Rule::scalars({}, 0.01, 3);
    const GradientTransform transform{0.3F, 0.5F};
    for (const std::size_t n : sizes) {
        for (const auto& place : places) {
            Replica<Rule, G, float, C> cpu{n, place};
            Replica<Rule, G, float, C> gpu{n, place};
            const auto start = cpu;
            strata::optim::update<Rule, G, C>(scalars, transform, cpu.gradient.view(), cpu.weight.span(), cpu.states(),
                                              with_copy ? cpu.copy.span() : std::span<C>{});
            if (with_copy) {
                detail::launch_update<Rule, true>(scalars, transform, gpu.gradient.view(), gpu.weight.span(),
                                                  gpu.states(), gpu.copy.span(), {}, host.launch);
            } else {
                detail::launch_update<Rule, false>(scalars, transform, gpu.gradient.view(), gpu.weight.span(),
                                                   gpu.states(), std::span<bf16>{}, {}, host.launch);
            }
            EXPECT_TRUE(cpu.same_bits(gpu)) << n << " elements";
            EXPECT_FALSE(start.weight.same_bits(gpu.weight)) << "nothing happened";
        }
    }
}

template <class Rule>
void expect_update_in_all_formats() {
    expect_update<Rule, float, bf16>(false);
    expect_update<Rule, float, bf16>(true);
    expect_update<Rule, bf16, bf16>(true);
    expect_update<Rule, float, fp16>(true);
    expect_update<Rule, fp16, fp16>(true);
}

TEST(DeviceKernels, AdamWHasTheBitsOfTheCpu) { expect_update_in_all_formats<AdamW>(); }
TEST(DeviceKernels, AdamHasTheBitsOfTheCpu) { expect_update_in_all_formats<Adam>(); }
TEST(DeviceKernels, LionHasTheBitsOfTheCpu) { expect_update_in_all_formats<Lion>(); }
TEST(DeviceKernels, AdagradHasTheBitsOfTheCpu) { expect_update_in_all_formats<Adagrad>(); }
TEST(DeviceKernels, SgdHasTheBitsOfTheCpu) { expect_update_in_all_formats<Sgd>(); }
TEST(DeviceKernels, ARuleWithoutStateHasTheBitsOfTheCpu) { expect_update_in_all_formats<Descent>(); }

// Blocks of random bits end where groups of eight do not, once for every place in the group.
template <class Rule, class G>
void expect_pure_update() {
    Host host;
    const auto scalars = Rule::scalars({}, 0.01, 3);
    for (const std::size_t n : {1UL, 9UL, 67UL, 2050UL, 70'003UL}) {
        for (std::size_t shift = 0; shift < 8; ++shift) {
            const std::array<std::size_t, 4> place{shift / 2, shift, shift % 3, 0};
            const StochasticRounding rounding{
                .seed = 5, .step = 3, .first_element = 65536 * 3 - 30 + 3 * static_cast<int>(shift)};
            Replica<Rule, G, bf16, bf16> cpu{n, place};
            Replica<Rule, G, bf16, bf16> gpu{n, place};
            strata::optim::update<Rule, G>(scalars, {0.3F}, cpu.gradient.view(), cpu.weight.span(), cpu.states(),
                                           rounding);
            detail::launch_update<Rule, false>(scalars, {0.3F}, gpu.gradient.view(), gpu.weight.span(), gpu.states(),
                                               std::span<bf16>{}, rounding, host.launch);
            EXPECT_TRUE(cpu.same_bits(gpu)) << n << " elements, shift " << shift;
        }
    }
}

TEST(DeviceKernels, PureBf16IsRoundedByTheSameBits) {
    expect_pure_update<AdamW, bf16>();
    expect_pure_update<AdamW, float>();
    expect_pure_update<Adam, bf16>();
    expect_pure_update<Lion, bf16>();
    expect_pure_update<Adagrad, bf16>();
    expect_pure_update<Sgd, bf16>();
    expect_pure_update<Descent, bf16>();
}

TEST(DeviceKernels, TheAverageHasTheBitsOfTheCpu) {
    Host host;
    const auto compare = [&]<class W>(W) {
        for (const std::size_t n : sizes) {
            for (const auto& place : places) {
                const Elements<W> weight{n, place[0], 1};
                Elements<float> cpu{n, place[1], 2};
                Elements<float> gpu{n, place[1], 2};
                strata::optim::update_average<W>(0.9, weight.view(), cpu.span());
                detail::launch_update_average<W>(0.9, weight.view(), gpu.span(), host.launch);
                EXPECT_TRUE(cpu.same_bits(gpu)) << n << " elements";
            }
        }
    };
    compare(float{});
    compare(bf16{});
}

template <class G>
double sum_on_host(std::span<const G> values) {
    Host host;
    std::vector<double> partial(strata::optim::squares_partials(static_cast<std::int64_t>(values.size())));
    double result = -1.0;
    detail::launch_sum_of_squares(values, std::span{partial}, &result, host.launch);
    return result;
}

// Bits, not numbers: a sum in another order differs in its last bits, and 0.0 == -0.0.
template <class G>
void expect_sums() {
    for (const std::size_t n :
         {0UL, 1UL, 15UL, 16UL, 17UL, 67UL, 4095UL, 4097UL, 65535UL, 65536UL, 65537UL, 200'003UL}) {
        for (std::size_t shift = 0; shift < 16 / sizeof(G); ++shift) {
            const Elements<G> values{n, shift, 1};
            const double cpu = strata::optim::sum_of_squares<G>(values.view());
            const double gpu = sum_on_host(values.view());
            EXPECT_EQ(std::memcmp(&cpu, &gpu, sizeof cpu), 0) << n << " elements, shift " << shift;
        }
    }
}

TEST(DeviceKernels, SumsOfSquaresHaveTheBitsOfTheCpu) {
    expect_sums<float>();
    expect_sums<bf16>();
    expect_sums<fp16>();
    Elements<float> wide{70'003, 1, 1};  // from subnormal to huge: every rounding shows, and a fused one would
    for (std::size_t i = 0; i < wide.span().size(); ++i)
        wide.span()[i] *= std::ldexp(1.0F, static_cast<int>(i % 250) - 125);
    EXPECT_EQ(strata::optim::sum_of_squares<float>(wide.view()), sum_on_host(wide.view()));
}

TEST(DeviceKernels, OneInfinityOrNanAnywhereShowsInTheSumOfSquares) {
    for (const std::size_t place : {0UL, 4095UL, 65535UL, 65536UL, 66'000UL}) {
        Elements<float> values{66'001, 3, 1};
        EXPECT_FALSE(strata::optim::overflowed(sum_on_host(values.view())));
        values.span()[place] = std::numeric_limits<float>::infinity();
        EXPECT_TRUE(strata::optim::overflowed(sum_on_host(values.view()))) << place;
        values.span()[place] = std::nanf("");
        EXPECT_TRUE(strata::optim::overflowed(sum_on_host(values.view()))) << place;
    }
    const std::vector<float> largest(20, std::numeric_limits<float>::max());
    EXPECT_FALSE(strata::optim::overflowed(sum_on_host(std::span<const float>{largest})));
}

/// Parameters of many sizes with gaps (padding) between them; one of them in two segments, as ranks cut it.
std::vector<Segment> segments_of(std::size_t count, std::int64_t largest) {
    std::vector<Segment> segments;
    std::int64_t at = 3;
    for (std::size_t p = 0; p < count; ++p) {
        const std::int64_t numel = p == 1 ? largest : static_cast<std::int64_t>(p * 37 % 101);
        segments.push_back({at, numel / 3, p});
        segments.push_back({at + numel / 3, numel - numel / 3, p});
        at += numel + static_cast<std::int64_t>(p % 3);
    }
    return segments;
}

template <class G, class W, class C>
void expect_lamb(std::size_t parameters, std::int64_t largest, std::array<std::size_t, 4> place, bool with_copy) {
    const std::vector<Segment> segments = segments_of(parameters, largest);
    const std::int64_t numel = segments.back().begin + segments.back().numel;
    const auto n = static_cast<std::size_t>(numel + 2);
    const StochasticRounding rounding{.seed = 5, .step = 2, .first_element = 65536 * 2 - 17};
    const auto scalars = Lamb::scalars({.weight_decay = 0.1}, 0.01, 2);
    const GradientTransform transform{0.3F, 0.5F};
    Replica<Lamb, G, W, C> cpu{n, place};
    Replica<Lamb, G, W, C> gpu{n, place};
    const auto start = cpu;
    std::vector<NormSquares> cpu_norms(parameters, NormSquares{0.25, 0.5});
    std::vector<NormSquares> gpu_norms = cpu_norms;
    const auto view = [](Replica<Lamb, G, W, C>& run) { return std::as_const(run.weight).view(); };

    Host host;
    std::vector<NormSquares> partial(strata::optim::norm_partials(numel, segments.size()));
    strata::optim::advance<Lamb, G, W>(scalars, transform, cpu.gradient.view(), view(cpu), cpu.states(), segments,
                                       cpu_norms, rounding);
    detail::launch_advance<Lamb, G, W>(scalars, transform, gpu.gradient.view(), view(gpu), gpu.states(), segments,
                                       partial, gpu_norms, rounding, host.launch);
    EXPECT_TRUE(cpu.same_bits(gpu));
    EXPECT_FALSE(start.same_bits(gpu)) << "nothing happened";
    EXPECT_EQ(std::memcmp(cpu_norms.data(), gpu_norms.data(), parameters * sizeof(NormSquares)), 0);
    const std::size_t whole = static_cast<std::size_t>(
        std::count_if(segments.begin(), segments.end(), [](const Segment& segment) { return segment.numel > 0; }));
    const auto most = static_cast<std::size_t>(detail::SegmentTable::most);
    EXPECT_EQ(static_cast<std::size_t>(host.launches), 2 * ((whole + most - 1) / most));

    const auto ratios = strata::optim::trust_ratios<Lamb>({}, cpu_norms);
    if constexpr (std::same_as<W, bf16>) {
        strata::optim::apply_direction<Lamb>(scalars, cpu.weight.span(), cpu.states(), segments, ratios, rounding);
        detail::launch_apply_direction<Lamb, false>(scalars, gpu.weight.span(), gpu.states(), segments, ratios,
                                                    std::span<bf16>{}, rounding, host.launch);
    } else {
        strata::optim::apply_direction<Lamb, C>(scalars, cpu.weight.span(), cpu.states(), segments, ratios,
                                                with_copy ? cpu.copy.span() : std::span<C>{});
        if (with_copy) {
            detail::launch_apply_direction<Lamb, true>(scalars, gpu.weight.span(), gpu.states(), segments, ratios,
                                                       gpu.copy.span(), {}, host.launch);
        } else {
            detail::launch_apply_direction<Lamb, false>(scalars, gpu.weight.span(), gpu.states(), segments, ratios,
                                                        std::span<bf16>{}, {}, host.launch);
        }
    }
    EXPECT_TRUE(cpu.same_bits(gpu));
    EXPECT_FALSE(start.weight.same_bits(gpu.weight)) << "nothing happened";
}

TEST(DeviceKernels, LambHasTheBitsOfTheCpu) {
    for (const auto& place : places) {
        expect_lamb<float, float, bf16>(5, 200'003, place, false);
        expect_lamb<bf16, float, bf16>(5, 70'000, place, true);
        expect_lamb<float, float, fp16>(40, 5'000, place, true);
    }
}

TEST(DeviceKernels, LambInPureBf16HasTheBitsOfTheCpu) {
    for (const auto& place : places) {
        expect_lamb<bf16, bf16, bf16>(5, 200'003, place, false);
        expect_lamb<float, bf16, bf16>(40, 5'000, place, false);
    }
}

TEST(DeviceKernels, MoreSegmentsThanATableHoldsAreTakenInTheirOrder) {
    expect_lamb<float, float, bf16>(150, 70'003, {0, 0, 0, 0}, true);
    expect_lamb<bf16, bf16, bf16>(150, 70'003, {0, 0, 0, 0}, false);
}

TEST(DeviceKernels, ALaunchThatIsRefusedIsSaidInTheWordsOfTheRuntime) {
    try {
        detail::throw_launch_failed("cudaErrorNoKernelImageForDevice",
                                    "no kernel image is available for execution on the device");
        FAIL();
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::device_failed);
        EXPECT_EQ(
            error.problem(),
            "an update could not be launched on the GPU: no kernel image is available for execution on the device "
            "(cudaErrorNoKernelImageForDevice)");
        EXPECT_NE(error.fix().find("CMAKE_CUDA_ARCHITECTURES"), std::string::npos);
    }
}

TEST(DeviceKernels, EmptyRunsLaunchNothing) {
    Host host;
    detail::launch_update<Descent, false>(Descent::Scalars{1.0F}, {}, std::span<const float>{}, std::span<float>{}, {},
                                          std::span<bf16>{}, {}, host.launch);
    detail::launch_update_average<float>(0.5, {}, {}, host.launch);
    std::vector<NormSquares> norms(1);
    detail::launch_advance<Lamb, float, float>(Lamb::scalars({}, 0.1, 1), {}, {}, {}, {},
                                               std::vector<Segment>{{0, 0, 0}}, {}, norms, {}, host.launch);
    EXPECT_EQ(host.launches, 0);
    EXPECT_EQ(sum_on_host(std::span<const float>{}), 0.0) << "but an empty sum is a sum";
}

}  // namespace
