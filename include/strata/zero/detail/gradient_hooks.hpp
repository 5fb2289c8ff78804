#pragma once
// strata/zero/detail/gradient_hooks.hpp - a call whenever backward has finished a parameter's gradient.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>

namespace strata::zero::detail {

/// Calls back with a parameter's index once its .grad is final in a backward pass.
///
/// The hooks sit on the parameters' gradient accumulators, which only this object keeps alive: they end
/// with it. Make it last: a later set_data() to another dtype gives a tensor a new accumulator, without hook.
/// Exceptions of the callback leave backward().
class GradientHooks {
public:
    using Callback = std::function<void(std::size_t)>;

    /// Every tensor must be a leaf that requires a gradient.
    GradientHooks(std::span<const at::Tensor> parameters, Callback callback);
    ~GradientHooks();
    GradientHooks(const GradientHooks&) = delete;
    GradientHooks& operator=(const GradientHooks&) = delete;

private:
    struct Accumulators;
    std::shared_ptr<Callback> callback_;  // hooks hold it weakly: a graph may outlive this object
    std::unique_ptr<Accumulators> accumulators_;
};

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/gradient_hooks.ipp>
#endif
