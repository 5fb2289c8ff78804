#pragma once
// strata/pictures/orientation.hpp - how a stored picture is to be turned before anybody looks at it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// EXIF's tag 0x0112 (CIPA DC-008, section 4.6.4). The name says what makes the stored picture upright.
enum class Orientation : std::uint8_t {
    upright = 1,
    mirror = 2,      ///< left to right
    turn_half = 3,   ///< by 180 degrees
    flip = 4,        ///< top to bottom
    transpose = 5,   ///< rows become columns
    turn_right = 6,  ///< by 90 degrees clockwise
    transverse = 7,  ///< transpose, then turn_half
    turn_left = 8,   ///< by 90 degrees counterclockwise
};

/// True when width and height change places.
[[nodiscard]] constexpr bool swaps_edges(Orientation orientation) noexcept {
    return orientation >= Orientation::transpose;
}

/// The size after turning. It is its own inverse.
[[nodiscard]] constexpr PictureSize turned(const PictureSize& size, Orientation orientation) noexcept {
    return swaps_edges(orientation) ? PictureSize{size.height, size.width} : size;
}
static_assert(turned({3, 2}, Orientation::turn_left) == PictureSize{2, 3});

/// The picture as it is meant to be seen. Moves it through where there is nothing to do; else takes as much memory
/// again while it works.
[[nodiscard]] Picture turn_upright(Picture picture, Orientation orientation);

/// The orientation that EXIF data states: tag 0x0112 of the first directory of a TIFF file.
///
///   tiff  from the byte order mark "II" or "MM" on; may be damaged or hostile
///   returns nullopt when there is none; upright when it is there with a value that means nothing
[[nodiscard]] std::optional<Orientation> exif_orientation(std::span<const std::byte> tiff) noexcept;

/// The orientation in an XMP packet, as element or attribute `tiff:Orientation`; nullopt when there is none.
[[nodiscard]] std::optional<Orientation> xmp_orientation(std::string_view packet) noexcept;

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/orientation.ipp>
#endif
