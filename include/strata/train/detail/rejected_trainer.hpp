#pragma once
// strata/train/detail/rejected_trainer.hpp - what a Trainer is when its composition was refused: one sentence, any use.

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/optim/adamw.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/fit_result.hpp>
#include <strata/train/trainable.hpp>

namespace strata {

class Session;

namespace detail {

/// The update rule that Policies... name, where they name one that is known: options are then read as they were meant.
template <class... Policies>
struct RuleOrAdamW {
    using type = AdamW;
};
template <class... Policies>
requires optim::UpdateRule<typename select_t<slot::Update, Optimizer<AdamW>, Policies...>::rule>
struct RuleOrAdamW<Policies...> {
    using type = typename select_t<slot::Update, Optimizer<AdamW>, Policies...>::rule;
};

/// The adapters that Policies... name, where their kind is known: likewise.
template <class... Policies>
struct AdapterOrNone {
    using type = NoAdapter;
};
template <class... Policies>
requires rule::AdapterIsComplete<select_t<slot::Adaptation, NoAdapter, Policies...>>::holds struct AdapterOrNone<
    Policies...> {
    using type = select_t<slot::Adaptation, NoAdapter, Policies...>;
};

/// A composition that holds, whatever was given. With an average: it has the most members.
template <class... Policies>
using RejectedSetup =
    Setup<Optimizer<typename RuleOrAdamW<Policies...>::type>, Ema<>, typename AdapterOrNone<Policies...>::type>;

/// The model of a body that is never made. Declares what virtual functions of a run ask for, which are instantiated with it.
struct StandInModel {
    using Batch = at::Tensor;
    struct Item {
        [[nodiscard]] const std::string& key() const;
        [[nodiscard]] const at::Tensor& value() const;
    };
    [[nodiscard]] std::vector<Item> named_parameters() const;
    [[nodiscard]] std::vector<Item> named_buffers() const;
};

/// Prints the sentence of BrokenRule, then accepts any use, so that nothing else is printed. Its members are those of
/// a trainer's body over another composition and another model, so that none can be forgotten here; only what takes or
/// returns a model or batches is its own.
///
///   Body  TrainerBody<RejectedSetup<...>, StandInModel>
template <class BrokenRule, class Model, class Body>
class RejectedTrainer : public Body {
    static_assert(sizeof(typename BrokenRule::Report) > 0);  // no base: clang drops all members of such a class

public:
    using typename Body::Options;
    static constexpr bool is_rejected = true;
    template <class... A>
    explicit RejectedTrainer(A&&...) : Body{typename Body::Rejected{}} {}
    /// So that options in braces, whose type no template can deduce, are accepted too.
    template <class GivenModel>
    RejectedTrainer(Session&, GivenModel&&, const Options&) : Body{typename Body::Rejected{}} {}
    template <class Result = FitResult, class... A>
    Result fit(A&&...) {
        return {};
    }
    template <class... A>
    void evaluate_every(A&&...) {}
    Model& model();
    bool base_is_frozen();
};

}  // namespace detail
}  // namespace strata
