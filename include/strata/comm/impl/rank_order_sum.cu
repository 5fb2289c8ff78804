// strata/comm/impl/rank_order_sum.cu - rank_order_sum() for the three pairs of types that a reduce-scatter has.
//
// Compile with -fmad=false: the host's sums know no fused operations.

#include <algorithm>

#include <cuda_runtime.h>

#include <strata/comm/rank_order_sum.hpp>

namespace strata::comm {

namespace {

constexpr unsigned threads = 256;
constexpr std::size_t most_blocks = 2048;  // enough to fill any GPU; threads go round with this stride

template <int count, class In, class Out>
__global__ void __launch_bounds__(threads) sum_all(RankAddends<In> addends, std::size_t numel, Out* to) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads;
    const std::size_t whole = numel / count;
    const std::size_t first = static_cast<std::size_t>(blockIdx.x) * threads + threadIdx.x;
    for (std::size_t i = first; i < whole; i += stride) detail::sum_neighbours<count>(addends, i * count, to);
    const std::size_t rest = whole * count + first;
    if (rest < numel) detail::sum_neighbours<1>(addends, rest, to);
}

template <int count, class In, class Out>
int launch(const RankAddends<In>& addends, std::size_t numel, Out* to, void* stream) noexcept {
    const std::size_t blocks = (numel / count + threads) / threads;  // at least one, which takes the rest
    cudaLaunchConfig_t config{};
    config.gridDim = dim3{static_cast<unsigned>(std::min(blocks, most_blocks))};
    config.blockDim = dim3{threads};
    config.stream = static_cast<cudaStream_t>(stream);
    return static_cast<int>(cudaLaunchKernelEx(&config, sum_all<count, In, Out>, addends, numel, to));
}

template <class In, class Out>
int sum(const RankAddends<In>& addends, std::size_t numel, Out* to, void* stream) noexcept {
    if (numel == 0) return cudaSuccess;
    if (detail::lies_in_sixteens(addends, to)) return launch<detail::most_neighbours<In>>(addends, numel, to, stream);
    return launch<1>(addends, numel, to, stream);
}

}  // namespace

int rank_order_sum(const RankAddends<float>& addends, std::size_t count, float* to, void* stream) noexcept {
    return sum(addends, count, to, stream);
}

int rank_order_sum(const RankAddends<bf16>& addends, std::size_t count, bf16* to, void* stream) noexcept {
    return sum(addends, count, to, stream);
}

int rank_order_sum(const RankAddends<bf16>& addends, std::size_t count, float* to, void* stream) noexcept {
    return sum(addends, count, to, stream);
}

}  // namespace strata::comm
