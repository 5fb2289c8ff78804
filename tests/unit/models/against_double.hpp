#pragma once
// tests/unit/models/against_double.hpp - an operation in fp32 and bf16 beside the same in fp64, values and gradients.

#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

namespace against_double {

using Tensors = std::vector<at::Tensor>;

struct Outcome {
    at::Tensor value;
    Tensors gradients;
};

/// Value of operation(inputs), and gradients of a fixed weighted sum of it, computed in `type`; returned in double.
inline Outcome run(const std::function<at::Tensor(const Tensors&)>& operation, const Tensors& inputs,
                   at::ScalarType type) {
    Tensors leaves;
    for (const at::Tensor& input : inputs) leaves.push_back(input.to(type).detach().clone().requires_grad_(true));
    const at::Tensor y = operation(leaves);
    torch::manual_seed(7);
    const at::Tensor weight = at::randn(y.sizes(), at::kDouble).to(type);
    y.backward(weight);
    Outcome outcome{y.detach().to(at::kDouble), {}};
    for (const at::Tensor& leaf : leaves) outcome.gradients.push_back(leaf.grad().to(at::kDouble));
    return outcome;
}

/// Root mean square of a - b, as a share of that of b (of 1 where b is zero).
inline double deviation(const at::Tensor& a, const at::Tensor& b) {
    const double size = b.square().mean().sqrt().item<double>();
    return (a - b).square().mean().sqrt().item<double>() / (size > 1e-12 ? size : 1.0);
}

/// In fp32 and bf16 (kernels) as in fp64 (composed), up to rounding. Inputs are exact in bf16.
inline void expect_same(const std::function<at::Tensor(const Tensors&)>& operation, Tensors inputs) {
    for (at::Tensor& input : inputs) input = input.to(at::kBFloat16).to(at::kDouble);
    const Outcome exact = run(operation, inputs, at::kDouble);
    for (const auto& [type, bound] : {std::pair{at::kFloat, 2e-6}, std::pair{at::kBFloat16, 1.2e-2}}) {
        const Outcome fused = run(operation, inputs, type);
        EXPECT_LT(deviation(fused.value, exact.value), bound) << type;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            EXPECT_LT(deviation(fused.gradients[i], exact.gradients[i]), bound) << type << ", input " << i;
    }
}

inline at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

}  // namespace against_double
