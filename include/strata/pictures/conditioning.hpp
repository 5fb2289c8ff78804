#pragma once
// strata/pictures/conditioning.hpp - ConditioningKind: what a picture that belongs to a training picture is to a model.

#include <cstdint>
#include <string_view>

namespace strata::pictures {

/// What a conditioning picture is to a model, which says how its pixels are made. Both are framed as the training picture is.
enum class ConditioningKind : std::uint8_t {
    picture,  ///< (3, H, W) in [-1, 1], as the training picture: of a ControlNet, or one to begin with
    mask,     ///< (1, H, W) in [0, 1], 1 where the mask is white: resize_mask_into()
};

/// "picture", "mask"
[[nodiscard]] constexpr std::string_view name_of(ConditioningKind kind) noexcept {
    return kind == ConditioningKind::mask ? "mask" : "picture";
}
/// Planes of its pixels.
[[nodiscard]] constexpr std::int64_t channels_of(ConditioningKind kind) noexcept {
    return kind == ConditioningKind::mask ? 1 : 3;
}

}  // namespace strata::pictures
