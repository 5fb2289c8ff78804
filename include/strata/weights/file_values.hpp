#pragma once
// strata/weights/file_values.hpp - FileValues: a unit's parameters have their first values from safetensors files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/unit_values.hpp>

namespace strata::weights {

/// libtorch's type for a type of files, and the other way. None: it has none.
[[nodiscard]] std::optional<at::ScalarType> torch_type(storage::Dtype dtype) noexcept;
[[nodiscard]] std::optional<storage::Dtype> file_type(at::ScalarType type) noexcept;

/// Elements begin, begin + 1, ... of a tensor in a file, in row-major order, converted to the type of `values`. Where
/// types or devices differ it reads 1 MiB at a time; otherwise straight into `values`. Local. Throws io_failed, corrupt_safetensors.
///
///   values  (n), contiguous, on any device
void read_values(const WeightFiles::Tensor& tensor, std::int64_t begin, const at::Tensor& values);

/// Ranges cost their bytes: each rank reads what it keeps.
class FileValues final : public zero::UnitValues {
public:
    ///   found   by number of parameter; none: it has its value from `others`
    ///   others  where values came from before
    FileValues(WeightFiles files, std::vector<std::optional<WeightFiles::Tensor>> found,
               std::shared_ptr<zero::UnitValues> others);

    [[nodiscard]] bool reads_ranges() const noexcept override { return complete_; }
    void read(std::size_t parameter, std::int64_t begin, const at::Tensor& values) override;
    void let_go() noexcept override { others_->let_go(); }
    [[nodiscard]] std::int64_t bytes_beside() const noexcept override;
    [[nodiscard]] std::string description() const override;

private:
    WeightFiles files_;
    std::vector<std::optional<WeightFiles::Tensor>> found_;
    std::shared_ptr<zero::UnitValues> others_;
    bool complete_;  // nothing is asked of others_
};

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/file_values.ipp>
#endif
