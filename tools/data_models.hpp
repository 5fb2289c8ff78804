#pragma once
// tools/data_models.hpp - models whose cache entries `strata data stats` foresees, for a program that has no libtorch.

#include <string_view>
#include <vector>

#include <strata/datasets/cache_cost.hpp>

namespace strata::tools {

/// A model with what its recipe caches, when its encoders are the published ones and compute in the usual type. Another
/// table of what the recipes say: unit/models/foreseen_caches compares the two.
struct KnownModel {
    std::string_view name;
    datasets::EntryShapes recipe;
};
[[nodiscard]] const std::vector<KnownModel>& known_models();

}  // namespace strata::tools
