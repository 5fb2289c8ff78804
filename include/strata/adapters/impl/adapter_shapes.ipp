#pragma once
// strata/adapters/impl/adapter_shapes.ipp - whether matrices of a file are those of a layer.
//
// O rows and I columns of the file's weight, r rank; k = kh * kw of a convolution.

#include <cstdint>
#include <string>
#include <vector>

#include <strata/adapters/adapter_file.hpp>
#include <strata/adapters/layer_names.hpp>

namespace strata::adapters::detail {

using Sizes = std::vector<std::int64_t>;

inline std::string text_of(const Sizes& shape) {
    std::string text;
    for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "(" + text + ")";
}
inline const Sizes& shape_of(const AdapterTensors::Tensor& tensor) { return tensor->entry->shape; }

/// Sizes behind the first one, multiplied.
inline std::int64_t behind_first(const Sizes& shape) {
    std::int64_t product = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
    return product;
}

/// Rows and columns of a factor of a LoKr; (0, 0): it has none, or one whose parts do not belong together.
struct FactorShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;  // of a convolution's: in * kh * kw
};
inline FactorShape factor_shape(const AdapterTensors::Tensor& whole, const AdapterTensors::Tensor& a,
                                const AdapterTensors::Tensor& b, const AdapterTensors::Tensor& core) {
    if (whole && !a && !b && !core && shape_of(whole).size() >= 2)
        return {shape_of(whole)[0], behind_first(shape_of(whole))};
    if (whole || !a || !b || shape_of(a).size() != 2 || shape_of(b).size() < 2) return {};
    const std::int64_t rank = shape_of(b)[0];
    if (!core) return shape_of(a)[1] == rank ? FactorShape{shape_of(a)[0], behind_first(shape_of(b))} : FactorShape{};
    const Sizes& middle = shape_of(core);  // (r, r, kh, kw), a (r, rows), b (r, columns)
    if (middle.size() != 4 || middle[0] != shape_of(a)[0] || middle[1] != rank) return {};
    return {shape_of(a)[1], behind_first(shape_of(b)) * middle[2] * middle[3]};
}

/// Of the matrices: what alpha is divided by. 0: it has none, a LoKr of two whole factors, whose alpha says nothing.
inline std::int64_t rank_of(const AdapterTensors& tensors) {
    if (tensors.is_lokr()) {
        if (tensors.w2_b) return shape_of(tensors.w2_b)[0];
        return tensors.w1_b ? shape_of(tensors.w1_b)[0] : 0;
    }
    return shape_of(tensors.down)[0];
}

inline std::string lora_problem(const AdapterTensors& tensors, const NamedLayer& layer, std::int64_t O) {
    if (!tensors.down && !tensors.up) return "has no matrices, only what belongs to them";
    if (!tensors.down) return "has an up matrix and no down";
    if (!tensors.up) return "has a down matrix and no up";
    const Sizes& down = shape_of(tensors.down);
    const Sizes& up = shape_of(tensors.up);
    const std::string all = "has down " + text_of(down) + " and up " + text_of(up) + ", and ";
    if (down.size() < 2 || up.size() < 2 || down[0] < 1 || behind_first(up) != down[0])
        return all + "their ranks differ";
    if (tensors.middle) {
        const Sizes& middle = shape_of(tensors.middle);
        const bool fits = layer.shape.size() == 4 &&
                          middle == Sizes{down[0], down[0], layer.shape[2], layer.shape[3]} &&
                          behind_first(down) == layer.shape[1] && up[0] == O;
        return fits ? "" : all + "a middle " + text_of(middle) + ", and the layer a weight " + text_of(layer.shape);
    }
    const bool same_kernel = down.size() != 4 || layer.shape.size() != 4 ||
                             Sizes(down.begin() + 1, down.end()) == Sizes(layer.shape.begin() + 1, layer.shape.end());
    if (up[0] == O && behind_first(down) == layer.columns() && same_kernel) return {};
    return all + "the layer " + layer.path + " a weight " + text_of(layer.shape) +
           (O == layer.rows() ? "" : " of " + std::to_string(O) + " rows in all");
}

inline std::string lokr_problem(const AdapterTensors& tensors, const NamedLayer& layer, std::int64_t O) {
    if (tensors.down || tensors.up || tensors.middle) return "has the matrices of a LoRA and those of a LoKr";
    const FactorShape first = factor_shape(tensors.w1, tensors.w1_a, tensors.w1_b, {});
    const FactorShape second = factor_shape(tensors.w2, tensors.w2_a, tensors.w2_b, tensors.t2);
    if (first.rows == 0) return "has no lokr_w1, whole or as lokr_w1_a and lokr_w1_b of one rank";
    if (second.rows == 0) return "has no lokr_w2, whole or as lokr_w2_a and lokr_w2_b of one rank";
    if (first.rows * second.rows == O && first.columns * second.columns == layer.columns()) return {};
    return "has factors " + text_of({first.rows, first.columns}) + " and " + text_of({second.rows, second.columns}) +
           ", and the layer " + layer.path + " a weight " + text_of(layer.shape);
}

/// Whether a magnitude is one of columns, as older files of LyCORIS have it: (1, in) or (1, in, 1, 1).
inline bool is_of_columns(const AdapterTensors& tensors, std::int64_t O) {
    return !tensors.magnitude_is_of_rows && shape_of(tensors.magnitude).front() != O;
}

/// Empty: the file's matrices fit the layer.
inline std::string shape_problem(const AdapterTensors& tensors, const NamedLayer& layer, const FilePlace& place) {
    const std::string problem =
        tensors.is_lokr() ? lokr_problem(tensors, layer, place.rows) : lora_problem(tensors, layer, place.rows);
    if (!problem.empty() || !tensors.magnitude) return problem;
    const Sizes& magnitude = shape_of(tensors.magnitude);
    std::int64_t numel = 1;
    for (const std::int64_t size : magnitude) numel *= size;
    if (magnitude.empty()) return "has a magnitude that is one number";
    const std::int64_t wanted = is_of_columns(tensors, place.rows) ? layer.shape[1] : place.rows;
    if (numel == wanted) return {};
    return "has a magnitude " + text_of(magnitude) + ", and the layer " + layer.path + " a weight " +
           text_of(layer.shape);
}

}  // namespace strata::adapters::detail
