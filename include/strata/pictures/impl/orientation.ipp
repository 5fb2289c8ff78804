#pragma once
// strata/pictures/impl/orientation.ipp - turning pixels, and reading which way they lie.

#include <algorithm>
#include <array>
#include <cstring>

#include <strata/core/inline.hpp>
#include <strata/pictures/orientation.hpp>

namespace strata::pictures {

namespace detail {

/// Where the pixel of a result's (x, y) stands in the source: start + x * along_x + y * along_y, in pixels.
struct Walk {
    std::int64_t start;
    std::int64_t along_x;
    std::int64_t along_y;
};

inline Walk walk_of(Orientation orientation, std::int64_t width, std::int64_t height) noexcept {
    const std::int64_t right = width - 1;
    const std::int64_t bottom = (height - 1) * width;
    switch (orientation) {
        case Orientation::upright:
            break;
        case Orientation::mirror:
            return {right, -1, width};
        case Orientation::turn_half:
            return {bottom + right, -1, -width};
        case Orientation::flip:
            return {bottom, 1, -width};
        case Orientation::transpose:
            return {0, width, 1};
        case Orientation::turn_right:
            return {bottom, -width, 1};
        case Orientation::transverse:
            return {bottom + right, -width, -1};
        case Orientation::turn_left:
            return {right, width, -1};
    }
    return {0, 1, width};
}

template <std::size_t Channels>
void copy_along(const std::uint8_t* source, const Walk& walk, const PictureSize& result, std::uint8_t* out) {
    // Small squares, so that lines of the source stay in the cache when its columns become rows.
    constexpr std::int64_t tile = 32;
    for (std::int64_t top = 0; top < result.height; top += tile)
        for (std::int64_t left = 0; left < result.width; left += tile)
            for (std::int64_t y = top; y < std::min(top + tile, result.height); ++y)
                for (std::int64_t x = left; x < std::min(left + tile, result.width); ++x) {
                    const std::int64_t from = walk.start + x * walk.along_x + y * walk.along_y;
                    const std::int64_t to = y * result.width + x;
                    std::memcpy(out + static_cast<std::size_t>(to) * Channels,
                                source + static_cast<std::size_t>(from) * Channels, Channels);
                }
}

inline Orientation orientation_of(std::uint32_t value) noexcept {
    return value >= 1 && value <= 8 ? static_cast<Orientation>(value) : Orientation::upright;
}

/// Numbers in the byte order of a TIFF file; nullopt beyond its end.
struct TiffNumbers {
    std::span<const std::byte> bytes;
    bool big_endian;

    template <std::size_t Size>
    [[nodiscard]] std::optional<std::uint32_t> at(std::uint64_t offset) const noexcept {
        if (offset > bytes.size() || bytes.size() - offset < Size) return std::nullopt;
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < Size; ++i) {
            const std::size_t place = static_cast<std::size_t>(offset) + (big_endian ? i : Size - 1 - i);
            value = (value << 8) | std::to_integer<std::uint32_t>(bytes[place]);
        }
        return value;
    }
};

}  // namespace detail

STRATA_INLINE Picture turn_upright(Picture picture, Orientation orientation) {
    if (orientation == Orientation::upright) return picture;
    const PictureSize size = turned({picture.width, picture.height}, orientation);
    const detail::Walk walk = detail::walk_of(orientation, picture.width, picture.height);
    Picture result{size.width, size.height, picture.channels, std::vector<std::uint8_t>(picture.pixels.size())};
    if (picture.channels == 4)
        detail::copy_along<4>(picture.pixels.data(), walk, size, result.pixels.data());
    else
        detail::copy_along<3>(picture.pixels.data(), walk, size, result.pixels.data());
    return result;
}

STRATA_INLINE std::optional<Orientation> exif_orientation(std::span<const std::byte> tiff) noexcept {
    if (tiff.size() < 8) return std::nullopt;
    const bool big_endian = std::memcmp(tiff.data(), "MM", 2) == 0;
    if (!big_endian && std::memcmp(tiff.data(), "II", 2) != 0) return std::nullopt;
    const detail::TiffNumbers numbers{tiff, big_endian};
    if (numbers.at<2>(2) != 42U) return std::nullopt;
    const std::uint64_t directory = *numbers.at<4>(4);
    const std::uint32_t entries = numbers.at<2>(directory).value_or(0);
    constexpr std::uint64_t entry_bytes = 12;
    for (std::uint32_t i = 0; i < entries; ++i) {
        const std::uint64_t entry = directory + 2 + i * entry_bytes;
        const std::optional<std::uint32_t> tag = numbers.at<2>(entry);
        if (!tag) return std::nullopt;
        if (*tag != 0x0112U) continue;
        const std::uint32_t type = numbers.at<2>(entry + 2).value_or(0);
        const std::uint32_t count = numbers.at<4>(entry + 4).value_or(0);
        if (count < 1) return Orientation::upright;
        switch (type) {  // a SHORT by the standard; some writers use BYTE or LONG
            case 1:
                return detail::orientation_of(numbers.at<1>(entry + 8).value_or(0));
            case 3:
                return detail::orientation_of(numbers.at<2>(entry + 8).value_or(0));
            case 4:
                return detail::orientation_of(numbers.at<4>(entry + 8).value_or(0));
            default:
                return Orientation::upright;
        }
    }
    return std::nullopt;
}

STRATA_INLINE std::optional<Orientation> xmp_orientation(std::string_view packet) noexcept {
    constexpr std::string_view name = "tiff:Orientation";
    for (std::size_t at = packet.find(name); at != std::string_view::npos; at = packet.find(name, at + 1)) {
        std::string_view rest = packet.substr(at + name.size());
        if (rest.starts_with('>'))
            rest.remove_prefix(1);
        else if (rest.starts_with("=\"") || rest.starts_with("='"))
            rest.remove_prefix(2);
        else
            continue;
        if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9')
            return detail::orientation_of(static_cast<std::uint32_t>(rest[0] - '0'));
    }
    return std::nullopt;
}

}  // namespace strata::pictures
