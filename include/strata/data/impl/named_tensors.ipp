#pragma once
// strata/data/impl/named_tensors.ipp - tensors compared with what they should be, and put together.

#include <cstring>

#include <ATen/ops/empty.h>

#include <strata/core/error.hpp>
#include <strata/data/named_tensors.hpp>

namespace strata::data {

namespace detail {

inline std::string tensor_words(at::ScalarType type, const std::vector<std::int64_t>& shape) {
    std::string words = std::string{at::toString(type)} + " (";
    for (std::size_t i = 0; i < shape.size(); ++i)
        words += (i == 0 ? "" : ", ") + (shape[i] == TensorSpec::any ? std::string{"any"} : std::to_string(shape[i]));
    return words + ")";
}

inline bool is_as_specified(const at::Tensor& tensor, const TensorSpec& spec) {
    if (!tensor.defined() || tensor.scalar_type() != spec.type) return false;
    if (tensor.dim() != static_cast<std::int64_t>(spec.shape.size())) return false;
    for (std::size_t i = 0; i < spec.shape.size(); ++i)
        if (spec.shape[i] != TensorSpec::any && tensor.size(static_cast<std::int64_t>(i)) != spec.shape[i])
            return false;
    return true;
}

}  // namespace detail

STRATA_INLINE std::string mismatch(const NamedTensors& tensors, const std::vector<TensorSpec>& specs) {
    for (const TensorSpec& spec : specs) {
        const auto found = tensors.find(spec.name);
        if (found == tensors.end()) return "'" + spec.name + "' is missing";
        const at::Tensor& tensor = found->second;
        if (!detail::is_as_specified(tensor, spec))
            return "'" + spec.name + "' is " +
                   (tensor.defined() ? detail::tensor_words(tensor.scalar_type(), tensor.sizes().vec())
                                     : std::string{"no tensor"}) +
                   ", and not " + detail::tensor_words(spec.type, spec.shape);
    }
    for (const auto& [name, tensor] : tensors) {
        bool is_asked_for = false;
        for (const TensorSpec& spec : specs) is_asked_for |= spec.name == name;
        if (!is_asked_for) return "'" + name + "' is there, and nobody asks for it";
    }
    return {};
}

STRATA_INLINE at::Tensor stack_rows(const std::vector<at::Tensor>& rows) {
    std::vector<std::int64_t> shape = rows.front().sizes().vec();
    shape.insert(shape.begin(), static_cast<std::int64_t>(rows.size()));
    const at::Tensor all = at::empty(shape, rows.front().scalar_type());
    auto* out = static_cast<std::byte*>(all.data_ptr());
    for (const at::Tensor& row : rows) {
        if (row.sizes() != rows.front().sizes() || row.scalar_type() != rows.front().scalar_type())
            throw Error{Errc::bad_cache_entry, "two entries of one batch have different shapes or types",
                        "let the encoders return one shape for one size, or pad in collate()"};
        std::memcpy(out, row.data_ptr(), row.nbytes());
        out += row.nbytes();
    }
    return all;
}

}  // namespace strata::data
