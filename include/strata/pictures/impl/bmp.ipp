#pragma once
// strata/pictures/impl/bmp.ipp - rows of a BMP, from the bottom to the top.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <strata/core/inline.hpp>
#include <strata/pictures/bmp.hpp>
#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::pictures {

namespace detail {

using Colour = std::array<std::uint8_t, 3>;

/// 256 colours; those that the file does not have are black.
inline std::vector<Colour> bmp_palette(Bytes file, const BmpLayout& layout, std::string_view source) {
    std::vector<Colour> palette(256, Colour{});
    const auto each = static_cast<std::size_t>(layout.colour_bytes);
    const std::size_t bytes = static_cast<std::size_t>(layout.colours) * each;
    if (layout.palette + bytes > file.size()) throw_bad_picture(source, "the file ends too early");
    const Bytes stored = file.subspan(static_cast<std::size_t>(layout.palette), bytes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(layout.colours); ++i)
        for (std::size_t c = 0; c < 3; ++c) palette[i][c] = std::to_integer<std::uint8_t>(stored[i * each + 2 - c]);
    return palette;
}

/// The samples that a mask cuts out of a pixel, as 8 bits.
struct MaskedSample {
    std::uint32_t mask;
    int shift;
    std::uint32_t most;

    explicit MaskedSample(std::uint32_t bits)
        : mask{bits}, shift{bits == 0 ? 0 : std::countr_zero(bits)}, most{bits == 0 ? 0 : bits >> shift} {}
    [[nodiscard]] std::uint8_t of(std::uint32_t pixel) const noexcept {
        if (most == 0) return 0;
        const std::uint64_t value = (pixel & mask) >> shift;
        if (most > 255) return static_cast<std::uint8_t>(value >> (std::bit_width(most) - 8));
        return static_cast<std::uint8_t>((value * 510 + most) / (std::uint64_t{most} * 2));
    }
};

/// The numbers of the palette's colours, row by row from the bottom: RLE8, or RLE4 with `nibbles`.
inline std::vector<std::uint8_t> bmp_run_lengths(Bytes packed, const PictureSize& size, bool nibbles,
                                                 std::string_view source) {
    std::vector<std::uint8_t> indices(static_cast<std::size_t>(size.width * size.height));
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::size_t at = 0;
    const auto next = [&] {
        if (at >= packed.size()) throw_bad_picture(source, "the file ends too early");
        return std::to_integer<unsigned>(packed[at++]);
    };
    const auto put = [&](unsigned value) {
        if (x < size.width && y < size.height)
            indices[static_cast<std::size_t>(y * size.width + x)] = static_cast<std::uint8_t>(value);
        ++x;
    };
    while (y < size.height) {
        const unsigned count = next();
        const unsigned value = next();
        if (count > 0) {
            for (unsigned i = 0; i < count; ++i) put(!nibbles ? value : i % 2 == 0 ? value >> 4 : value & 15U);
        } else if (value == 0) {  // end of the row
            x = 0;
            ++y;
            if (at == packed.size() && y == size.height) break;  // without the end mark
        } else if (value == 1) {                                 // end of the picture
            break;
        } else if (value == 2) {  // further to the right and up
            x += next();
            y += next();
        } else {  // as many as they are, padded to 16 bits
            const std::size_t begin = at;
            for (unsigned i = 0, byte = 0; i < value; ++i) {
                if (!nibbles || i % 2 == 0) byte = next();
                put(!nibbles ? byte : i % 2 == 0 ? byte >> 4 : byte & 15U);
            }
            if ((at - begin) % 2 != 0) static_cast<void>(next());
        }
    }
    return indices;
}

}  // namespace detail

STRATA_INLINE Picture decode_bmp(std::span<const std::byte> file, const ImageHeader& header, std::string_view source) {
    const auto& layout = std::get<BmpLayout>(header.layout);
    const std::int64_t width = header.stored.width, height = header.stored.height;
    Picture picture{width, height, header.channels, {}};
    const auto row_of = [&](std::int64_t y) {  // of the picture, for the y-th row of the file
        const std::int64_t line = layout.top_down ? y : height - 1 - y;
        return picture.pixels.data() + static_cast<std::size_t>(line * width * picture.channels);
    };
    const auto make_room = [&] { picture.pixels.resize(static_cast<std::size_t>(width * height * picture.channels)); };
    if (layout.pixels > file.size()) detail::throw_bad_picture(source, "the file ends too early");
    const auto stored = file.subspan(static_cast<std::size_t>(layout.pixels));
    std::vector<detail::Colour> palette;
    if (layout.bits <= 8) palette = detail::bmp_palette(file, layout, source);

    if (layout.packing == 1 || layout.packing == 2) {
        const auto indices = detail::bmp_run_lengths(stored, header.stored, layout.packing == 2, source);
        make_room();
        for (std::int64_t y = 0; y < height; ++y) {
            std::uint8_t* out = row_of(y);
            for (std::int64_t x = 0; x < width; ++x, out += 3)
                std::memcpy(out, palette[indices[static_cast<std::size_t>(y * width + x)]].data(), 3);
        }
        return picture;
    }

    // Rows are padded to 32 bits, the last one not in every file.
    const std::int64_t row_bits = width * layout.bits;
    const auto stride = static_cast<std::size_t>((row_bits + 31) / 32 * 4);
    const auto last = static_cast<std::size_t>((row_bits + 7) / 8);
    if (stored.size() < last || (stored.size() - last) / stride < static_cast<std::size_t>(height - 1))
        detail::throw_bad_picture(source, "the file ends too early");
    make_room();
    const std::array<detail::MaskedSample, 4> samples{
        detail::MaskedSample{layout.masks[0]}, detail::MaskedSample{layout.masks[1]},
        detail::MaskedSample{layout.masks[2]}, detail::MaskedSample{layout.masks[3]}};
    for (std::int64_t y = 0; y < height; ++y) {
        const auto row = stored.subspan(static_cast<std::size_t>(y) * stride, last);
        std::uint8_t* out = row_of(y);
        for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x, out += picture.channels) {
            if (layout.bits <= 8) {
                const std::size_t bit = x * static_cast<std::size_t>(layout.bits);
                const auto byte = std::to_integer<unsigned>(row[bit / 8]);
                const unsigned index =
                    (byte >> (8 - layout.bits - static_cast<int>(bit % 8))) & ((1U << layout.bits) - 1);
                std::memcpy(out, palette[index].data(), 3);
            } else if (layout.bits == 24) {
                for (std::size_t c = 0; c < 3; ++c) out[c] = std::to_integer<std::uint8_t>(row[x * 3 + 2 - c]);
            } else {
                const int bytes = layout.bits / 8;
                const std::uint32_t pixel = detail::little_endian(row, x * static_cast<std::size_t>(bytes), bytes);
                for (std::size_t c = 0; c < static_cast<std::size_t>(picture.channels); ++c)
                    out[c] = samples[c].of(pixel);
            }
        }
    }
    return picture;
}

}  // namespace strata::pictures
