#pragma once
// strata/weights/impl/file_values.ipp - bytes of files become elements of tensors, a piece at a time.

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <strata/weights/file_values.hpp>
#include <strata/weights/impl/weight_files.ipp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::weights {

namespace detail {

inline constexpr std::size_t piece_bytes = std::size_t{1} << 20;

inline constexpr std::array<std::pair<storage::Dtype, at::ScalarType>, 10> types{
    {{storage::Dtype::f32, at::kFloat},
     {storage::Dtype::bf16, at::kBFloat16},
     {storage::Dtype::f16, at::kHalf},
     {storage::Dtype::f64, at::kDouble},
     {storage::Dtype::i64, at::kLong},
     {storage::Dtype::i32, at::kInt},
     {storage::Dtype::i16, at::kShort},
     {storage::Dtype::i8, at::kChar},
     {storage::Dtype::u8, at::kByte},
     {storage::Dtype::boolean, at::kBool}}};

}  // namespace detail

STRATA_INLINE std::optional<at::ScalarType> torch_type(storage::Dtype dtype) noexcept {
    for (const auto& [in_file, type] : detail::types) {
        if (in_file == dtype) return type;
    }
    return std::nullopt;
}

STRATA_INLINE std::optional<storage::Dtype> file_type(at::ScalarType type) noexcept {
    for (const auto& [in_file, known] : detail::types) {
        if (known == type) return in_file;
    }
    return std::nullopt;
}

STRATA_INLINE void read_values(const WeightFiles::Tensor& tensor, std::int64_t begin, const at::Tensor& values) {
    const at::NoGradGuard no_grad;
    const at::ScalarType type = torch_type(tensor.entry->dtype).value();  // match_weights() has looked
    const auto element = static_cast<std::int64_t>(c10::elementSize(type));
    if (values.is_cpu() && values.scalar_type() == type && values.is_contiguous()) {
        WeightFiles::read(tensor, zero::detail::bytes_of(values), static_cast<std::uint64_t>(begin * element));
        return;
    }
    const std::int64_t most = static_cast<std::int64_t>(detail::piece_bytes) / element;
    const at::Tensor buffer = at::empty({std::min(most, values.numel())}, at::TensorOptions{}.dtype(type));
    for (std::int64_t at = 0; at < values.numel(); at += most) {
        const at::Tensor piece = buffer.narrow(0, 0, std::min(most, values.numel() - at));
        WeightFiles::read(tensor, zero::detail::bytes_of(piece), static_cast<std::uint64_t>((begin + at) * element));
        values.narrow(0, at, piece.numel()).copy_(piece);
    }
}

STRATA_INLINE FileValues::FileValues(WeightFiles files, std::vector<std::optional<WeightFiles::Tensor>> found,
                                     std::shared_ptr<zero::UnitValues> others)
    : files_{std::move(files)},
      found_{std::move(found)},
      others_{std::move(others)},
      complete_{std::all_of(found_.begin(), found_.end(), [](const auto& tensor) { return tensor.has_value(); })} {}

STRATA_INLINE void FileValues::read(std::size_t parameter, std::int64_t begin, const at::Tensor& values) {
    if (found_[parameter])
        read_values(*found_[parameter], begin, values);
    else
        others_->read(parameter, begin, values);
}

STRATA_INLINE std::int64_t FileValues::bytes_beside() const noexcept {
    return static_cast<std::int64_t>(detail::piece_bytes) + (complete_ ? 0 : others_->bytes_beside());
}

STRATA_INLINE std::string FileValues::description() const {
    return "weights " + files_.digest() + (complete_ ? "" : ", else " + others_->description());
}

}  // namespace strata::weights
