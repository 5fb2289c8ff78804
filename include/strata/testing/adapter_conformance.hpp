#pragma once
// strata/testing/adapter_conformance.hpp - does a kind of adapter do what adapt() and a trainer rely on?

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>

#include <strata/adapters/adapt.hpp>
#include <strata/models/layers.hpp>

namespace strata::testing {
namespace detail {

/// What is wrong with the kind on one layer, which says how it is called in messages.
template <class Kind, class Layer>
void look_at_adapter(Layer& layer, const at::Tensor& x, const std::string& called,
                     const typename Kind::Options& options, std::vector<std::string>& failures) {
    const auto fails = [&](bool wrong, const std::string& what) {
        if (wrong) failures.push_back(called + ": " + what);
    };
    const auto made = [&] {
        torch::manual_seed(7);
        return std::shared_ptr<models::LayerAdapter>{Kind::make(layer.shape(), options)};
    };
    for (at::Tensor& parameter : layer.parameters()) parameter.requires_grad_(false);
    const at::Tensor plain = layer.forward(x);
    const auto adapter = made();
    const std::vector<at::Tensor> parameters = adapter->parameters(), again = made()->parameters();
    fails(parameters.empty(), "it has no parameters, so that nothing is trained");
    bool alike = parameters.size() == again.size();
    for (std::size_t i = 0; alike && i < parameters.size(); ++i) alike = at::equal(parameters[i], again[i]);
    fails(!alike, "made twice from one state of libtorch's generator it differs: ranks would, too");
    for (const at::Tensor& parameter : parameters) {
        fails(!parameter.is_cpu() || parameter.scalar_type() != at::kFloat, "a parameter is not fp32 on the CPU");
        fails(!parameter.requires_grad(), "a parameter requires no gradient");
        fails(parameter.numel() == 0, "a parameter has no elements");
    }
    layer.attach(std::string{Kind::name}, adapter, std::make_shared<models::AdapterSwitch>());
    layer.eval();
    fails(!at::allclose(layer.forward(x), plain, 1e-5, 1e-5), "at first it changes what the layer gives");

    {
        const at::NoGradGuard no_grad;
        for (at::Tensor parameter : parameters) parameter.add_(at::randn(parameter.sizes()), 0.2);
    }
    const at::Tensor y = layer.forward(x);
    fails(y.sizes() != plain.sizes(), "what the layer gives has another shape with it");
    if (y.sizes() != plain.sizes()) return;
    y.square().sum().backward();
    for (const at::Tensor& parameter : parameters) fails(!parameter.grad().defined(), "a parameter gets no gradient");
    fails(layer.weight.grad().defined(), "the layer's own weight gets a gradient");
    const at::Tensor merged = adapter->merged(layer.weight);
    fails(merged.sizes() != layer.weight.sizes() || merged.scalar_type() != at::kFloat,
          "merged() is not fp32 in the weight's shape");
    fails(!at::allclose(layer.sum(x, merged.view(layer.weight.sizes()), layer.bias), y.detach(), 1e-4, 1e-4),
          "a layer of the merged weight gives something else than the layer with its adapter");
}

}  // namespace detail

/// Whether a kind of adapter does what AdapterKind says, of a linear layer and a convolution; returns what does not hold, one sentence
/// each, empty when all does. A kind whose options make it change something at first fails for these options. Local, a second; seeds
/// libtorch's generator.
template <adapters::AdapterKind Kind>
[[nodiscard]] std::vector<std::string> adapter_failures(const typename Kind::Options& options = {}) {
    std::vector<std::string> failures;
    torch::manual_seed(3);
    models::Linear linear{24, 36};
    detail::look_at_adapter<Kind>(linear, at::randn({2, 5, 24}), "Linear(24, 36)", options, failures);
    models::Conv2d convolution{8, 12, 3, 2, 1};
    detail::look_at_adapter<Kind>(convolution, at::randn({2, 8, 6, 5}), "Conv2d(8, 12, 3)", options, failures);
    return failures;
}

}  // namespace strata::testing
