#pragma once
// strata/pictures/detail/bmp_header.hpp - the header of a BMP file (Windows 2 to 5, OS/2 1 and 2).

#include <string>

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

inline ImageHeader read_bmp_header(HeaderBytes& bytes) {
    constexpr std::size_t file_header = 14;
    constexpr std::uint32_t core = 12;  // OS/2 1 and Windows 2: edges of 16 bits, palette of 3 bytes a colour
    const auto damaged = [&] { throw_bad_picture(bytes.source(), "its header is damaged"); };
    const Bytes start = bytes.all_at(0, file_header + 4);
    BmpLayout layout;
    layout.pixels = little_endian(start, 10, 4);
    const std::uint32_t size = little_endian(start, file_header, 4);
    if (size != core && (size < 16 || size > 1024)) damaged();
    const Bytes info = bytes.all_at(file_header, size);
    ImageHeader header;
    header.format = ImageFormat::bmp;
    const auto field = [&](std::size_t at) { return at + 4 <= size ? little_endian(info, at, 4) : 0U; };
    if (size == core) {
        header.stored = {little_endian(info, 4, 2), little_endian(info, 6, 2)};
        layout.bits = static_cast<int>(little_endian(info, 10, 2));
        layout.colour_bytes = 3;
    } else {
        header.stored = {static_cast<std::int32_t>(field(4)), static_cast<std::int32_t>(field(8))};
        layout.top_down = header.stored.height < 0;
        if (layout.top_down) header.stored.height = -header.stored.height;
        layout.bits = static_cast<int>(little_endian(info, 14, 2));
    }
    if (header.stored.width < 1 || header.stored.height < 1) damaged();

    constexpr std::uint32_t masks = 3;
    constexpr std::uint32_t masks_and_alpha = 6;
    const std::uint32_t packing = field(16);
    const bool is_os2_2 = size == 16 || size == 64;
    const auto refuse = [&](const std::string& what) { throw_unsupported(bytes.source(), "a BMP " + what); };
    if (packing == 4 || packing == 5) refuse(is_os2_2 ? "packed as fax or RLE24" : "with a JPEG or PNG inside");
    if (packing > 6 || (is_os2_2 && packing == masks)) refuse("packed in way " + std::to_string(packing));
    layout.packing = packing == masks_and_alpha ? static_cast<int>(masks) : static_cast<int>(packing);
    const int bits = layout.bits;
    if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
        refuse("of " + std::to_string(bits) + " bits a pixel");
    const bool fits = packing == 0 || (packing == 1 && bits == 8) || (packing == 2 && bits == 4) ||
                      (layout.packing == 3 && (bits == 16 || bits == 32));
    if (!fits || (layout.top_down && (packing == 1 || packing == 2))) damaged();

    layout.palette = file_header + size;
    if (layout.packing == 3) {
        // In the longer headers the masks are fields; behind the shortest they follow it.
        const std::size_t count = packing == masks_and_alpha || size >= 56 ? 4 : 3;
        if (size < 52) layout.palette += count * 4;
        const Bytes words = bytes.all_at(file_header + 40, count * 4);
        for (std::size_t i = 0; i < count; ++i) layout.masks[i] = little_endian(words, i * 4, 4);
    } else if (bits == 16) {
        layout.masks = {0x7C00, 0x03E0, 0x001F, 0};
    } else if (bits == 32) {
        layout.masks = {0x00FF0000, 0x0000FF00, 0x000000FF, 0};  // the fourth byte is not alpha
    }
    if (layout.masks[3] != 0) header.channels = 4;
    if (bits <= 8) {
        const std::uint32_t most = 1U << bits;
        const std::uint32_t used = size == core ? 0 : field(32);
        layout.colours = static_cast<int>(used == 0 || used > most ? most : used);
        // Files are about that have fewer colours than they say.
        if (layout.pixels > layout.palette) {
            const std::uint64_t room = (layout.pixels - layout.palette) / static_cast<unsigned>(layout.colour_bytes);
            if (room < static_cast<unsigned>(layout.colours)) layout.colours = static_cast<int>(room);
        }
    }
    header.layout = layout;
    return header;
}

}  // namespace strata::pictures::detail
