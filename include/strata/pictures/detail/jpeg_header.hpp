#pragma once
// strata/pictures/detail/jpeg_header.hpp - the segments of a JPEG file before its pixels (ITU-T T.81, annex B).

#include <algorithm>
#include <array>
#include <string>

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

/// Size and channels from a frame header (SOFn) that begins after its marker.
inline void read_jpeg_frame(HeaderBytes& bytes, std::uint64_t at, unsigned marker, ImageHeader& header) {
    // Baseline, extended and progressive, with Huffman or arithmetic coding.
    constexpr std::array<unsigned, 5> decoded{0xC0, 0xC1, 0xC2, 0xC9, 0xCA};
    const auto refuse = [&](const std::string& what) { throw_unsupported(bytes.source(), what); };
    if (std::find(decoded.begin(), decoded.end(), marker) == decoded.end()) refuse("a lossless or hierarchical JPEG");
    const Bytes frame = bytes.all_at(at, 8);
    if (const std::uint32_t bits = big_endian(frame, 2, 1); bits != 8)
        refuse("a JPEG of " + std::to_string(bits) + " bits a sample");
    header.stored = {big_endian(frame, 5, 2), big_endian(frame, 3, 2)};
    header.channels = static_cast<int>(big_endian(frame, 7, 1));
    if (header.channels != 1 && header.channels != 3 && header.channels != 4)
        refuse("a JPEG of " + std::to_string(header.channels) + " channels");
    if (header.stored.width < 1 || header.stored.height < 1) throw_bad_picture(bytes.source(), "its header is damaged");
}

/// Notes where a part of the colour profile lies: "ICC_PROFILE", 0, its number from 1 on, how many there are.
inline void note_jpeg_profile(HeaderBytes& bytes, std::uint64_t at, std::uint32_t length, ProfilePlace& profile) {
    constexpr std::string_view name{"ICC_PROFILE\0", 12};
    constexpr std::size_t around = 14;
    const Bytes head = bytes.at(at + 2, around);
    if (head.size() < around || length < around + 2 || !has(head, 0, name)) return;
    const std::size_t number = big_endian(head, 12, 1);
    const std::size_t count = big_endian(head, 13, 1);
    if (profile.parts.empty()) profile.parts.resize(count);
    if (number < 1 || number > count || profile.parts.size() != count || profile.parts[number - 1].bytes != 0)
        profile.complete = false;
    else
        profile.parts[number - 1] = {at + 2 + around, length - 2 - around};
}

inline ImageHeader read_jpeg_header(HeaderBytes& bytes) {
    ImageHeader header;
    header.format = ImageFormat::jpeg;
    std::optional<Orientation> orientation;
    bool framed = false;
    for (std::uint64_t at = 2;;) {
        // Any number of FF, then a byte that is neither FF nor 00; what lies between segments is skipped, as libjpeg
        // does.
        unsigned marker = 0;
        for (bool after_ff = false; marker == 0; ++at) {
            const unsigned byte = std::to_integer<unsigned>(bytes.all_at(at, 1)[0]);
            if (byte == 0xFF)
                after_ff = true;
            else if (after_ff && byte != 0)
                marker = byte;
            else
                after_ff = false;
        }
        constexpr unsigned start_of_scan = 0xDA;
        constexpr unsigned end_of_image = 0xD9;
        if (marker == start_of_scan || marker == end_of_image) {
            if (!framed) throw_bad_picture(bytes.source(), "its header is damaged");
            break;
        }
        if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;  // these have no length
        const std::uint32_t length = big_endian(bytes.all_at(at, 2), 0, 2);  // counts itself
        if (length < 2) throw_bad_picture(bytes.source(), "its header is damaged");
        const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
        if (is_frame && !framed) {
            read_jpeg_frame(bytes, at, marker, header);
            framed = true;
        } else if (marker == 0xE1 && !orientation && has(bytes.at(at + 2, 5), 0, std::string_view{"Exif\0", 5})) {
            // The first of them counts, even if it says nothing. The tag is near the beginning, a thumbnail after it.
            const std::size_t part = length - 2;
            orientation = exif_part_orientation(bytes.at(at + 2, std::min<std::size_t>(part, 2048)));
            if (!orientation)
                orientation = exif_part_orientation(bytes.at(at + 2, part)).value_or(Orientation::upright);
        } else if (marker == 0xE2) {
            note_jpeg_profile(bytes, at, length, header.profile);
        }
        at += length;
    }
    header.orientation = orientation.value_or(Orientation::upright);
    for (const ProfilePlace::Part& part : header.profile.parts)
        if (part.bytes == 0) header.profile.complete = false;
    return header;
}

}  // namespace strata::pictures::detail
