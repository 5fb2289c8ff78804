#pragma once
// strata/data/entry_shapes.hpp - entry_shapes(): what entries a recipe's caches have, to foresee their sizes.

#include <memory>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/data/named_tensors.hpp>
#include <strata/data/recipe.hpp>
#include <strata/datasets/cache_cost.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::data {

/// As they stand in a file, in the order of their names. Throws Errc::bad_recipe for an edge that differs from entry to
/// entry: its size is not foreseen; unsupported_dtype for a type that files have no name for.
[[nodiscard]] std::vector<storage::TensorOutline> outlines_of(const std::vector<TensorSpec>& specs);

/// Of a recipe, which is copied. Local; picture_tensors throws what outlines_of() throws.
template <Recipe R>
[[nodiscard]] datasets::EntryShapes entry_shapes(const R& recipe) {
    return {recipe.picture_id(),
            [of = std::make_shared<const R>(recipe)](const pictures::PictureSize& target) {
                return outlines_of(of->picture_tensors(target));
            },
            recipe.caption_id(), outlines_of(recipe.caption_tensors()), recipe.dropped_caption()};
}

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/entry_shapes.ipp>
#endif
