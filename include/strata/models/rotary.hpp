#pragma once
// strata/models/rotary.hpp - rotary positions of text and image tokens, as Flux defines them.

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// Widths of the three parts of a head that turn with a token's ids (plane, row, column); each even, sum = head width.
using RotaryAxes = std::array<std::int64_t, 3>;

/// Angles of every token of [text; image], ready for rms_norm_rotate.
struct RotaryTable {
    at::Tensor cosine_LK;  ///< (L, K) fp32, both entries of a pair hold cos a
    at::Tensor sine_LK;    ///< (L, K) fp32, the entries of a pair hold -sin a and sin a
};

/// For zero::for_each_tensor(): a recomputed block looks for tensors in its arguments.
template <class Table, class Call>
requires std::same_as<std::remove_const_t<Table>, RotaryTable>
void visit_tensors(Table& table, Call&& call) {
    call(table.cosine_LK);
    call(table.sine_LK);
}

/// Ids (rows * columns, 3) fp32 of a grid of image tokens, row by row: (plane, row, column). A picture that is drawn
/// lies in plane 0, one that is only looked at in plane 1 (Flux.1 Kontext, Labs et al. 2025, arXiv:2506.15742).
at::Tensor grid_ids(std::int64_t rows, std::int64_t columns, std::int64_t plane = 0);

/// Rotary position embedding (Su et al. 2021, arXiv:2104.09864) of tokens with ids (L, 3), on any device. Pair i of an
/// axis of width w turns by id * 10000^(-2i/w); angles are computed in fp64, on the CPU, and moved to `device`.
RotaryTable rotary_table(const at::Tensor& ids_L3, const RotaryAxes& axes, at::Device device = at::kCPU);

/// The table of `text_tokens` tokens with ids (0, 0, 0), followed by a grid in plane 0.
RotaryTable rotary_table(std::int64_t text_tokens, std::int64_t rows, std::int64_t columns, const RotaryAxes& axes,
                         at::Device device = at::kCPU);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/rotary.ipp>
#endif
