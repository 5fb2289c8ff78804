#pragma once
// strata/zero/detail/unit_call.hpp - UnitCall: a block's forward() with its engine's hooks around it.

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>

#include <strata/core/error.hpp>
#include <strata/zero/detail/recompute.hpp>
#include <strata/zero/tensors_in.hpp>
#include <strata/zero/unit_link.hpp>

namespace strata::zero::detail {

/// What a unit sees of its inputs: an alias of each that requires a gradient. Its gradients of all uses inside of the
/// unit are therefore added up first, and then to those of uses outside, however the unit is run: recomputation does so,
/// and sums have other bits in another order. Nothing but later computation comes between an alias and the unit's end in
/// backward, so its gradient tells when backward has left the unit.
class InputAliases {
public:
    [[nodiscard]] at::Tensor inside(const at::Tensor& input) {
        if (!input.requires_grad() || input.layout() != at::kStrided) return input;
        for (const auto& [outer, inner] : pairs_) {
            if (outer.is_same(input)) return inner;
        }
        return pairs_.emplace_back(input, at::alias(input)).second;
    }
    /// The input whose alias a tensor is; nullptr for other tensors.
    [[nodiscard]] const at::Tensor* outside(const at::Tensor& tensor) const {
        for (const auto& [outer, inner] : pairs_) {
            if (inner.is_same(tensor)) return &outer;
        }
        return nullptr;
    }
    /// Tells the unit's engine, if there is one by then, when backward has made the gradient of each.
    void watch(const std::shared_ptr<UnitLink>& link) const {
        for (const auto& [outer, inner] : pairs_) {
            inner.register_hook([link](const at::Tensor&) {
                if (link->hooks != nullptr) link->hooks->input_done(link->number);
            });
        }
    }
    [[nodiscard]] std::size_t count() const noexcept { return pairs_.size(); }

private:
    std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

/// An argument that the caller passes as an lvalue, as one that may not be changed; others as they are.
template <class Arg>
using Unchanged = std::conditional_t<std::is_lvalue_reference_v<Arg>, const std::remove_reference_t<Arg>&, Arg>;

/// True for an argument whose tensors strata may replace by aliases: a block does not change it.
template <class Arg>
inline constexpr bool may_alias_v =
    (!std::is_lvalue_reference_v<Arg> ||
     std::is_const_v<std::remove_reference_t<Arg>>)&&holds_tensors_v<Arg>&& std::copy_constructible<std::decay_t<Arg>>;

/// True when no input of a call stays unseen, so that all of them can be watched.
template <class Arg>
inline constexpr bool sees_all_v = may_alias_v<Arg> || tensors_in_v<Arg> == TensorsIn::none;

/// A block's forward() with its engine's hooks around it.
template <class Block>
class UnitCall : public Block, public UnitBase {
public:
    using Block::Block;

protected:
    template <class Self, class... Args>
    static auto call(Self& self, Args&&... args) {
        using Result = std::remove_cvref_t<decltype(self.Block::forward(std::forward<Args>(args)...))>;
        static_assert(
            holds_tensors_v<Result>,
            "[ST0106] A Unit's forward returns a type that strata finds no tensors in, and backward enters a "
            "unit through them. Fix: return a Tensor, or a vector, array, pair, tuple or optional of them, or "
            "write visit_tensors(value, call) beside your type.");
        const UnitLink& link = *self.link();
        ForwardScope scope{link.hooks, link.number};
        if (!at::GradMode::is_enabled()) {
            Result result = self.Block::forward(std::forward<Args>(args)...);
            scope.done({}, 0);
            return result;
        }
        if (link.hooks != nullptr && link.hooks->recomputes(link.number))
            return recomputed_call<Result>(self, scope, std::forward<Args>(args)...);
        if constexpr (requires {
                          requires std::same_as<Result, std::remove_cvref_t<decltype(self.Block::forward(
                                                            std::declval<Unchanged<Args>>()...))>>;
                      }) {
            return recorded_call<Result, Self, Unchanged<Args>...>(self, scope, std::forward<Args>(args)...);
        } else {
            return recorded_call<Result, Self, Args...>(self, scope, std::forward<Args>(args)...);
        }
    }

private:
    /// Calls the hooks before and after a call; frees the parameters of a unit whose forward threw.
    class ForwardScope {
    public:
        ForwardScope(UnitHooks* hooks, std::int32_t unit) : hooks_{hooks}, unit_{unit} {
            if (hooks_ != nullptr) hooks_->before_forward(unit_);
        }
        ForwardScope(const ForwardScope&) = delete;
        ForwardScope& operator=(const ForwardScope&) = delete;
        ~ForwardScope() {
            if (hooks_ != nullptr) hooks_->forward_failed(unit_);
        }
        void done(const std::vector<at::Tensor>& outputs, std::size_t watched) {
            if (UnitHooks* const hooks = std::exchange(hooks_, nullptr)) hooks->after_forward(unit_, outputs, watched);
        }

    private:
        UnitHooks* hooks_;
        std::int32_t unit_;
    };

    template <class Value>
    static std::vector<at::Tensor> tensors_of(Value& value) {
        std::vector<at::Tensor> tensors;
        for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
        return tensors;
    }

    /// Gives outputs that are inputs back as the caller knows them; returns the others.
    template <class Result>
    static std::vector<at::Tensor> leave(Result& result, const InputAliases& aliases) {
        std::vector<at::Tensor> made;
        for_each_tensor(result, [&](at::Tensor& tensor) {
            if (const at::Tensor* const input = aliases.outside(tensor)) {
                tensor = *input;
            } else {
                made.push_back(tensor);
            }
        });
        return made;
    }

    template <class Result, class Self, class... Args>
    static Result recorded_call(Self& self, ForwardScope& scope, Args&&... args) {
        InputAliases aliases;
        std::tuple<std::conditional_t<may_alias_v<Args>, std::decay_t<Args>, Args&&>...> held{
            std::forward<Args>(args)...};
        const auto enter = [&]<class Arg>(std::type_identity<Arg>, auto& each) {
            if constexpr (may_alias_v<Arg>)
                for_each_tensor(each, [&](at::Tensor& tensor) { tensor = aliases.inside(tensor); });
        };
        Result result = std::apply(
            [&](auto&... each) -> Result {
                (enter(std::type_identity<Args>{}, each), ...);
                return self.Block::forward(static_cast<Args&&>(each)...);
            },
            held);
        if constexpr (!(sees_all_v<Args> && ...)) {
            scope.done(leave(result, aliases), 0);
        } else {
            aliases.watch(self.link());
            scope.done(leave(result, aliases), aliases.count());
        }
        return result;
    }

    template <class Result, class Self, class... Args>
    static Result recomputed_call(Self& self, ForwardScope& scope, Args&&... args) {
        if constexpr (!(knows_tensors_v<Args> && ...)) {
            throw Error{Errc::bad_parameter,
                        "a unit that is recomputed takes an argument that strata cannot look into for tensors",
                        "write visit_tensors(value, call) beside the argument's type (strata/zero/tensors_in.hpp)"};
        } else if constexpr (!(std::copy_constructible<std::decay_t<Args>> && ...)) {
            throw Error{Errc::bad_parameter, "a unit that is recomputed takes an argument that cannot be copied",
                        "pass copyable arguments to its forward, or keep Recompute<Blocks> out of this model"};
        } else {
            InputAliases aliases;
            std::tuple<std::decay_t<Args>...> held{std::forward<Args>(args)...};
            for_each_tensor(held, [&](at::Tensor& tensor) { tensor = aliases.inside(tensor); });
            aliases.watch(self.link());
            Result result = recompute<Result>(self, aliases.count(), held);
            leave(result, aliases);
            scope.done({}, aliases.count());
            return result;
        }
    }

    template <class Result, class Self, class Held>
    static Result recompute(Self& self, std::size_t watched, Held& held) {
        std::vector<at::Tensor> inputs;
        for_each_tensor(held, [&](at::Tensor& tensor) {
            inputs.push_back(tensor);
            tensor = tensor.detach();  // the node saves the input itself, and notices when it is changed in place
        });
        const auto owner = self.shared_from_this();  // a graph may outlive the model
        const auto result = std::make_shared<std::optional<Result>>();
        const std::weak_ptr<std::optional<Result>> first = result;
        const std::vector<at::Tensor> outputs = recomputed(
            inputs,
            [&self, owner, held, first](const std::vector<at::Tensor>& given) {
                Held arguments = held;
                auto next = given.begin();
                for_each_tensor(arguments, [&](at::Tensor& tensor) { tensor = *next++; });
                Result made =
                    std::apply([&](auto&... each) -> Result { return self.Block::forward(each...); }, arguments);
                std::vector<at::Tensor> tensors = tensors_of(made);
                if (const auto wanted = first.lock()) wanted->emplace(std::move(made));
                return tensors;
            },
            [link = self.link(), watched] {
                if (link->hooks != nullptr) link->hooks->before_rerun(link->number, watched);
            },
            self.parameters());
        auto next = outputs.begin();
        for_each_tensor(**result, [&](at::Tensor& tensor) { tensor = *next++; });
        return std::move(**result);
    }
};

}  // namespace strata::zero::detail
