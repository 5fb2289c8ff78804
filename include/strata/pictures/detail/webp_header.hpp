#pragma once
// strata/pictures/detail/webp_header.hpp - the chunks of a WebP file (RFC 9649).

#include <algorithm>

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

inline ImageHeader read_webp_header(HeaderBytes& bytes) {
    const Bytes head = bytes.all_at(12, 18);  // the first chunk's type and size, and its first bytes
    const auto damaged = [&] { throw_bad_picture(bytes.source(), "its header is damaged"); };
    ImageHeader header;
    header.format = ImageFormat::webp;
    if (has(head, 0, "VP8 ")) {
        const bool key_frame = (std::to_integer<unsigned>(head[8]) & 1U) == 0;
        if (!key_frame || !has(head, 11, "\x9D\x01\x2A")) damaged();
        header.stored = {little_endian(head, 14, 2) & 0x3FFF, little_endian(head, 16, 2) & 0x3FFF};
        if (header.stored.width < 1 || header.stored.height < 1) damaged();
        return header;
    }
    if (has(head, 0, "VP8L")) {
        if (head[8] != std::byte{0x2F}) damaged();
        const std::uint32_t bits = little_endian(head, 9, 4);
        header.stored = {(bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1};
        header.channels = ((bits >> 28) & 1U) != 0 ? 4 : 3;
        return header;
    }
    if (!has(head, 0, "VP8X") || little_endian(head, 4, 4) < 10) damaged();
    const auto flags = std::to_integer<unsigned>(head[8]);
    constexpr unsigned has_profile = 0x20;
    constexpr unsigned has_exif = 0x08;
    constexpr unsigned has_alpha = 0x10;
    header.stored = {little_endian(head, 12, 3) + 1, little_endian(head, 15, 3) + 1};
    header.channels = (flags & has_alpha) != 0 ? 4 : 3;
    // The profile comes before the pixels, EXIF after them: one window a part between here and there.
    if ((flags & (has_exif | has_profile)) == 0) return header;
    for (std::uint64_t at = 20 + std::uint64_t{little_endian(head, 4, 4)};;) {
        at += at % 2;
        const Bytes chunk = bytes.at(at, 8);
        if (chunk.size() < 8) return header;
        const std::uint32_t length = little_endian(chunk, 4, 4);
        if (has(chunk, 0, "ICCP") && (flags & has_profile) != 0 && header.profile.parts.empty())
            header.profile.parts.push_back({at + 8, length});
        const bool pixels_begin = has(chunk, 0, "VP8 ") || has(chunk, 0, "VP8L") || has(chunk, 0, "ANMF");
        if ((flags & has_exif) == 0 && pixels_begin) return header;
        if (has(chunk, 0, "EXIF")) {
            const Bytes part = bytes.at(at + 8, std::min<std::size_t>(length, most_metadata_bytes));
            header.orientation = exif_part_orientation(part).value_or(Orientation::upright);
            return header;
        }
        at += std::uint64_t{8} + length;
    }
}

}  // namespace strata::pictures::detail
