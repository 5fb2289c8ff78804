#pragma once
// strata/data/impl/entry_shapes.ipp - specifications of tensors become outlines.

#include <algorithm>

#include <strata/core/error.hpp>
#include <strata/data/entry_shapes.hpp>
#include <strata/data/impl/tensor_cache.ipp>

namespace strata::data {

STRATA_INLINE std::vector<storage::TensorOutline> outlines_of(const std::vector<TensorSpec>& specs) {
    std::vector<storage::TensorOutline> outlines;
    for (const TensorSpec& spec : specs) {
        if (std::find(spec.shape.begin(), spec.shape.end(), TensorSpec::any) != spec.shape.end())
            throw Error{Errc::bad_recipe,
                        "the size of '" + spec.name + "' differs from entry to entry, and cannot be foreseen",
                        "measure some entries"};
        outlines.push_back({spec.name, detail::file_type_of(spec.name, spec.type), spec.shape});
    }
    std::sort(outlines.begin(), outlines.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return outlines;
}

}  // namespace strata::data
