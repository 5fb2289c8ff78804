#pragma once
// strata/zero/unit_values.hpp - UnitValues: where the first values of a unit's parameters come from, while it has no memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace strata::zero {

/// The values that a unit's parameters begin with. They are asked for when an engine takes the unit over, and an engine may ask
/// twice: it takes parameters that keep another number format behind the others. Local, all of it.
class UnitValues {
public:
    UnitValues() = default;
    UnitValues(const UnitValues&) = delete;
    UnitValues& operator=(const UnitValues&) = delete;
    virtual ~UnitValues() = default;

    /// Whether a range costs no more than its bytes, as in a file. Then each rank of a stage that shards parameters reads what it
    /// keeps; otherwise rank 0 reads all of it, unit by unit, and the others hear of it.
    [[nodiscard]] virtual bool reads_ranges() const noexcept = 0;
    /// Elements begin, begin + 1, ... of a parameter in row-major order, converted to the type of `values`.
    ///
    ///   parameter  its number in DeferredUnit::parameters
    ///   values     (n), contiguous, on any device; begin + n is at most the parameter's elements
    virtual void read(std::size_t parameter, std::int64_t begin, const at::Tensor& values) = 0;
    /// What read() needed may go: nothing more is read for a while.
    virtual void let_go() noexcept {}
    /// The most that read() needs memory for beside `values`, in bytes.
    [[nodiscard]] virtual std::int64_t bytes_beside() const noexcept = 0;
    /// Of where the values come from: the same on all ranks, or their models differ.
    [[nodiscard]] virtual std::string description() const = 0;
};

/// A unit whose parameters have names, shapes and types, but no memory until an engine takes them over.
struct DeferredUnit {
    std::vector<at::Tensor> parameters;  ///< the model's own, in the order of registration
    std::shared_ptr<UnitValues> values;

    /// The number of a parameter. None: it is not one of them.
    [[nodiscard]] std::optional<std::size_t> find(const at::Tensor& tensor) const noexcept {
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (parameters[i].is_same(tensor)) return i;
        }
        return std::nullopt;
    }
};

}  // namespace strata::zero
