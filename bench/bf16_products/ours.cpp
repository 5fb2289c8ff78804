// bench/bf16_products: what do products of bf16 take by way of fp32, by libtorch itself, and in fp32?
//
// Forward, and forward and backward with gradients of input, weight and bias, in turn; processor time, medians over rounds. Before a
// time is printed ours is as near to fp32 as rounding to bf16 allows; how far libtorch's is, whose slow loops sum in bf16, is
// printed. libtorch's operations are what PyTorch eager of the same version calls.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/models/wide_convolution.hpp>
#include <strata/models/wide_products.hpp>
#include <strata/train/tensor_memory.hpp>

#include "../measure.hpp"

namespace {

using Tensors = std::vector<at::Tensor>;
using Form = std::function<at::Tensor(const Tensors&)>;

struct Case {
    std::string name;
    std::vector<std::int64_t> x, weight;
    strata::models::ConvolutionForm form{};
    [[nodiscard]] bool is_linear() const { return weight.size() == 2; }
};

/// Processor time of a call, which other programs on the machine disturb less than they do the clock.
template <class Call>
double cpu_seconds_of(const Call& call) {
    const auto now = [] {
        timespec time{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double begin = now();
    call();
    return now() - begin;
}

/// A side's seconds, round by round.
struct Times {
    std::vector<double> forward, both;
};

struct Side {
    Form form;
    Tensors leaves;
    Times times{};
    Tensors results{};

    void round(const at::Tensor& grad) {
        for (const at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
        at::Tensor y;
        times.forward.push_back(cpu_seconds_of([&] { y = form(leaves); }));
        const at::Tensor slope = grad.to(y.scalar_type());
        times.both.push_back(times.forward.back() + cpu_seconds_of([&] { y.backward(slope); }));
        results = {y.detach()};
        for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
    }
};

double deviation(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor exact = b.to(at::kDouble);
    return ((a.to(at::kDouble) - exact).square().mean().sqrt() / exact.square().mean().sqrt()).item<double>();
}

bool measure(const Case& c, int rounds) {
    torch::manual_seed(1);
    const auto leaves = [&](at::ScalarType type) {
        torch::manual_seed(1);
        Tensors all{at::randn(c.x), at::randn(c.weight), at::randn({c.weight[0]})};
        for (at::Tensor& leaf : all) leaf = leaf.to(at::kBFloat16).to(type).requires_grad_();
        return all;
    };
    const Form libtorchs = [&](const Tensors& in) {
        return c.is_linear() ? at::linear(in[0], in[1], in[2])
                             : at::conv2d(in[0], in[1], in[2], c.form.stride, c.form.padding, c.form.dilation);
    };
    const Form wide = [&](const Tensors& in) {
        return c.is_linear() ? strata::models::wide_linear(in[0], in[1], in[2])
                             : strata::models::wide_conv2d(in[0], in[1], in[2], c.form);
    };
    std::array<Side, 3> sides{Side{wide, leaves(at::kBFloat16)}, Side{libtorchs, leaves(at::kBFloat16)},
                              Side{libtorchs, leaves(at::kFloat)}};
    const at::Tensor y = wide(sides[0].leaves).detach();
    const at::Tensor grad = at::randn(y.sizes()).to(at::kBFloat16);
    sides[2].round(grad);  // warms up
    sides[2].times = {};
    for (int i = 0; i < rounds; ++i)
        for (Side& side : sides) side.round(grad);
    double ours_away = 0, libtorch_away = 0;
    for (std::size_t i = 0; i < sides[0].results.size(); ++i) {
        ours_away = std::max(ours_away, deviation(sides[0].results[i], sides[2].results[i]));
        libtorch_away = std::max(libtorch_away, deviation(sides[1].results[i], sides[2].results[i]));
    }
    if (!(ours_away < 4e-3 && libtorch_away < 0.3)) {  // so for NaN
        std::fprintf(stderr, "%s: away from fp32 by %g, libtorch by %g\n", c.name.c_str(), ours_away, libtorch_away);
        return false;
    }
    // Each multiplication and addition is one; backward has two products of the size of forward's.
    const double work = 2e-9 * static_cast<double>(y.numel()) * static_cast<double>(sides[0].leaves[1].numel()) /
                        static_cast<double>(c.weight[0]);
    const auto rate = [&](const Side& side) { return 3 * work / bench::median(side.times.both); };
    std::printf(
        "{\"bench\":\"bf16_products\",\"case\":\"%s\",\"ours\":%.2f,\"unit\":\"ms of processor time\",\"forward\":%.2f,\"gflops\":%.1f,"
        "\"libtorch_gflops\":%.1f,\"fp32_gflops\":%.1f,\"ratio\":%.2f,\"ratio_forward\":%.2f,\"of_fp32\":%.3f,"
        "\"of_fp32_forward\":%.3f,\"away\":%.4f,\"libtorch_away\":%.4f}\n",
        c.name.c_str(), 1e3 * bench::median(sides[0].times.both), 1e3 * bench::median(sides[0].times.forward),
        rate(sides[0]), rate(sides[1]), rate(sides[2]), bench::median_ratio(sides[1].times.both, sides[0].times.both),
        bench::median_ratio(sides[1].times.forward, sides[0].times.forward),
        bench::median_ratio(sides[2].times.both, sides[0].times.both),
        bench::median_ratio(sides[2].times.forward, sides[0].times.forward), ours_away, libtorch_away);
    std::fflush(stdout);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const bool has_rounds = argc == 3 && std::string_view{argv[1]} == "--rounds";
    const int rounds = has_rounds ? std::atoi(argv[2]) : 3;
    if ((argc != 1 && !has_rounds) || rounds < 1) {
        std::fprintf(stderr, "usage: bench/run.sh bf16_products [--rounds N]\n");
        return 2;
    }
    strata::train::keep_tensor_memory();  // as every Session does
    std::fprintf(stderr, "products of bf16 %s slow on this CPU, by what it says of itself\n",
                 strata::models::bf16_products_are_slow() ? "are" : "are not");
    const std::vector<Case> cases{
        {"linear, 128 rows, 3072 to 3072", {128, 3072}, {3072, 3072}},
        {"linear, 384 rows, 3072 to 12288", {384, 3072}, {12288, 3072}},
        {"linear, 1024 rows, 640 to 5120", {1024, 640}, {5120, 640}},
        {"linear, 1024 rows, 640 to 640", {1024, 640}, {640, 640}},
        {"linear, 77 rows, 2048 to 640", {77, 2048}, {640, 2048}},
        {"linear, 16 rows, 640 to 640", {16, 640}, {640, 640}},
        {"3 x 3, 320 to 320 channels, 32 x 32", {1, 320, 32, 32}, {320, 320, 3, 3}, {.padding = {1, 1}}},
        {"3 x 3, 640 to 640 channels, 16 x 16", {1, 640, 16, 16}, {640, 640, 3, 3}, {.padding = {1, 1}}},
        {"1 x 1, 320 to 640 channels, 32 x 32", {1, 320, 32, 32}, {640, 320, 1, 1}},
        {"halving, 320 channels, 32 x 32", {1, 320, 32, 32}, {320, 320, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}},
        {"3 x 3, 4 to 320 channels, 64 x 64", {1, 4, 64, 64}, {320, 4, 3, 3}, {.padding = {1, 1}}}};
    bool right = true;
    for (const Case& c : cases) right = measure(c, rounds) && right;
    return right ? 0 : 1;
}
