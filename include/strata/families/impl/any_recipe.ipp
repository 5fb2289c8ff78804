#pragma once
// strata/families/impl/any_recipe.ipp - what is said where nothing can be drawn.

#include <strata/core/error.hpp>
#include <strata/families/any_recipe.hpp>
#include <strata/families/impl/any_model.ipp>

namespace strata::families::detail {

[[noreturn]] STRATA_INLINE void throw_cannot_draw(bool is_other_model) {
    if (is_other_model)
        throw Error{Errc::bad_value, "a recipe was asked to draw with a model of another kind than it is for",
                    "draw with the model that the same family made"};
    throw Error{Errc::bad_value, "this recipe cannot draw: it has no draw() for its model",
                "leave validation_prompts empty, or give the recipe a draw() as models::Flux1Recipe has it"};
}

}  // namespace strata::families::detail
