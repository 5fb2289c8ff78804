#pragma once
// strata/zero/unit.hpp - Unit<Block>: marks a module as a grain of sharding, recomputation and parameter offload.

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <strata/zero/detail/unit_call.hpp>
#include <strata/zero/detail/unit_making.hpp>
#include <strata/zero/unit_link.hpp>

namespace strata {

/// The blocks of a model that are units: `using Units = strata::UnitList<JointBlock, SingleBlock>;` in the model says so
/// to ZeroStage<3> and Recompute<Blocks>, which do not compile without.
template <class... Blocks>
struct UnitList {
    static constexpr std::size_t count = sizeof...(Blocks);
};

namespace zero {
namespace detail {

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
    using Base = zero::detail::UnitForward<Block, typename zero::detail::SignatureOfForward<Block>::type>;
    template <class... Args>
    static constexpr bool is_copy = (sizeof...(Args) == 1 &&
                                     (std::derived_from<std::remove_cvref_t<Args>, Base> && ...));

public:
    /// The constructors of Block. In a call of in_units() the block's memory is given back when they are through, and the block is
    /// made again, from copies of these arguments, when an engine takes it over.
    template <class... Args>
    requires(!is_copy<Args...> && std::constructible_from<Base, Args...>) explicit Unit(Args&&... args)
        : Unit{zero::detail::UnitBeingMade{zero::detail::maker_of<Unit, Base, Args...>(args...)},
               std::forward<Args>(args)...} {}

private:
    template <class... Args>
    explicit Unit(zero::detail::UnitBeingMade&& making, Args&&... args) : Base(std::forward<Args>(args)...) {
        making.made(*this);
    }
};

}  // namespace strata
