#pragma once
// strata/train/trainable.hpp - what a trainer asks of its model, update rule and store, and the sentences if they lack it.

#include <concepts>

#include <ATen/core/Tensor.h>

#include <strata/optim/update_rule.hpp>
#include <strata/policy/backend.hpp>
#include <strata/storage/object_store.hpp>

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

/// A rule that is only declared fails as well: what a composition may leave open, a trainer must know.
template <class Rule>
struct OptimizerHasUpdateRule {
    static constexpr bool holds = optim::UpdateRule<Rule>;
    struct Report {
        static_assert(holds,
                      "[ST0009] Optimizer<Rule> names a type that is no complete update rule. Fix: include "
                      "<strata/optim/adamw.hpp> or <strata/optim/lion.hpp>, or give a rule of your own what "
                      "strata::optim::UpdateRule asks for.");
    };
};

/// Local may be only declared: a trainer that reads no files does not need it.
template <class Store>
struct BackendHasObjectStore {
    static constexpr bool holds = std::same_as<Store, Local> || storage::ObjectStore<Store>;
    struct Report {
        static_assert(holds,
                      "[ST0010] Backend<Store> names a type that is no object store. Fix: use Backend<Local>; "
                      "include <strata/storage/folder_or_bucket.hpp> for Backend<S3>; or give a store of your own what "
                      "strata::storage::ObjectStore asks for, and include its header.");
    };
};

}  // namespace rule
}  // namespace strata
