#pragma once
// strata/zero/unit.hpp - Unit<Block>: marks a module as a grain of sharding, recomputation and parameter offload.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

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
class UnitKeeper {
public:
    /// How a unit's call is made.
    struct Manner {
        bool recomputes = false;       ///< keep no activations, run forward again in backward
        bool watches_inputs = false;   ///< tell input_done() when backward has left the unit
        bool trains = true;            ///< some of its parameters require a gradient
    };
    [[nodiscard]] virtual Manner manner(std::int32_t unit) const = 0;

    virtual void before_forward(std::int32_t unit) = 0;
    /// outputs: those that backward enters the unit by; empty for a unit that is recomputed
    virtual void after_forward(std::int32_t unit, const std::vector<at::Tensor>& outputs) = 0;
    virtual void forward_failed(std::int32_t unit) noexcept = 0;
    virtual void before_rerun(std::int32_t unit) = 0;
    /// Of `count` inputs of a call the gradients are awaited; input_done() comes with each.
    virtual void watch_inputs(std::int32_t unit, std::size_t count) = 0;
    virtual void input_done(std::int32_t unit) = 0;

protected:
    ~UnitKeeper() = default;
};

/// Ties a unit of a model to the engine that keeps its parameters; outlives either.
struct UnitLink {
    UnitKeeper* keeper = nullptr;
    std::int32_t number = -1;  ///< in registration order
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

/// A block's forward() with the keeper around it.
template <class Block>
class UnitCall : public Block, public UnitBase {
public:
    using Block::Block;

protected:
    template <class Self, class... Args>
    static auto call(Self& self, Args&&... args) {
        using Result = std::remove_cvref_t<decltype(self.Block::forward(std::forward<Args>(args)...))>;
        static_assert(holds_tensors_v<Result>,
                      "[ST0106] A Unit's forward returns a type that strata finds no tensors in, and backward enters a "
                      "unit through them. Fix: return a Tensor, or a vector, array, pair, tuple or optional of them, or "
                      "write visit_tensors(value, call) beside your type.");
        constexpr bool takes_values = requires { self.Block::forward(input(std::forward<Args>(args))...); };
        if constexpr (takes_values) {
            if (at::GradMode::is_enabled()) return Result(linked_call<Result>(self, input(std::forward<Args>(args))...));
        }
        return Result(linked_call<Result>(self, std::forward<Args>(args)...));
    }

private:
    /// The unit's own name for a tensor that requires a gradient: the gradient's parts from inside of the unit are added
    /// up here, and then go to whoever made the tensor. Recomputation adds them in the same order, and so to the same
    /// bits, also where several units share an input.
    template <class Arg>
    static decltype(auto) input(Arg&& arg) {
        if constexpr (std::same_as<std::remove_cvref_t<Arg>, at::Tensor>) {
            return arg.defined() && arg.requires_grad() ? arg.view_as(arg) : at::Tensor{arg};
        } else {
            return std::forward<Arg>(arg);
        }
    }

    template <class Result, class Self, class... Args>
    static Result linked_call(Self& self, Args&&... args) {
        const UnitLink& link = *self.link();
        if (link.keeper == nullptr) return self.Block::forward(std::forward<Args>(args)...);
        return kept_call<Result>(self, *link.keeper, link.number, std::forward<Args>(args)...);
    }

    /// Frees the parameters of a unit whose forward threw.
    class Guard {
    public:
        Guard(UnitKeeper& keeper, std::int32_t unit) : keeper_{&keeper}, unit_{unit} {}
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        ~Guard() {
            if (keeper_ != nullptr) keeper_->forward_failed(unit_);
        }
        void dismiss() noexcept { keeper_ = nullptr; }

    private:
        UnitKeeper* keeper_;
        std::int32_t unit_;
    };

    template <class Result, class Self, class... Args>
    static Result kept_call(Self& self, UnitKeeper& keeper, std::int32_t unit, Args&&... args) {
        const UnitKeeper::Manner manner = keeper.manner(unit);
        keeper.before_forward(unit);
        Guard guard{keeper, unit};
        if (!at::GradMode::is_enabled() || !(manner.recomputes || manner.watches_inputs)) {
            Result result = self.Block::forward(std::forward<Args>(args)...);
            guard.dismiss();
            keeper.after_forward(unit, tensors_of(result));
            return result;
        }
        if (manner.recomputes && !(knows_tensors_v<Args> && ...)) {
            throw Error{Errc::bad_parameter,
                        "a unit that is recomputed takes an argument that strata cannot look into for tensors",
                        "write visit_tensors(value, call) beside the argument's type (strata/zero/tensors_in.hpp)"};
        }
        if constexpr ((std::copy_constructible<std::decay_t<Args>> && ...)) {
            std::tuple<std::decay_t<Args>...> held{std::forward<Args>(args)...};
            if (manner.watches_inputs) watch(keeper, unit, self.link(), held);
            Result result = manner.recomputes ? recomputed_call<Result>(self, unit, manner.trains, held)
                                              : std::apply([&](auto&... each) -> Result { return self.Block::forward(each...); }, held);
            guard.dismiss();
            keeper.after_forward(unit, manner.recomputes ? std::vector<at::Tensor>{} : tensors_of(result));
            return result;
        } else {
            throw Error{Errc::bad_parameter,
                        "a unit that is recomputed or frozen takes an argument that cannot be copied",
                        "pass copyable arguments to its forward, or keep Recompute<Blocks> and frozen units out of this model"};
        }
    }

    template <class Value>
    static std::vector<at::Tensor> tensors_of(Value& value) {
        std::vector<at::Tensor> tensors;
        for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
        return tensors;
    }

    /// Puts aliases in the place of inputs that require a gradient; their gradients are the last thing backward makes
    /// in a unit.
    template <class Held>
    static void watch(UnitKeeper& keeper, std::int32_t unit, const std::shared_ptr<UnitLink>& link, Held& held) {
        std::vector<at::Tensor*> inputs;
        for_each_tensor(held, [&](at::Tensor& tensor) {
            if (tensor.requires_grad()) inputs.push_back(&tensor);
        });
        if (inputs.empty()) return;
        keeper.watch_inputs(unit, inputs.size());
        for (at::Tensor* input : inputs) {
            *input = input->view_as(*input);
            input->register_hook([link](const at::Tensor&) {
                if (link->keeper != nullptr) link->keeper->input_done(link->number);
            });
        }
    }

    template <class Result, class Self, class Held>
    static Result recomputed_call(Self& self, std::int32_t unit, bool trains, Held& held) {
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
                Result made = std::apply([&](auto&... each) -> Result { return self.Block::forward(each...); }, arguments);
                std::vector<at::Tensor> tensors = tensors_of(made);
                if (const auto wanted = first.lock()) wanted->emplace(std::move(made));
                return tensors;
            },
            [link = self.link(), unit] {
                if (link->keeper != nullptr) link->keeper->before_rerun(unit);
            },
            trains);
        auto next = outputs.begin();
        for_each_tensor(**result, [&](at::Tensor& tensor) { tensor = *next++; });
        return std::move(**result);
    }
};

/// True when a call with the first `Taken...` of a signature's arguments alone compiles: the rest have defaults.
template <class Block, class Taken, class... Left>
inline constexpr bool has_default_arguments_v = false;
template <class Block, class... Taken, class Next, class... Left>
inline constexpr bool has_default_arguments_v<Block, std::tuple<Taken...>, Next, Left...> =
    requires(Block& block) { block.forward(std::declval<Taken>()...); } ||
    has_default_arguments_v<Block, std::tuple<Taken..., Next>, Left...>;

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
    requires(!has_default_arguments_v<Block, std::tuple<>, Args...>)
class UnitForward<Block, Result (Owner::*)(Args...)> : public UnitCall<Block> {
public:
    using UnitCall<Block>::UnitCall;
    std::remove_cvref_t<Result> forward(Args... args) {
        return this->call(static_cast<UnitCall<Block>&>(*this), std::forward<Args>(args)...);
    }
};
template <class Block, class Result, class Owner, class... Args>
    requires(!has_default_arguments_v<const Block, std::tuple<>, Args...>)
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
/// libtorch then throws. All ranks must call the same units in the same order. Under Recompute<Blocks> forward() runs
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
