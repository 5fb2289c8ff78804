#pragma once
// strata/zero/in_units.hpp - in_units(): a model is made unit by unit, and no unit keeps its memory.

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <strata/core/inline.hpp>
#include <strata/zero/detail/unit_making.hpp>
#include <strata/zero/parameters.hpp>

namespace strata {

namespace zero {

/// Throws bad_parameter for a parameter of a unit without memory that is no unit's own: two units share it, or the model and a unit.
void check_units_can_be_made(const std::vector<Parameter>& parameters);

/// Gives parameters of units that in_units() made their memory and values. Local. Throws what their values throw: bad_parameter, io_failed.
///
///   type  that they are to have from now on; none: their own
void make_whole(const std::vector<Parameter>& parameters, std::optional<at::ScalarType> type = {});

namespace detail {

/// Units that this thread makes give their memory back, while it lives.
class InUnits {
public:
    InUnits() : before_{std::exchange(making_in_units(), {true, 0})} {}
    InUnits(const InUnits&) = delete;
    InUnits& operator=(const InUnits&) = delete;
    ~InUnits() { making_in_units() = before_; }

private:
    MakingInUnits before_;
};

/// Throws bad_parameter when libtorch's error says that a parameter without memory was used.
void explain_early_use(const c10::Error& error);

}  // namespace detail
}  // namespace zero

/// Makes a model of which no more than one unit is ever in memory, for a trainer or an engine that shards it:
///
///   Trainer<Model, ZeroStage<3>> trainer{session, strata::in_units([] { return Model{options}; }), options};
///
/// `make` runs once, as it stands. The memory of each Unit<Block> goes when its constructor is through; names, shapes and types
/// stay. When an engine takes the model over, rank 0 constructs the blocks one by one again, with the same arguments and the same
/// random numbers, so that every value has the bits that a model made at once would have. weights::load_weights() lets units have their values from
/// files instead. Whatever its stage, an engine has the model's share and one unit in memory while it begins; docs/weights.md.
///
///   make  returns the model, or a std::shared_ptr to it. Constructs its units on this thread
///
/// Between this call and the engine parameters of units cannot be read or written, but frozen (requires_grad_(false)): what is to be done to
/// their values belongs into the constructor of their block. What belongs to no unit, and units whose constructors take modules, tensors
/// or what cannot be copied, are made at once and have memory. Local.
/// Throws bad_parameter when `make` uses a unit's parameters after it was made, or shares one of them; what `make` throws.
template <class Make>
[[nodiscard]] std::invoke_result_t<Make> in_units(Make&& make) {
    const zero::detail::InUnits units;
    try {
        auto model = std::forward<Make>(make)();
        if constexpr (requires { *model; })
            zero::check_units_can_be_made(zero::parameters_of(*model));
        else
            zero::check_units_can_be_made(zero::parameters_of(model));
        return model;
    } catch (const c10::Error& error) {
        zero::detail::explain_early_use(error);
        throw;
    }
}

/// Gives the units of a model that in_units() made their memory and values, for a program that uses it without an engine. Nothing for
/// other models. With a type units get it at once, and are in memory in no other; convert the rest of the model behind it. Local. Throws what where the values come from throws: bad_parameter, io_failed.
template <class Model>
void make_whole(Model& model, std::optional<at::ScalarType> type = {}) {
    zero::make_whole(zero::parameters_of(model), type);
}

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/zero/impl/in_units.ipp>
#endif
