#pragma once
// bench/step_time/by_hand.hpp - a training step without an engine: autograd's gradients, and the update kernel on each.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/optim/adamw.hpp>
#include <strata/optim/update_kernel.hpp>

namespace by_hand {

/// One process on its own; the same backward() and step() as strata::zero::Engine.
class Loop {
public:
    explicit Loop(std::vector<torch::Tensor> parameters) : parameters_{std::move(parameters)} {
        for (const torch::Tensor& p : parameters_) {
            exp_avg_.push_back(torch::zeros_like(p));
            exp_avg_sq_.push_back(torch::zeros_like(p));
        }
    }

    void backward(const torch::Tensor& loss) { loss.backward(); }

    void step(double lr) {
        const auto scalars = strata::AdamW::scalars({}, lr, ++steps_);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const torch::Tensor gradient = parameters_[i].grad().contiguous();
            strata::optim::update<strata::AdamW, float>(scalars, {}, values(gradient), values(parameters_[i]),
                                                        {values(exp_avg_[i]), values(exp_avg_sq_[i])});
            parameters_[i].unsafeGetTensorImpl()->bump_version();
            parameters_[i].mutable_grad().reset();
        }
    }

private:
    static std::span<float> values(const torch::Tensor& tensor) {
        return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
    }
    std::vector<torch::Tensor> parameters_, exp_avg_, exp_avg_sq_;
    std::int64_t steps_ = 0;
};

}  // namespace by_hand
