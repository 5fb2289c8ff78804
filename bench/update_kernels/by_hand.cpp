// bench/update_kernels/by_hand.cpp - integer additions in place: what a loop over these bytes takes at least.

#include "by_hand.hpp"

#include <algorithm>

namespace by_hand {

namespace {

#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#define MEDIUM __attribute__((target("avx2")))
#endif
#define LOOP __attribute__((always_inline)) inline

template <class Gradient, class Kept, int kept_streams, bool with_copy>
struct Together {
    static LOOP void run(const Streams& s, std::int64_t begin, std::int64_t end) {
        const auto* const gradient = static_cast<const Gradient*>(s.gradient);
        Kept* const a = static_cast<Kept*>(s.kept[0]);
        Kept* const b = static_cast<Kept*>(s.kept[1]);
        Kept* const c = static_cast<Kept*>(s.kept[2]);
        std::uint16_t* const copy = s.copy;
#pragma GCC ivdep
        for (std::int64_t i = begin; i < end; ++i) {
            const Gradient g = gradient[i];
            a[i] = static_cast<Kept>(a[i] + static_cast<Kept>(g));
            b[i] = static_cast<Kept>(b[i] + 1);
            if constexpr (kept_streams > 2) c[i] = static_cast<Kept>(c[i] + 1);
            if constexpr (with_copy) copy[i] = static_cast<std::uint16_t>(g);
        }
    }
};

struct AddOne {
    static LOOP void run(std::uint32_t* values, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++values[i];
    }
};
struct Sum {
    static LOOP void run(const std::uint32_t* values, std::uint32_t* total, std::int64_t begin, std::int64_t end) {
        std::uint32_t sum = 0;
        for (std::int64_t i = begin; i < end; ++i) sum += values[i];
        *total += sum;
    }
};

#ifdef __x86_64__
template <class Loop, class... Args>
WIDE void wide(Args... args) {
    Loop::run(args...);
}
template <class Loop, class... Args>
MEDIUM void medium(Args... args) {
    Loop::run(args...);
}
#endif

template <class Loop, class... Args>
void run(Args... args) {
#ifdef __x86_64__
    static const int level = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2
                             : __builtin_cpu_supports("avx2")                                         ? 1
                                                                                                      : 0;
    if (level == 2) return wide<Loop, Args...>(args...);
    if (level == 1) return medium<Loop, Args...>(args...);
#endif
    Loop::run(args...);
}

template <class Call>
void shares(std::int64_t numel, Call&& call) {
    constexpr std::int64_t grain = 1 << 16;
    const std::int64_t grains = (numel + grain - 1) / grain;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < grains; ++i) call(i * grain, std::min(numel, (i + 1) * grain));
}

template <class Gradient, class Kept, int kept_streams, bool with_copy>
void walk(const Streams& s) {
    shares(s.numel, [&](std::int64_t begin, std::int64_t end) {
        run<Together<Gradient, Kept, kept_streams, with_copy>, const Streams&, std::int64_t, std::int64_t>(s, begin,
                                                                                                           end);
    });
}

}  // namespace

void together(const Streams& s) {
    const bool three = s.kept[2] != nullptr;
    using U2 = std::uint16_t;
    using U4 = std::uint32_t;
    if (s.kept_bytes == 2) return three ? walk<U2, U2, 3, false>(s) : walk<U2, U2, 2, false>(s);
    if (s.gradient_bytes == 4) return three ? walk<U4, U4, 3, false>(s) : walk<U4, U4, 2, false>(s);
    return three ? walk<U2, U4, 3, true>(s) : walk<U2, U4, 2, true>(s);
}

void one_by_one(const Streams& s) {
    for (void* const kept : s.kept) {
        if (kept == nullptr) continue;
        shares(s.numel * s.kept_bytes / 4, [&](std::int64_t begin, std::int64_t end) {
            run<AddOne, std::uint32_t*, std::int64_t, std::int64_t>(static_cast<std::uint32_t*>(kept), begin, end);
        });
    }
    std::uint32_t sum = 0;
    shares(s.numel * s.gradient_bytes / 4, [&](std::int64_t begin, std::int64_t end) {
        std::uint32_t total = 0;
        run<Sum, const std::uint32_t*, std::uint32_t*, std::int64_t, std::int64_t>(
            static_cast<const std::uint32_t*>(s.gradient), &total, begin, end);
#pragma omp atomic
        sum += total;
    });
    static volatile std::uint32_t sink = 0;
    sink = sink + sum;  // or nothing would be read
    if (s.copy == nullptr) return;
    shares(s.numel / 2, [&](std::int64_t begin, std::int64_t end) {
        std::fill(reinterpret_cast<std::uint32_t*>(s.copy) + begin, reinterpret_cast<std::uint32_t*>(s.copy) + end, 7U);
    });
}

}  // namespace by_hand
