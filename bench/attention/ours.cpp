// bench/attention: is attention in tiles as fast as with all scores in memory, and how much memory does it take?
//
// Forward and backward of attention(), of the same with all scores kept (softmax in one pass of ours), and of
// libtorch's matmul, softmax, matmul; in turn, medians over rounds. All three agree before a time is printed.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>
#include <torch/torch.h>

#include <strata/models/attention.hpp>

#include "../measure.hpp"
#include "by_hand.hpp"

namespace {

using Tensors = std::vector<at::Tensor>;
using Form = std::function<at::Tensor(const Tensors&)>;

struct Shape {
    std::int64_t tokens, heads, width;
    at::ScalarType type;
    [[nodiscard]] std::string name() const {
        return std::to_string(tokens) + " tokens, " + std::to_string(heads) + " heads of " + std::to_string(width) +
               (type == at::kFloat ? ", fp32" : ", bf16");
    }
};

at::Tensor composed_by_libtorch(const Tensors& in) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(in[0].size(3)));
    const at::Tensor p = at::softmax(at::matmul(in[0], in[1].transpose(2, 3)) * scale, -1);
    return at::matmul(p, in[2]).transpose(1, 2).flatten(2);
}

Tensors run(const Form& form, const Tensors& leaves, const at::Tensor& grad) {
    for (const at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
    const at::Tensor y = form(leaves);
    y.backward(grad);
    Tensors values{y.detach()};
    for (const at::Tensor& leaf : leaves) values.push_back(leaf.grad());
    return values;
}

/// KiB of a line of /proc/self/status.
long status(const std::string& key) {
    std::ifstream file{"/proc/self/status"};
    for (std::string line; std::getline(file, line);)
        if (line.rfind(key, 0) == 0) return std::strtol(line.c_str() + key.size(), nullptr, 10);
    return 0;
}

/// MiB that a call needs beyond what is there before it.
double peak_of(const std::function<void()>& call) {
    malloc_trim(0);  // what was freed and is kept would hide what is asked for
    std::ofstream{"/proc/self/clear_refs"} << 5;
    const long before = status("VmRSS:");
    call();
    return static_cast<double>(status("VmHWM:") - before) / 1024;
}

double deviation(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor exact = b.to(at::kDouble);
    return ((a.to(at::kDouble) - exact).square().mean().sqrt() / exact.square().mean().sqrt()).item<double>();
}

void measure(const Shape& shape, int rounds, const strata::models::AttentionOptions& options) {
    torch::manual_seed(1);
    const auto random = [&] { return at::randn({1, shape.heads, shape.tokens, shape.width}).to(shape.type); };
    Tensors leaves{random(), random(), random()};
    for (at::Tensor& leaf : leaves) leaf.requires_grad_();
    const at::Tensor grad = at::randn({1, shape.tokens, shape.heads * shape.width}).to(shape.type);
    const std::vector<std::pair<std::string, Form>> forms{
        {"tiles", [&](const Tensors& in) { return strata::models::attention(in[0], in[1], in[2], options); }},
        {"composed", [](const Tensors& in) { return by_hand::Attention::apply(in[0], in[1], in[2]); }},
        {"libtorch", composed_by_libtorch}};

    std::vector<Tensors> values;
    std::vector<double> peaks;
    for (const auto& [name, form] : forms) {
        values.push_back(run(form, leaves, grad));
        peaks.push_back(peak_of([&] { run(form, leaves, grad); }));
    }
    for (std::size_t i = 0; i < values[0].size(); ++i)
        for (std::size_t other : {1U, 2U})
            if (!(deviation(values[0][i], values[other][i]) < (shape.type == at::kFloat ? 1e-5 : 0.03))) {
                std::fprintf(stderr, "%s: value %zu differs from %s\n", shape.name().c_str(), i,
                             forms[other].first.c_str());
                std::exit(1);
            }
    values.clear();

    std::vector<std::vector<double>> both(forms.size()), forward(forms.size());
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < forms.size(); ++i) {
            const std::size_t f = (i + static_cast<std::size_t>(round)) % forms.size();
            at::Tensor y;
            const double up = bench::seconds_of([&] { y = forms[f].second(leaves); });
            forward[f].push_back(up);
            both[f].push_back(up + bench::seconds_of([&] { y.backward(grad); }));
        }
    for (std::size_t other : {1U, 2U})
        std::printf(
            "{\"bench\":\"attention\",\"case\":\"%s\",\"ours\":%.2f,\"unit\":\"ms forward and backward\",\"peer\":%.2f,"
            "\"peer_name\":\"%s\",\"ratio\":%.3f,\"forward_ratio\":%.3f,\"peak_mib\":%.0f,\"peer_peak_mib\":%.0f}\n",
            shape.name().c_str(), 1e3 * bench::median(both[0]), 1e3 * bench::median(both[other]),
            forms[other].first.c_str(), bench::median_ratio(both[other], both[0]),
            bench::median_ratio(forward[other], forward[0]), peaks[0], peaks[other]);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    std::map<std::string, std::int64_t> given{{"--rounds", 7}, {"--tokens", 0}, {"--queries", 0}, {"--keys", 0}};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!given.contains(argv[i])) {
            std::fprintf(stderr, "usage: %s [--rounds N] [--tokens L] [--queries N --keys N]\n", argv[0]);
            return 2;
        }
        given[argv[i]] = std::atol(argv[i + 1]);
    }
    strata::models::AttentionOptions options;
    if (given["--queries"] > 0) options.tiles = strata::models::AttentionTiles{given["--queries"], given["--keys"]};
    for (const std::int64_t tokens : {1024, 4096})
        for (const std::int64_t width : {64, 128})
            for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
                if (given["--tokens"] == 0 || given["--tokens"] == tokens)
                    measure({tokens, tokens == 1024 ? 24 : 6, width, type}, static_cast<int>(given["--rounds"]),
                            options);
    return 0;
}
