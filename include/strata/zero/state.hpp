#pragma once
// strata/zero/state.hpp - the training state of an engine, in terms that no world size enters.

#include <cstdint>
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

/// The kinds of state beside the update rule's state_names.
inline constexpr std::string_view weight_kind = "weight";
inline constexpr std::string_view average_kind = "average";  ///< with Ema<...>

/// A run of one kind of state that this rank owns. Over all ranks the runs of a kind cover every element once. The state
/// itself is read and written in fp32, which holds bf16 exactly: it moves between precisions, and comes back to bf16 bit
/// by bit.
struct StateOutline {
    std::string_view kind;
    std::int64_t begin = 0;  ///< number of its first element in the virtual array
    std::int64_t numel = 0;
};

}  // namespace strata::zero
