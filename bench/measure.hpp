#pragma once
// bench/measure.hpp - what benches share: seconds of a call, medians over rounds, and the peer that run.sh names.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "peer_process.hpp"

namespace bench {

template <class Call>
double seconds_of(Call&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Median over the rounds of a / b.
inline double median_ratio(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] /= b[i];
    return median(std::move(a));
}

/// $BENCH_PEER_PYTHON $BENCH_PEER_SCRIPT, for a PeerProcess; empty if run.sh found no peer.
inline std::vector<std::string> peer_command() {
    const char* const python = std::getenv("BENCH_PEER_PYTHON");
    const char* const script = std::getenv("BENCH_PEER_SCRIPT");
    if (python == nullptr || script == nullptr) return {};
    return {python, script};
}

}  // namespace bench
