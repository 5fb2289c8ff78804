#pragma once
// strata/weights/weight_match.hpp - match_weights(): every tensor of a model finds its own in files, or one error says all that differs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/weights/weight_names.hpp>

namespace strata::weights {

/// A tensor of a model.
struct WantedWeight {
    std::vector<std::string>
        names;  ///< several: it is registered under each of them (tied weights), and files have one or more
    storage::Dtype dtype = storage::Dtype::f32;
    std::vector<std::int64_t> shape;
};

/// Whether a tensor of type `from` is read into one of type `to`: floating point types (F64, F32, BF16, F16) into each other, rounded to
/// nearest, and I64, I32, I16, I8, U8 and BOOL into themselves; integers into larger ones as well.
[[nodiscard]] bool is_read_as(storage::Dtype from, storage::Dtype to) noexcept;

/// The tensor in `files` of each wanted one; none where it may be missing and is. Reads nothing.
///
/// Throws weights_do_not_fit: one error that names all that are missing, all that the model does not have, and all of another shape or
/// type; the fix names a prefix with which names would meet. Names of the code in which Flux.1 or Stable Diffusion was first published are told by one of
/// them.
[[nodiscard]] std::vector<std::optional<WeightFiles::Tensor>> match_weights(const std::vector<WantedWeight>& wanted,
                                                                            const WeightFiles& files,
                                                                            const LoadOptions& options = {});

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/weight_match.ipp>
#endif
