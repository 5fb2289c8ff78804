#pragma once
// strata/zero/frozen_codec.hpp - FrozenCodec: what the class `codec` of a format for frozen weights does, and it behind pointers.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <ATen/core/Tensor.h>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/policy/frozen_weights.hpp>

namespace strata::zero {

/// A tensor of two dimensions or more as a codec sees it: in row-major order, a row is what makes one output (dimension 0).
struct MatrixShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;  ///< of a kernel: inputs, height and width together
    [[nodiscard]] constexpr std::int64_t numel() const noexcept { return rows * columns; }
    friend constexpr bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// What `codec` of a format does: Int8's, Nf4's, or one of your own. All of it is static, local, and a pure function of its arguments, so
/// that every rank makes the same of the same bytes.
///
///   bytes(shape)   that a matrix takes
///   quantise(values, shape, packed)
///                  makes bytes of fp32 values; all bytes are set. Returns false when one value is infinite or NaN; `packed` is of no
///                  use then
///   dequantise(packed, shape, values)
///                  the other way, to fp32, bf16 or fp16
/// `packed` is aligned to 16 bytes, `values` to its elements.
template <class C>
concept FrozenCodec = requires {
    sizeof(C);
}
&&requires(const float* values, MatrixShape shape, std::byte* packed, const std::byte* from, float* floats, bf16* bf16s,
           fp16* fp16s) {
    { C::bytes(shape) } -> std::same_as<std::int64_t>;
    { C::quantise(values, shape, packed) } -> std::same_as<bool>;
    C::dequantise(from, shape, floats);
    C::dequantise(from, shape, bf16s);
    C::dequantise(from, shape, fp16s);
};

/// What it may do besides where the device is not the CPU, with operations of libtorch. Without it the bytes are copied to the host,
/// dequantised there and copied back.
///
///   packed  (bytes(shape)) of uint8, contiguous
///   values  (shape.numel()), contiguous, on the same device
template <class C>
concept CodecOnDevices = requires(const at::Tensor& packed, MatrixShape shape, const at::Tensor& values) {
    C::dequantise_on_device(packed, shape, values);
};

/// A format and its codec, for parts that are no templates.
struct FrozenFormat {
    const char* name;
    std::int64_t (*bytes)(MatrixShape);
    bool (*quantise)(const float*, MatrixShape, std::byte*);
    void (*as_fp32)(const std::byte*, MatrixShape, float*);
    void (*as_bf16)(const std::byte*, MatrixShape, bf16*);
    void (*as_fp16)(const std::byte*, MatrixShape, fp16*);
    void (*on_device)(const at::Tensor&, MatrixShape, const at::Tensor&);  ///< nullptr: it has none
};

namespace detail {

template <class Format>
struct CodecOf {
    static constexpr bool holds = FrozenCodec<typename Format::codec>;
    static_assert(
        holds,
        "[ST0157] The class codec of a format for frozen weights is not defined here, or lacks one of bytes(), quantise() "
        "and dequantise() to fp32, bf16 and fp16. Fix: include the header that defines it, and write what "
        "zero::FrozenCodec asks for (docs/write-a-frozen-format.md).");
    using type = std::conditional_t<holds, Format, Int8>;
};

template <class Codec>
constexpr auto device_function_of() noexcept -> void (*)(const at::Tensor&, MatrixShape, const at::Tensor&) {
    if constexpr (CodecOnDevices<Codec>) return &Codec::dequantise_on_device;
    return nullptr;
}

template <class Format>
inline constexpr FrozenFormat frozen_format_v{
    .name = Format::name,
    .bytes = [](MatrixShape shape) { return Format::codec::bytes(shape); },
    .quantise = [](const float* values, MatrixShape shape,
                   std::byte* packed) { return Format::codec::quantise(values, shape, packed); },
    .as_fp32 = [](const std::byte* packed, MatrixShape shape,
                  float* values) { Format::codec::dequantise(packed, shape, values); },
    .as_bf16 = [](const std::byte* packed, MatrixShape shape,
                  bf16* values) { Format::codec::dequantise(packed, shape, values); },
    .as_fp16 = [](const std::byte* packed, MatrixShape shape,
                  fp16* values) { Format::codec::dequantise(packed, shape, values); },
    .on_device = device_function_of<typename Format::codec>()};

/// The format that a policy keeps frozen weights in, looked at; void where they are kept as they compute.
template <class Policy, bool quantises = Policy::quantises>
struct FormatOfPolicy {
    using type = void;
};
template <class Policy>
struct FormatOfPolicy<Policy, true> {
    // Its sentence is said where this class is made whole.
    static_assert(sizeof(CodecOf<typename Policy::format>) > 0);
    using type = typename CodecOf<typename Policy::format>::type;
};

}  // namespace detail

/// What a policy of slot::FrozenFormat keeps frozen weights in; nullptr where that is what the model computes with.
template <class Policy>
[[nodiscard]] constexpr const FrozenFormat* frozen_format_of() noexcept {
    if constexpr (Policy::quantises)
        return &detail::frozen_format_v<typename detail::FormatOfPolicy<Policy>::type>;
    else
        return nullptr;
}

}  // namespace strata::zero
