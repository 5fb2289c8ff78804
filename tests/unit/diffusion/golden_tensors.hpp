#pragma once
// tests/unit/diffusion/golden_tensors.hpp - the reference implementations' rows of numbers as tensors.

#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

#include "golden_json.hpp"

namespace strata_test {

/// A list of lists as (rows, columns), fp32.
inline at::Tensor tensor_of(const nlohmann::json& rows) {
    std::vector<float> values;
    for (const double value : numbers(rows)) values.push_back(static_cast<float>(value));
    return at::tensor(values).view({static_cast<std::int64_t>(rows.size()), -1});
}

/// The largest difference, relative to the largest of theirs.
inline double distance(const at::Tensor& ours, const at::Tensor& theirs) {
    return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
}

}  // namespace strata_test
