#pragma once
// strata/models/layer_adapter.hpp - LayerAdapter: what stands beside one layer's frozen weights and is trained in their place.
//
// A layer that can have one is an AdaptableLayer: strata's Linear and Conv2d (models/layers.hpp), and a module of your
// own that derives from it.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// What an adapter is made for.
struct LayerShape {
    std::int64_t in = 0;             ///< features, or channels
    std::int64_t out = 0;            ///< features, or channels
    std::int64_t kernel_height = 0;  ///< of a convolution; 0 for a linear layer
    std::int64_t kernel_width = 0;

    [[nodiscard]] bool is_convolution() const noexcept { return kernel_height > 0; }
};

/// A layer as its adapter sees it: weights that are not trained, and the sum that it makes of an input and of weights.
class BaseLayer {
public:
    virtual ~BaseLayer() = default;
    [[nodiscard]] virtual LayerShape shape() const = 0;
    /// (out, in), or (out, in, kh, kw), also where such a weight is used as a linear layer's. At stage 3 it has memory only while its unit computes.
    [[nodiscard]] virtual const at::Tensor& base_weight() const noexcept = 0;
    /// (out), or undefined.
    [[nodiscard]] virtual const at::Tensor& base_bias() const noexcept = 0;
    /// The layer's output for x with these weights in place of its own: of the same stride, padding and groups. `weight` may have
    /// another number of outputs or inputs than the layer's; `bias` may be undefined.
    [[nodiscard]] virtual at::Tensor sum(const at::Tensor& x, const at::Tensor& weight,
                                         const at::Tensor& bias) const = 0;
};

/// A module whose parameters are trained in place of a layer's weights. One kind is one class: adapters/lora.hpp has one.
class LayerAdapter : public torch::nn::Module {
public:
    /// What the layer gives for x, with its adapter: base.sum(x, base.base_weight(), base.base_bias()), and what is added to it.
    [[nodiscard]] virtual at::Tensor forward(const at::Tensor& x, const BaseLayer& base) = 0;
    /// The weight with which the layer alone would give the same, dropout aside: fp32, in the shape of `weight`.
    [[nodiscard]] virtual at::Tensor merged(const at::Tensor& weight) const = 0;
};

/// Whether the adapters of a model act: one for all of its layers, shared by them.
struct AdapterSwitch {
    bool there = false;  ///< some layer has one
    bool on = true;
};

/// A layer that an adapter can be attached to: at most one.
class AdaptableLayer : public BaseLayer {
public:
    /// Registers the adapter as the layer's child `name`, so that its parameters are `LAYER.name.*`. Throws Errc::bad_value where there is one.
    void attach(const std::string& name, std::shared_ptr<LayerAdapter> adapter,
                std::shared_ptr<const AdapterSwitch> acts);
    /// nullptr: none.
    [[nodiscard]] const std::shared_ptr<LayerAdapter>& adapter() const noexcept { return adapter_; }
    /// The module that this layer is.
    [[nodiscard]] virtual torch::nn::Module& module() noexcept = 0;

protected:
    /// Whether forward() is the adapter's.
    [[nodiscard]] bool adapter_acts() const noexcept { return adapter_ != nullptr && acts_->on; }
    [[nodiscard]] at::Tensor adapted(const at::Tensor& x) { return adapter_->forward(x, *this); }

private:
    std::shared_ptr<LayerAdapter> adapter_;
    std::shared_ptr<const AdapterSwitch> acts_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/layer_adapter.ipp>
#endif
