#pragma once
// strata/zero/impl/in_units.ipp - what a model of in_units() may not do, and its way to memory without an engine.

#include <optional>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <strata/core/error.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/in_units.hpp>

namespace strata::zero {

STRATA_INLINE void check_units_can_be_made(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
        const at::Tensor& tensor = parameter.tensor;
        const bool has_memory = !tensor.has_storage() || tensor.numel() == 0 || tensor.storage().data() != nullptr;
        if (has_memory || (parameter.link && parameter.link->deferred && parameter.link->deferred->find(tensor)))
            continue;
        throw Error{
            Errc::bad_parameter,
            "the parameter " + parameter.name +
                " is shared by two units, or by a unit and the model, so that in_units() cannot make it "
                "with one unit",
            "make what units share outside of them, and give it to their forward, or make the model without in_units()"};
    }
}

STRATA_INLINE void make_whole(const std::vector<Parameter>& parameters, std::optional<at::ScalarType> type) {
    const at::NoGradGuard no_grad;
    std::shared_ptr<UnitLink> last;
    const auto leave = [&](const std::shared_ptr<UnitLink>& next) {
        if (last && last != next) last->deferred->values->let_go();
        last = next;
    };
    for (const Parameter& parameter : parameters) {
        if (!parameter.link || !parameter.link->deferred) continue;
        leave(parameter.link);
        DeferredUnit& unit = *parameter.link->deferred;
        at::Tensor tensor = parameter.tensor;
        const at::Tensor values =
            at::empty(tensor.sizes(), at::TensorOptions{}.dtype(type.value_or(tensor.scalar_type())));
        unit.values->read(unit.find(tensor).value(), 0, values.view(-1));
        detail::forbid_use(tensor, false);
        tensor.set_data(values);
    }
    leave(nullptr);
    for (const Parameter& parameter : parameters) {
        if (parameter.link) parameter.link->deferred.reset();
    }
}

namespace detail {

STRATA_INLINE void explain_early_use(const c10::Error& error) {
    const auto says = [&](const char* words) { return error.msg().find(words) != std::string::npos; };
    if (!says("not allocated") && !says("out of bounds for storage of size 0") &&
        !says("no arguments had PyInterpreter") && !says("without Python support"))
        return;
    throw Error{
        Errc::bad_parameter,
        "a model that in_units() makes used a parameter of a unit after the unit's constructor, where it has no memory",
        "give parameters their first values in the constructor of their block, and leave type and device of the model alone: "
        "the engine converts and moves it"};
}

}  // namespace detail
}  // namespace strata::zero
