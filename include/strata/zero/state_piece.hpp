#pragma once
// strata/zero/state_piece.hpp - the training state of an engine, in terms that no world size enters.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata::zero {

/// A parameter's place in the virtual array of all trainable parameters (zero/layout.hpp).
struct ParameterInfo {
    std::string name;
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0;  ///< its first element's number
    friend bool operator==(const ParameterInfo&, const ParameterInfo&) = default;
};

/// The kind of pieces that Ema<...> makes.
inline constexpr std::string_view average_kind = "average";

/// A run of one kind of state that this rank owns. Over all ranks the pieces of a kind cover every element once.
///
/// Always fp32, which holds bf16 exactly: state moves between precisions, and comes back to bf16 bit by bit.
struct StatePiece {
    std::string_view kind;    ///< "weight", one of the update rule's state_names, or average_kind
    std::int64_t begin = 0;   ///< number of its first element in the virtual array
    std::span<float> values;  ///< the engine's memory: read it to save, overwrite it to restore
};

}  // namespace strata::zero
