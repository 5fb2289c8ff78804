// bench/update_kernels/ours.cpp - is the fused CPU update as fast as memory, and how much faster than torch.optim?
//
// Every round runs ours, the limit and the peer once each. Rates are medians over the rounds, ratios are medians of the
// rounds' own ratios. Before a time is printed, ours is
// compared with double arithmetic, and with the peer's weights where there is a peer.

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/update_kernel.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

using bench::median, bench::median_ratio, bench::seconds_of;
using strata::bf16;

constexpr double lr = 1e-3;
constexpr double weight_decay = 0.01;

/// Memory as training has it: large, on its own pages, first touched by the thread that uses it.
template <class T>
class Buffer {
public:
    explicit Buffer(std::int64_t numel) : numel_{numel}, data_{static_cast<T*>(std::aligned_alloc(4096, bytes()))} {
        if (data_ == nullptr) throw std::bad_alloc{};
        T* const to = data_.get();
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < numel; ++i) to[i] = T{};
    }
    [[nodiscard]] std::span<T> span() const { return {data_.get(), static_cast<std::size_t>(numel_)}; }
    [[nodiscard]] T* data() const { return data_.get(); }

private:
    struct Free {
        void operator()(T* pointer) const { std::free(pointer); }
    };
    [[nodiscard]] std::size_t bytes() const {
        return (static_cast<std::size_t>(numel_) * sizeof(T) + 4095) / 4096 * 4096;
    }
    std::int64_t numel_;
    std::unique_ptr<T[], Free> data_;
};

float start_value(std::int64_t i, std::int64_t factor) {
    return static_cast<float>((i * factor) % 65536) / 65536.0F - 0.5F;
}

/// Seconds of one step of torch.optim; its first weights go to `weights`.
double step_of(bench::PeerProcess& peer, const std::string& name, int threads, std::int64_t numel,
               std::array<double, 4>& weights) {
    peer.say(name + " " + std::to_string(threads) + " " + std::to_string(numel));
    std::istringstream said{peer.hear()};
    double seconds = 0;
    said >> seconds >> weights[0] >> weights[1] >> weights[2] >> weights[3];
    if (!said) {
        std::fprintf(stderr, "the peer has died\n");
        std::exit(1);
    }
    return seconds;
}

void reference(const strata::AdamW::Options& o, int t, double& w, double g, double* s) {
    w *= 1 - lr * o.weight_decay;
    s[0] = o.beta1 * s[0] + (1 - o.beta1) * g;
    s[1] = o.beta2 * s[1] + (1 - o.beta2) * g * g;
    w -= lr * (s[0] / (1 - std::pow(o.beta1, t))) / (std::sqrt(s[1] / (1 - std::pow(o.beta2, t))) + o.epsilon);
}
void reference(const strata::Lion::Options& o, int, double& w, double g, double* s) {
    const double c = o.beta1 * s[0] + (1 - o.beta1) * g;
    w -= lr * ((c > 0 ? 1 : c < 0 ? -1 : 0) + o.weight_decay * w);
    s[0] = o.beta2 * s[0] + (1 - o.beta2) * g;
}

[[noreturn]] void wrong(const std::string& name, const char* what) {
    std::fprintf(stderr, "%s: the answer is wrong (%s); no time is printed\n", name.c_str(), what);
    std::exit(1);
}

struct Settings {
    std::int64_t numel = (std::int64_t{1} << 24) + 12345;
    int rounds = 15;
    std::vector<int> threads{1, 2};
};

/// One case: G gradients, K weights and states, a bf16 copy beside fp32 ones when G is bf16.
template <class Rule, class G, class K>
void measure(const std::string& name, const std::string& peer_case, const Settings& settings, int threads,
             bench::PeerProcess& peer) {
    constexpr std::size_t states = Rule::state_names.size();
    constexpr bool with_copy = sizeof(G) == 2 && sizeof(K) == 4;
    omp_set_num_threads(threads);
    const std::int64_t n = settings.numel;
    const Buffer<G> gradient{n};
    const Buffer<K> weight{n};
    const Buffer<bf16> copy{with_copy ? n : 0};
    std::vector<Buffer<K>> state;
    for (std::size_t k = 0; k < states; ++k) state.emplace_back(n);
    const auto put = [](auto& to, float value) {
        if constexpr (sizeof to == 2) {
            to = strata::to_bf16(value);
        } else {
            to = value;
        }
    };
    for (std::int64_t i = 0; i < n; ++i) {
        put(gradient.data()[i], start_value(i, 30011));
        put(weight.data()[i], start_value(i, 40503));
    }
    const typename Rule::Options options{.weight_decay = weight_decay};
    int step = 0;
    const auto ours = [&] {
        ++step;
        std::array<std::span<K>, states> spans;
        for (std::size_t k = 0; k < states; ++k) spans[k] = state[k].span();
        const auto scalars = Rule::scalars(options, lr, step);
        const std::span<const G> g = gradient.span();
        if constexpr (sizeof(K) == 2) {
            strata::optim::update<Rule, G>(scalars, {}, g, weight.span(), spans, {.seed = 1, .step = step});
        } else {
            strata::optim::update<Rule, G, bf16>(scalars, {}, g, weight.span(), spans, copy.span());
        }
    };

    // Verify: three steps of some elements in double, then of the peer. Pure bf16 is right on average only.
    std::array<double, 4> theirs{};
    const bool has_peer = peer.there() && !peer_case.empty();
    std::vector<double> error;
    for (int t = 1; t <= 3; ++t) {
        ours();
        if (has_peer) step_of(peer, peer_case, threads, n, theirs);
    }
    for (std::int64_t i = 0; i < n; i += 9973) {
        const auto number = [](auto value) {
            if constexpr (sizeof value == 2) {
                return static_cast<double>(strata::to_float(value));
            } else {
                return static_cast<double>(value);
            }
        };
        K first;
        put(first, start_value(i, 40503));
        double w = number(first);
        std::array<double, states> s{};
        for (int t = 1; t <= 3; ++t) reference(options, t, w, number(gradient.data()[i]), s.data());
        error.push_back(number(weight.data()[i]) - w);
        if (sizeof(K) == 4 && std::abs(error.back()) > 1e-6) wrong(name, "against double");
        if (with_copy && copy.data()[i] != strata::to_bf16(static_cast<float>(number(weight.data()[i]))))
            wrong(name, "copy");
    }
    double mean = 0;
    for (const double e : error) mean += e / static_cast<double>(error.size());
    if (std::abs(mean) > 1e-4) wrong(name, "biased");
    for (std::size_t i = 0; has_peer && i < 4; ++i) {
        if constexpr (sizeof(K) == 4) {
            if (std::abs(theirs[i] - static_cast<double>(weight.data()[i])) > 1e-5) wrong(name, "against the peer");
        }
    }

    by_hand::Streams streams{.numel = n,
                             .kept_bytes = sizeof(K),
                             .gradient = gradient.data(),
                             .gradient_bytes = sizeof(G),
                             .copy = with_copy ? reinterpret_cast<std::uint16_t*>(copy.data()) : nullptr};
    // The limit works on buffers of its own: its integers would become NaN in ours.
    const Buffer<K> other_weight{n};
    std::vector<Buffer<K>> other_state;
    for (std::size_t k = 0; k < states; ++k) other_state.emplace_back(n);
    streams.kept[0] = other_weight.data();
    for (std::size_t k = 0; k < states; ++k) streams.kept[k + 1] = other_state[k].data();

    // What the narrow gradient and the copy cost: the same rule all in fp32, in the same rounds.
    const std::int64_t wide_n = with_copy ? n : 0;
    const Buffer<float> wide_gradient{wide_n};
    const Buffer<float> wide_weight{wide_n};
    std::vector<Buffer<float>> wide_state;
    for (std::size_t k = 0; k < states; ++k) wide_state.emplace_back(wide_n);
    for (std::int64_t i = 0; i < wide_n; ++i) {
        wide_gradient.data()[i] = start_value(i, 30011);
        wide_weight.data()[i] = start_value(i, 40503);
    }
    const auto wide = [&] {
        std::array<std::span<float>, states> spans;
        for (std::size_t k = 0; k < states; ++k) spans[k] = wide_state[k].span();
        const std::span<const float> g = wide_gradient.span();
        strata::optim::update<Rule, float>(Rule::scalars(options, lr, step), {}, g, wide_weight.span(), spans);
    };

    // Other programs come and go: what is compared is what ran in the same round, in an order that turns round.
    std::vector<double> t_ours, t_together, t_single, t_peer, t_wide;
    for (int round = 0; round < settings.rounds; ++round) {
        for (int turn = 0; turn < 5; ++turn) {
            switch (round % 2 == 0 ? turn : 4 - turn) {
                case 0:
                    t_ours.push_back(seconds_of(ours));
                    break;
                case 1:
                    t_together.push_back(seconds_of([&] { by_hand::together(streams); }));
                    break;
                case 2:
                    t_wide.push_back(seconds_of(wide));
                    break;
                case 3:
                    t_single.push_back(seconds_of([&] { by_hand::one_by_one(streams); }));
                    break;
                default:
                    if (has_peer) t_peer.push_back(step_of(peer, peer_case, threads, n, theirs));
            }
        }
    }
    const double bytes =
        static_cast<double>(n) * static_cast<double>(sizeof(G) + 2 * sizeof(K) * (1 + states) + (with_copy ? 2 : 0));
    const double ours_s = median(t_ours);
    const std::vector<double>& t_limit = median(t_together) < median(t_single) ? t_together : t_single;
    std::printf("{\"bench\":\"update_kernels\",\"case\":\"%s, %d thread%s\",\"ours\":%.2f,\"unit\":\"GB/s\",",
                name.c_str(), threads, threads == 1 ? "" : "s", bytes / ours_s / 1e9);
    if (has_peer) {
        std::printf("\"peer\":%.2f,\"peer_name\":\"torch.optim.AdamW %s\",\"ratio\":%.2f,",
                    bytes / median(t_peer) / 1e9, peer.version().c_str(), median_ratio(t_peer, t_ours));
    }
    if (with_copy) std::printf("\"of_fp32_elements_per_second\":%.3f,", median_ratio(t_wide, t_ours));
    std::printf(
        "\"limit\":%.2f,\"limit_name\":\"in-place read/write loop\",\"of_limit\":%.3f,\"elements_per_second\":%.4g}\n",
        bytes / median(t_limit) / 1e9, median_ratio(t_limit, t_ours), static_cast<double>(n) / ours_s);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--threads") settings.threads = {std::atoi(argv[i + 1])};
        if (flag == "--rounds") settings.rounds = std::atoi(argv[i + 1]);
        if (flag == "--numel") settings.numel = std::atoll(argv[i + 1]);
    }
    bench::PeerProcess peer{bench::peer_command()};
    for (const int threads : settings.threads) {
        measure<strata::AdamW, float, float>("adamw fp32", "adamw_fp32", settings, threads, peer);
        measure<strata::AdamW, bf16, float>("adamw bf16 gradient, fp32 state, bf16 parameter", "adamw_mixed", settings,
                                            threads, peer);
        measure<strata::AdamW, bf16, bf16>("adamw pure bf16", "", settings, threads, peer);
        measure<strata::Lion, float, float>("lion fp32", "", settings, threads, peer);
        measure<strata::Lion, bf16, float>("lion bf16 gradient, fp32 state, bf16 parameter", "", settings, threads,
                                           peer);
        measure<strata::Lion, bf16, bf16>("lion pure bf16", "", settings, threads, peer);
    }
    return 0;
}
