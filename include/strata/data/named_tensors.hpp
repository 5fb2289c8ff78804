#pragma once
// strata/data/named_tensors.hpp - NamedTensors: what is cached of a picture or a caption; TensorSpec: what it must be.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <strata/core/inline.hpp>

namespace strata::data {

/// Tensors on the CPU by name, each in its own element type.
using NamedTensors = std::map<std::string, at::Tensor>;

/// What a tensor of that name is.
struct TensorSpec {
    static constexpr std::int64_t any = -1;

    std::string name;
    at::ScalarType type = at::kFloat;  ///< one that safetensors files have a name for: no quantized, no complex double
    std::vector<std::int64_t> shape;   ///< `any` for an edge that differs from entry to entry
};

/// What is wrong with tensors that should be these, in words: "'tokens' is BFloat16 (77, 8), and not Float (77, 8)". Empty
/// if nothing is. Names that are asked for and no others must be there.
[[nodiscard]] std::string mismatch(const NamedTensors& tensors, const std::vector<TensorSpec>& specs);

/// B tensors of one shape and type as one, (B, ...), on the CPU: for Recipe::collate().
///
///   rows  >= 1, contiguous
/// Throws Errc::bad_cache_entry where shapes or types differ.
[[nodiscard]] at::Tensor stack_rows(const std::vector<at::Tensor>& rows);

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/named_tensors.ipp>
#endif
