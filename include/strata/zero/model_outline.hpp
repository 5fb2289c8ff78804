#pragma once
// strata/zero/model_outline.hpp - outline_of(): the parameters of a model without the model, for a forecast of its memory.

#include <type_traits>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/zero/detail/unit_making.hpp>
#include <strata/zero/memory_forecast.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::zero {

namespace detail {

/// While it lives, tensors that this thread makes get no values: drawing and filling return at once, so that the system gives them no
/// memory. Units let theirs go.
///
/// libtorch asks the keys that a thread includes before it calls an operator; one of them, which nothing else uses, is told to pass
/// everything on but the operators that write first values.
class WithoutValues {
public:
    WithoutValues();
    WithoutValues(const WithoutValues&) = delete;
    WithoutValues& operator=(const WithoutValues&) = delete;
    ~WithoutValues();

private:
    bool included_before_;
    MakingInUnits units_before_;
};

}  // namespace detail

/// Names, shapes and units of the parameters of a model that is never there: `make` runs, and neither draws a random number nor keeps more
/// than one unit's addresses. Twelve billion parameters take a second. What they hold is undefined and cannot be read.
///
///   make  returns the model or a std::shared_ptr to it, and does not look at values
/// Local. Throws what `make` throws.
template <class Make>
[[nodiscard]] std::vector<Parameter> outline_of(Make&& make) {
    const detail::WithoutValues without_values;
    const auto outlined = [](auto& model) {
        std::vector<Parameter> outlines;
        for (const Parameter& p : parameters_of(model))
            outlines.push_back(outlined_parameter(p.name, p.tensor.sizes().vec(), p.unit, p.tensor.requires_grad()));
        return outlines;
    };
    auto model = std::forward<Make>(make)();
    if constexpr (requires { *model; })
        return outlined(*model);
    else
        return outlined(model);
}

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/model_outline.ipp>
#endif
