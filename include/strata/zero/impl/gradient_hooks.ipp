#pragma once
// strata/zero/impl/gradient_hooks.ipp - the only place that knows torch's autograd nodes.

#include <utility>
#include <vector>

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <strata/zero/detail/gradient_hooks.hpp>

namespace strata::zero::detail {

struct GradientHooks::Accumulators {
    // The pointer's type differs between versions of torch.
    using Pointer = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));
    std::vector<Pointer> nodes;
};

STRATA_INLINE GradientHooks::GradientHooks(std::span<const at::Tensor> parameters, Callback callback)
    : callback_{std::make_shared<Callback>(std::move(callback))}, accumulators_{std::make_unique<Accumulators>()} {
    using torch::autograd::variable_list;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        auto node = torch::autograd::impl::grad_accumulator(parameters[i]);
        node->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [i, weak = std::weak_ptr<Callback>{callback_}](const variable_list& outputs, const variable_list&) {
                if (const auto call = weak.lock()) (*call)(i);
                return outputs;
            }));
        accumulators_->nodes.push_back(std::move(node));
    }
}

STRATA_INLINE GradientHooks::~GradientHooks() = default;

}  // namespace strata::zero::detail
