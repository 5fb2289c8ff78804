#pragma once
// strata/zero/unit.hpp - Unit<Block>: marks a module as a grain of sharding, recomputation and parameter offload.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>

#include <strata/core/error.hpp>
#include <strata/zero/detail/recompute.hpp>
#include <strata/zero/tensors_in.hpp>

namespace strata {

/// The blocks of a model that are units: `using Units = strata::UnitList<JointBlock, SingleBlock>;` in the model says so
/// to ZeroStage<3> and Recompute<Blocks>, which do not compile without.
template <class... Blocks>
struct UnitList {
    static constexpr std::size_t count = sizeof...(Blocks);
};

namespace zero {

/// What an engine does around the forward and backward passes of a model's units.
class UnitHooks {
public:
    /// Whether its calls keep no activations and run forward again in backward.
    [[nodiscard]] virtual bool recomputes(std::int32_t unit) const = 0;

    virtual void before_forward(std::int32_t unit) = 0;
    /// outputs  those that backward enters the unit by; empty for a unit that is recomputed
    /// watched  how often input_done() comes after backward has entered this call
    virtual void after_forward(std::int32_t unit, const std::vector<at::Tensor>& outputs, std::size_t watched) = 0;
    virtual void forward_failed(std::int32_t unit) noexcept = 0;
    /// watched  as in after_forward()
    virtual void before_rerun(std::int32_t unit, std::size_t watched) = 0;
    /// Backward has made an input's gradient, the last thing it does in a unit.
    virtual void input_done(std::int32_t unit) = 0;

protected:
    ~UnitHooks() = default;
};

/// Ties a unit of a model to the engine that has its parameters; outlives either.
struct UnitLink {
    UnitHooks* hooks = nullptr;
    std::int32_t number = -1;  ///< in registration order
    std::string name{};        ///< as in the state dict: "block0"
};

/// What every Unit<Block> is as well, whatever its block: how a walk over a model finds units.
class UnitBase {
public:
    virtual ~UnitBase() = default;
    [[nodiscard]] const std::shared_ptr<UnitLink>& link() const noexcept { return link_; }

protected:
    UnitBase() = default;
    UnitBase(const UnitBase&) {}  // a copy is another unit
    UnitBase& operator=(const UnitBase&) { return *this; }

private:
    std::shared_ptr<UnitLink> link_ = std::make_shared<UnitLink>();
};

namespace detail {

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

template <class Block, class... Taken>
concept TakesArguments = requires(Block& block) {
    block.forward(std::declval<Taken>()...);
};

/// True when a call with the first `Taken...` of a signature's arguments alone compiles: the rest have defaults.
template <class Block, class Taken, class... Left>
inline constexpr bool has_default_arguments_v = false;
template <class Block, class... Taken, class Next, class... Left>
inline constexpr bool has_default_arguments_v<Block, std::tuple<Taken...>, Next, Left...> =
    TakesArguments<Block, Taken...> || has_default_arguments_v<Block, std::tuple<Taken..., Next>, Left...>;
template <class Block, class... Args>
concept TakesAllArguments = !has_default_arguments_v<Block, std::tuple<>, Args...>;

/// For a forward() that is overloaded, a template, or has default arguments: any call that Block takes.
template <class Block, class Signature = void>
class UnitForward : public UnitCall<Block> {
public:
    using UnitCall<Block>::UnitCall;
    template <class... Args>
    auto forward(Args&&... args) {
        return this->call(static_cast<UnitCall<Block>&>(*this), std::forward<Args>(args)...);
    }
};

/// For every other one: the same signature, which torch::nn::Sequential and AnyModule need to see.
template <class Block, class Result, class Owner, class... Args>
requires TakesAllArguments<Block, Args...>
class UnitForward<Block, Result (Owner::*)(Args...)> : public UnitCall<Block> {
public:
    using UnitCall<Block>::UnitCall;
    std::remove_cvref_t<Result> forward(Args... args) {
        return this->call(static_cast<UnitCall<Block>&>(*this), std::forward<Args>(args)...);
    }
};
template <class Block, class Result, class Owner, class... Args>
requires TakesAllArguments<const Block, Args...>
class UnitForward<Block, Result (Owner::*)(Args...) const> : public UnitCall<Block> {
public:
    using UnitCall<Block>::UnitCall;
    std::remove_cvref_t<Result> forward(Args... args) const {
        return this->call(static_cast<const UnitCall<Block>&>(*this), std::forward<Args>(args)...);
    }
};

template <class Block>
struct SignatureOfForward {
    using type = void;
};
template <class Block>
requires requires { &Block::forward; }
struct SignatureOfForward<Block> {
    using type = decltype(&Block::forward);
};

}  // namespace detail
}  // namespace zero

/// A Block whose parameters are reduced, updated and gathered together; otherwise it is the Block itself.
///
///   std::vector<std::shared_ptr<Unit<Block>>> blocks;
///   blocks.push_back(register_module("block0", std::make_shared<Unit<Block>>(width)));
///
/// Names in the state dict do not change. Take what repeats in a model, a transformer block say: a unit is one
/// message, so it should hold some MB. Parameters outside of units are cut into buckets by size and stay whole on every
/// rank. A unit inside a unit is part of the outer one. A parameter that two units share counts as outside of both.
///
/// Under ZeroStage<3> a unit's parameters are there while its forward() runs and while backward is inside it, and have
/// no memory otherwise: hold and call the block as Unit<Block>, because a call of Block::forward() finds them gone, and
/// libtorch then throws. Where no gradient is recorded all ranks must call the same
/// units in the same order; else a rank may leave one out, or its output, and gives zeros for its gradient. Under Recompute<Blocks> forward() runs
/// again in backward: the same inputs must give the same outputs, random numbers of libtorch's generators aside. Under
/// stages 0 to 2 without recomputation forward() is Block's.
///
///   Block  a torch::nn::Module that is not final, and whose forward() returns tensors
template <class Block>
class Unit final : public zero::detail::UnitForward<Block, typename zero::detail::SignatureOfForward<Block>::type> {
public:
    using zero::detail::UnitForward<Block, typename zero::detail::SignatureOfForward<Block>::type>::UnitForward;
};

}  // namespace strata
