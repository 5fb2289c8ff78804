#pragma once
// strata/pictures/detail/png_header.hpp - the chunks of a PNG file before its pixels (W3C, third edition).

#include <algorithm>
#include <string>

#include <zlib.h>

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

/// A text chunk's text by its keyword; what is compressed is unpacked up to a limit.
inline std::optional<std::string> png_text(Bytes chunk, std::string_view type, std::string_view keyword) {
    if (!has(chunk, 0, keyword) || !has(chunk, keyword.size(), std::string_view{"\0", 1})) return std::nullopt;
    Bytes rest = chunk.subspan(keyword.size() + 1);
    bool compressed = type == "zTXt";
    if (type == "iTXt") {
        if (rest.size() < 2) return std::nullopt;
        compressed = rest[0] != std::byte{0};
        rest = rest.subspan(2);
        for (int i = 0; i < 2; ++i) {  // language, translated keyword
            const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
            if (end == rest.end()) return std::nullopt;
            rest = rest.subspan(static_cast<std::size_t>(end - rest.begin()) + 1);
        }
    } else if (compressed) {
        if (rest.empty()) return std::nullopt;
        rest = rest.subspan(1);  // the method; there is one
    }
    if (!compressed) return std::string{reinterpret_cast<const char*>(rest.data()), rest.size()};
    std::string text(most_metadata_bytes, '\0');
    ::z_stream stream{};
    if (::inflateInit(&stream) != Z_OK) return std::nullopt;
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(rest.data()));  // zlib only reads it
    stream.avail_in = static_cast<uInt>(rest.size());
    stream.next_out = reinterpret_cast<Bytef*>(text.data());
    stream.avail_out = static_cast<uInt>(text.size());
    static_cast<void>(::inflate(&stream, Z_FINISH));  // what came before damage or the limit is used
    text.resize(stream.total_out);
    ::inflateEnd(&stream);
    return text;
}

/// EXIF data as ImageMagick's "raw profile": a blank line, "exif", its length, then hexadecimal digits.
inline std::optional<Orientation> raw_profile_orientation(std::string_view text) {
    for (int line = 0; line < 3; ++line) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return std::nullopt;
        text.remove_prefix(end + 1);
    }
    std::vector<std::byte> exif;
    int half = -1;
    for (const char c : text) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) continue;
        if (half >= 0) exif.push_back(static_cast<std::byte>(half * 16 + digit));
        half = half >= 0 ? -1 : digit;
    }
    return exif_part_orientation(exif);
}

inline ImageHeader read_png_header(HeaderBytes& bytes) {
    const Bytes head = bytes.all_at(8, 25);  // IHDR: length, type, 13 bytes, check sum
    const auto damaged = [&] { throw_bad_picture(bytes.source(), "its header is damaged"); };
    if (has(head, 4, "CgBI")) throw_unsupported(bytes.source(), "a PNG as Apple's tools rewrite them for telephones");
    if (big_endian(head, 0, 4) != 13 || !has(head, 4, "IHDR")) damaged();
    if (::crc32(0, reinterpret_cast<const Bytef*>(&head[4]), 17) != big_endian(head, 21, 4)) damaged();
    ImageHeader header;
    header.format = ImageFormat::png;
    header.stored = {big_endian(head, 8, 4), big_endian(head, 12, 4)};
    constexpr std::int64_t largest = 0x7FFFFFFF;
    if (header.stored.width < 1 || header.stored.height < 1 || header.stored.width > largest ||
        header.stored.height > largest)
        damaged();
    switch (std::to_integer<int>(head[17])) {
        case 0:
            header.channels = 1;
            break;
        case 2:
            header.channels = 3;
            break;
        case 3:
            header.channels = 3;
            break;
        case 4:
            header.channels = 2;
            break;
        case 6:
            header.channels = 4;
            break;
        default:
            damaged();
    }
    std::optional<Orientation> exif;
    std::optional<Orientation> profile;
    std::optional<Orientation> xmp;
    for (std::uint64_t at = 33;;) {
        const Bytes chunk = bytes.at(at, 8);
        if (chunk.size() < 8) break;  // damage behind the size shows when the pixels are read
        const std::uint32_t length = big_endian(chunk, 0, 4);
        const std::string type{reinterpret_cast<const char*>(&chunk[4]), 4};
        if (type == "IDAT" || type == "IEND" || length > largest) break;
        const bool is_critical = type[0] >= 'A' && type[0] <= 'Z';
        if (is_critical && type != "PLTE")
            throw_unsupported(bytes.source(), "a PNG that cannot be read without knowing its chunk '" + type + "'");
        if (type == "iCCP" && header.profile.parts.empty())
            header.profile = {.parts = {{at + 8, length}}, .complete = true, .packed = true};
        if (length <= most_metadata_bytes && (type == "eXIf" || type == "tEXt" || type == "zTXt" || type == "iTXt")) {
            // Texts are told by their first bytes before they are read.
            constexpr std::string_view xmp_keyword = "XML:com.adobe.xmp";
            constexpr std::string_view profile_keyword = "Raw profile type exif";
            const Bytes first = bytes.at(at + 8, std::min<std::size_t>(length, profile_keyword.size()));
            const bool is_xmp = has(first, 0, xmp_keyword);
            const bool is_profile = has(first, 0, profile_keyword);
            if (type == "eXIf" && !exif)
                exif = exif_part_orientation(bytes.at(at + 8, length));
            else if (is_xmp && !xmp)
                xmp = xmp_orientation(png_text(bytes.at(at + 8, length), type, xmp_keyword).value_or(""));
            else if (is_profile && !profile)
                profile =
                    raw_profile_orientation(png_text(bytes.at(at + 8, length), type, profile_keyword).value_or(""));
        }
        at += std::uint64_t{12} + length;
    }
    header.orientation = exif ? *exif : profile ? *profile : xmp.value_or(Orientation::upright);
    return header;
}

}  // namespace strata::pictures::detail
