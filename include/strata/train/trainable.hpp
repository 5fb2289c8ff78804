#pragma once
// strata/train/trainable.hpp - what a model must offer to be trained, and the sentence if it does not.

#include <concepts>

#include <ATen/core/Tensor.h>

namespace strata {

/// A torch::nn::Module that says what it learns from and how wrong it is.
///
///   Batch        the type of one micro-batch; a type of your own
///   loss(batch)  a scalar tensor, the mean over the micro-batch's samples; differentiable. Randomness comes
///                from libtorch's default generator, which the trainer seeds before every call
template <class M>
concept Trainable = requires(M& model, const typename M::Batch& batch) {
    { model.loss(batch) } -> std::convertible_to<at::Tensor>;
    model.named_parameters();
    model.train();
};

namespace rule {

template <class Model>
struct ModelIsTrainable {
    static constexpr bool holds = Trainable<Model>;
    struct Report {
        static_assert(holds,
                      "[ST0007] The first argument of Trainer<Model, ...> is not a trainable model. Fix: derive it from "
                      "torch::nn::Module, say `using Batch = ...;` and write `torch::Tensor loss(const Batch& batch);`.");
    };
};

}  // namespace rule
}  // namespace strata
