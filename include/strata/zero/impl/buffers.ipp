#pragma once
// strata/zero/impl/buffers.ipp - what buffers are, and where their values go.

#include <sstream>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/zero/buffers.hpp>

namespace strata::zero::detail {

STRATA_INLINE std::string describe(const std::vector<Buffer>& buffers) {
    std::ostringstream text;
    for (const Buffer& buffer : buffers) {
        const at::Tensor& tensor = buffer.tensor;
        if (tensor.layout() != at::kStrided || tensor.is_meta()) {
            throw Error{Errc::bad_parameter,
                        "the buffer " + buffer.name + (tensor.is_meta() ? " has no memory" : " is not dense"),
                        "register it with values in memory, as an ordinary tensor"};
        }
        text << "buffer " << buffer.name << ' ' << tensor.sizes() << ' ' << c10::toString(tensor.scalar_type()) << '\n';
    }
    return text.str();
}

STRATA_INLINE void place_buffer(const at::Tensor& buffer, at::Device device) {
    const at::Tensor values = buffer.detach();
    bool shares = false;  // as expand() does: elements of one address, which cannot be written
    for (std::int64_t i = 0; i < values.dim(); ++i) shares = shares || (values.size(i) > 1 && values.stride(i) == 0);
    if (values.device() == device && !shares) return;
    at::Tensor{buffer}.set_data(shares ? values.to(device).contiguous() : values.to(device));
}

/// A type as policies call it.
[[nodiscard]] STRATA_INLINE std::string type_text(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return "fp32";
        case at::kBFloat16:
            return "bf16";
        case at::kHalf:
            return "fp16";
        case at::kDouble:
            return "fp64";
        default:
            return c10::toString(type);
    }
}

}  // namespace strata::zero::detail

namespace strata::zero {

STRATA_INLINE void explain_mixed_types(const c10::Error& error, const std::vector<Buffer>& tensors,
                                       at::ScalarType type) {
    const std::string message = error.msg();
    const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
    if (!says("dtype") && !says("scalar type") && !says("should be the same")) return;
    constexpr std::size_t shown = 3;
    std::string names;
    std::size_t found = 0;
    for (const Buffer& buffer : tensors) {
        const bool differs = buffer.tensor.is_floating_point() && buffer.tensor.scalar_type() != type;
        if (!differs || ++found > shown) continue;
        names += (names.empty() ? "" : ", ") + buffer.name + " in " + detail::type_text(buffer.tensor.scalar_type());
    }
    if (found == 0) return;
    if (found > shown) names += " and " + std::to_string(found - shown) + " more";
    throw Error{Errc::bad_parameter,
                "the forward pass brought together tensors of different types (" +
                    std::string{core::first_line(message)} + "): parameters are kept in " + detail::type_text(type) +
                    ", and buffers and exceptions keep their own types: " + names,
                "convert what comes of them before a layer takes it, (x + table).to(x.dtype()), or register the "
                "buffer in the parameters' type"};
}

}  // namespace strata::zero
