#pragma once
// strata/zero/parts/packed_unit.hpp - PackedUnit: frozen parameters of a unit as one array of bytes.
//
// Shapes: N  elements of the parameters      P  bytes of them, padded to a multiple of the world

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/zero/frozen_codec.hpp>

namespace strata::zero {

/// Where each parameter is in the bytes: matrices as a codec makes them, others as they are. Pure: the same on every rank. Local, all of it.
class PackedUnit {
public:
    static constexpr std::int64_t alignment = 16;  ///< of a parameter's first byte

    /// One parameter.
    struct Piece {
        std::string name;
        MatrixShape shape{};
        bool quantised = false;
        std::int64_t numel = 0;
        std::int64_t at = 0;     ///< its first element in (N)
        std::int64_t begin = 0;  ///< its first byte in (P)
        std::int64_t bytes = 0;
    };

    /// format  outlives it
    /// dtype   that the model computes with, and that what is not quantised is kept in
    PackedUnit(const FrozenFormat& format, at::ScalarType dtype) : format_{&format}, dtype_{dtype} {}

    /// The next parameter. Matrices, tensors of two dimensions or more, are quantised, unless they keep the other number format.
    void add(std::string name, const at::Tensor& parameter, bool excepted);

    [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
    [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }
    [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] const FrozenFormat& format() const noexcept { return *format_; }
    [[nodiscard]] at::ScalarType dtype() const noexcept { return dtype_; }

    /// Makes bytes of a parameter. Throws bad_parameter for one that holds what is not finite and is quantised.
    ///
    ///   values  contiguous, on the CPU: fp32 for a quantised one, else of dtype()
    ///   to      (piece.bytes) in host memory
    void pack(const Piece& piece, const at::Tensor& values, std::byte* to) const;
    /// What the type of `values` is for pack().
    [[nodiscard]] at::ScalarType type_of(const Piece& piece) const noexcept {
        return piece.quantised ? at::kFloat : dtype_;
    }
    /// All parameters.
    ///
    ///   packed_P  contiguous bytes; on the device of `all_N`
    void unpack(const at::Tensor& packed_P, const at::Tensor& all_N) const;
    /// One.
    ///
    ///   bytes  (piece.bytes), contiguous, on the device of `all_N`
    void unpack(const Piece& piece, const at::Tensor& bytes, const at::Tensor& all_N) const;

private:
    void unpack_on_host(const Piece& piece, const std::byte* packed, void* values) const;

    const FrozenFormat* format_;
    at::ScalarType dtype_;
    std::vector<Piece> pieces_;
    std::int64_t numel_ = 0;
    std::int64_t bytes_ = 0;
};

/// Bytes of one parameter, of a unit that was gathered so.
struct PackedPiece {
    at::Tensor bytes;  ///< (piece.bytes), on the device
    const FrozenFormat* format = nullptr;
    at::ScalarType dtype = at::kFloat;
    bool quantised = false;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/packed_unit.ipp>
#endif
