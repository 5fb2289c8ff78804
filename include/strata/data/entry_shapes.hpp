#pragma once
// strata/data/entry_shapes.hpp - entry_shapes(): what entries a recipe's caches have, to foresee their sizes.

#include <memory>
#include <string>
#include <utility>
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

/// Of a recipe, which is copied. Local; throws what outlines_of() throws, and picture_tensors does.
///
///   captions  as entries of captions are, in the order of their names, for a recipe whose caption_tensors() leave edges
///             open; else nothing
template <Recipe R>
[[nodiscard]] datasets::EntryShapes entry_shapes(const R& recipe, std::vector<storage::TensorOutline> captions = {}) {
    if (captions.empty()) captions = outlines_of(recipe.caption_tensors());
    return {recipe.picture_id(),
            [of = std::make_shared<const R>(recipe)](const pictures::PictureSize& target) {
                return outlines_of(of->picture_tensors(target));
            },
            recipe.caption_id(), std::move(captions), recipe.dropped_caption()};
}

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/entry_shapes.ipp>
#endif
