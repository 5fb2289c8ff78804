#pragma once
// strata/train/trainable.hpp - what a trainer asks of its model, update rule and store, and the sentences if they lack it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <ATen/core/Tensor.h>

#include <strata/core/option_check.hpp>
#include <strata/core/policy.hpp>
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

/// A loss of another type than Tensor: `double`, say, which is what loss.item() makes of it.
template <class Model>
struct LossIsATensor {
    static constexpr bool holds = [] {
        if constexpr (requires(Model & model, const typename Model::Batch& batch) { model.loss(batch); }) {
            return requires(Model & model, const typename Model::Batch& batch) {
                { model.loss(batch) } -> std::convertible_to<at::Tensor>;
            };
        } else {
            return true;  // no loss at all: ModelIsTrainable
        }
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0013] The model's loss(batch) returns no torch::Tensor, so that no gradient can be computed of "
            "it. Fix: return the scalar tensor itself, without item(): `torch::Tensor loss(const Batch& batch)`.");
    };
};

template <class Model>
struct ModelIsTrainable {
    static constexpr bool holds = Trainable<Model>;
    struct Report {
        static_assert(
            holds,
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
                      "strata::optim::UpdateRule asks for, an apply() with `float& weight` among it "
                      "(docs/write-an-update-rule.md).");
    };
};

/// Looked at after OptimizerHasUpdateRule.
template <class Rule>
struct RuleNamesItsStates {
    static constexpr bool holds = requires {
        typename strata::detail::Constant<optim::has_names_of_states<Rule>()>;
        requires optim::has_names_of_states<Rule>();
    };
    struct Report {
        static_assert(
            holds,
            "[ST0141] The state_names of an update rule of your own cannot be those of a checkpoint: two are "
            "the same, or one is empty, 'weight' or 'average', or they are not constexpr. Fix: write one name "
            "for each state, as in `static constexpr std::array<std::string_view, 2> "
            "state_names{\"exp_avg\", \"exp_avg_sq\"};`.");
    };
};

///   Rule     an update rule
///   Average  the options of an averaging policy
template <class Rule, class Average>
struct OptionsAreRead {
    static constexpr bool has_initial_state = requires { &Rule::initial_state; };
    static constexpr bool starts = requires(const typename Rule::Options& options) {
        { Rule::initial_state(options, std::size_t{}) } -> std::convertible_to<float>;
    };
    static constexpr bool holds = std::default_initializable<Average> && std::copyable<Average> &&
                                  options_are_read_v<typename Rule::Options> && options_are_read_v<Average> &&
                                  (starts || !has_initial_state);
    struct Report {
        static_assert(
            holds,
            "[ST0142] The Options of an update rule or an average of your own have no defaults, or it has a describe(), "
            "check() or initial_state() that nothing can call. Fix: give every option a default, and write `static void "
            "describe(auto& option)`, `void check(OptionCheck& check) const` or `static float initial_state(const "
            "Options& options, std::size_t state)`.");
    };
};

/// A kind that is only declared fails as well.
template <class Adaptation>
struct AdapterIsComplete {
    static constexpr bool holds = [] {
        if constexpr (!Adaptation::enabled || std::is_void_v<typename Adaptation::kind>)
            return true;
        else
            return requires {
                typename Adaptation::kind::Options;
                { Adaptation::kind::name } -> std::convertible_to<std::string_view>;
                &Adaptation::kind::make;
                sizeof(typename Adaptation::work);
            };
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0153] Adapter<Kind> names a kind of adapter that is not defined here, or not a kind. Fix: "
            "include <strata/adapters/lora.hpp> or <strata/adapters/lokr.hpp>; a kind of your own has Options, a "
            "name and make(), and its header includes <strata/adapters/adapt.hpp> (docs/write-an-adapter.md).");
    };
};

/// Local may be only declared: a trainer that reads no files does not need it.
template <class Store>
struct BackendHasObjectStore {
    static constexpr bool holds = std::same_as<Store, Local> || storage::ObjectStore<Store>;
    struct Report {
        static_assert(holds,
                      "[ST0010] Backend<Store> names a type that is no object store. Fix: use Backend<Local>; "
                      "include <strata/s3/folder_or_bucket.hpp> for Backend<S3>; or give a store of your own what "
                      "strata::storage::ObjectStore asks for, and include its header.");
    };
};

/// What fit() reads batches from has the four calls of BatchSource.
template <class Source>
struct SourceCanBeRead {
    static constexpr bool holds = requires(Source & source, std::int64_t micro_batch) {
        source.next();
        source.seek(micro_batch);
        { source.micro_batches_per_epoch() } -> std::convertible_to<std::int64_t>;
        { source.samples_per_micro_batch() } -> std::convertible_to<std::int64_t>;
    };
    struct Report {
        static_assert(
            holds,
            "[ST0014] fit(source) was given something that is no source of batches. Fix: make it a "
            "FunctionSource{make, micro_batches_per_epoch, samples_per_micro_batch}, or give a type of your own "
            "next(), seek(micro_batch), micro_batches_per_epoch() and samples_per_micro_batch().");
    };
};

/// And it makes what the model learns from.
template <class Source, class Batch>
struct SourceMakesTheModelsBatch {
    static constexpr bool holds = requires(Source & source) {
        { source.next() } -> std::convertible_to<Batch>;
    };
    struct Report {
        static_assert(
            holds,
            "[ST0015] fit(source) was given a source whose next() returns another type than the model's Batch. "
            "Fix: let it return Model::Batch, or change `using Batch = ...;` and loss(batch) in the model.");
    };
};

}  // namespace rule
}  // namespace strata
