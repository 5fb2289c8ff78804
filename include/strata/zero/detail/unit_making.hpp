#pragma once
// strata/zero/detail/unit_making.hpp - UnitBeingMade: a unit that is constructed, and can be constructed again.

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/zero/tensors_in.hpp>
#include <strata/zero/unit_link.hpp>

namespace strata::zero::detail {

class GeneratorStates;

/// A block that was made for the values of its parameters alone.
struct MadeBlock {
    std::shared_ptr<void> owner;
    std::vector<at::Tensor> parameters;  ///< in the order of registration
};
using MakeBlock = std::function<MadeBlock()>;

/// What this thread does with units, in a call of in_units(): lets their memory go, one after the other.
struct MakingInUnits {
    bool on = false;
    int depth = 0;                ///< units whose constructors run, one inside of another
    bool for_its_shapes = false;  ///< nothing is made again: outline_of()
};
[[nodiscard]] inline MakingInUnits& making_in_units() noexcept {
    thread_local MakingInUnits making;
    return making;
}

/// Arguments of a block's constructor that may hold what belongs to others as well: a module, or tensors. Such a block is made once.
template <class Arg>
inline constexpr bool may_share_v = holds_tensors_v<Arg> || requires(const std::remove_cvref_t<Arg>& arg) {
    arg.get();
    arg.use_count();
}
|| requires(const std::remove_cvref_t<Arg>& arg) { arg.ptr(); };

/// A constructor's argument, from a copy of it.
template <class Arg, class Held>
decltype(auto) again(Held& held) {
    if constexpr (!std::is_lvalue_reference_v<Arg>)
        return Held(held);
    else if constexpr (std::is_const_v<std::remove_reference_t<Arg>>)
        return std::as_const(held);
    else
        return (held);
}
template <class Arg>
using again_t = decltype(again<Arg>(std::declval<std::decay_t<Arg>&>()));

/// The parameters of a module, each once.
template <class Module>
[[nodiscard]] std::vector<at::Tensor> parameters_once(const Module& module) {
    std::vector<at::Tensor> found;
    for (const at::Tensor& tensor : module.parameters()) {
        bool is_new = tensor.defined();
        for (const at::Tensor& other : found) is_new = is_new && !other.is_same(tensor);
        if (is_new) found.push_back(tensor);
    }
    return found;
}

/// Makes a unit again, from copies of its constructor's arguments. Empty where that cannot be, or is not asked for.
template <class Unit, class Base, class... Args>
[[nodiscard]] MakeBlock maker_of(const std::remove_reference_t<Args>&... args) {
    if (!making_in_units().on || making_in_units().depth > 0) return {};
    if constexpr ((!may_share_v<Args> && ...) &&
                  (std::constructible_from<std::decay_t<Args>, const std::remove_reference_t<Args>&> && ...) &&
                  (std::copy_constructible<std::decay_t<Args>> && ...)) {
        if constexpr (std::constructible_from<Base, again_t<Args>...>) {
            return [held = std::tuple<std::decay_t<Args>...>(args...)]() mutable -> MadeBlock {
                const std::shared_ptr<Unit> unit =
                    std::apply([](auto&... each) { return std::make_shared<Unit>(again<Args>(each)...); }, held);
                return {unit, parameters_once(*unit)};
            };
        }
    }
    return {};
}

/// Lives while a unit's constructor runs. In a call of in_units() the unit's parameters have no memory when it goes, but can be made
/// again: with the same arguments and the random numbers that were drawn here. Elsewhere it does nothing.
///
/// A unit inside of a unit is part of the outer one. A unit keeps its memory where it cannot be made again: its arguments cannot be
/// copied, or hold modules or tensors, or a parameter is not dense, not on the CPU, or shares its memory.
class UnitBeingMade {
public:
    explicit UnitBeingMade(MakeBlock again) : again_{std::move(again)} {
        MakingInUnits& making = making_in_units();
        if (!making.on) return;
        ++making.depth;
        counts_ = true;
        if (again_) remember_random_numbers();
    }
    UnitBeingMade(const UnitBeingMade&) = delete;
    UnitBeingMade& operator=(const UnitBeingMade&) = delete;
    ~UnitBeingMade() {
        if (counts_) --making_in_units().depth;
    }

    template <class Unit>
    void made(Unit& unit) {
        if (again_) defer(*unit.link(), parameters_once(unit));
    }

private:
    void remember_random_numbers();
    void defer(UnitLink& link, std::vector<at::Tensor> parameters);

    MakeBlock again_;
    std::shared_ptr<const GeneratorStates> random_;  // before its constructor
    bool counts_ = false;
};

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/unit_making.ipp>
#endif
