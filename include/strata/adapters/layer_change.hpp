#pragma once
// strata/adapters/layer_change.hpp - LayerChange: the weight that a layer has with a file's adapter merged into it, rows at a time.
//
// Shapes: O rows and I columns of the layer's weight as a matrix, n some of its rows, r rank.

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include <strata/adapters/adapter_match.hpp>
#include <strata/core/inline.hpp>

namespace strata::adapters {

/// One layer's part of an adapter file. Reads of the file what it is asked for, each time. Local, thread-safe.
///
///   LoRA   W + strength * scale * (up down), for LoCon's convolutions with the core between
///   LoKr   W + strength * scale * (w1 (x) w2), the Kronecker product
///   DoRA   V = W + scale * (up down), W' = m V / |V| by rows or columns, W + strength * (W' - W)  (arXiv:2402.09353, eq. 5)
///
/// Arithmetic is that of the rows it is given, fp32 or fp64.
class LayerChange {
public:
    LayerChange(std::shared_ptr<const AdapterFile> file, const MatchedAdapter& adapter, NamedLayer layer,
                double strength);

    [[nodiscard]] const NamedLayer& layer() const noexcept { return layer_; }
    /// Whether merged() costs all rows, however few it is asked for: LoKr, LoCon with a core, norms of columns.
    [[nodiscard]] bool needs_all_rows() const noexcept;
    /// Rows with the adapter of the same rows without: (n, I) -> (n, I), of the same type. needs_all_rows(): of all of them, first 0.
    ///
    ///   first  of the rows
    /// Throws io_failed.
    [[nodiscard]] at::Tensor merged(const at::Tensor& base_nI, std::int64_t first) const;
    /// What merged() needs memory for beside what it is given and gives, for n rows in fp32, at most.
    [[nodiscard]] std::int64_t bytes_beside(std::int64_t rows) const noexcept;

private:
    [[nodiscard]] at::Tensor read(const AdapterTensors::Tensor& tensor, at::ScalarType type) const;
    /// Rows first, first + 1, ... of scale * (up down) or its like.
    [[nodiscard]] at::Tensor delta(std::int64_t first, std::int64_t rows, at::ScalarType type) const;
    [[nodiscard]] at::Tensor whole_delta(at::ScalarType type) const;
    [[nodiscard]] at::Tensor kronecker(at::ScalarType type) const;
    /// Ours of the rows of a tensor of the file that has one for each of the file's weight.
    [[nodiscard]] at::Tensor own_rows(const at::Tensor& of_file) const;

    std::shared_ptr<const AdapterFile> file_;
    const AdapterTensors& tensors_;
    FilePlace place_;
    double scale_;
    NamedLayer layer_;
    double strength_;
};

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/layer_change.ipp>
#endif
