#pragma once
// strata/pictures/impl/image_header.ipp - walks along the parts of PNG, JPEG and WebP files up to the pixels.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <zlib.h>

#include <strata/core/error.hpp>
#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/image_header.hpp>

namespace strata::pictures {

namespace detail {

// ---- JPEG (ITU-T T.81, annex B) -------------------------------------------------------------------------------------

/// Size and channels from a frame header (SOFn) that begins after its marker.
inline void read_jpeg_frame(HeaderBytes& bytes, std::uint64_t at, unsigned marker, ImageHeader& header) {
    // Baseline, extended and progressive, with Huffman or arithmetic coding.
    constexpr std::array<unsigned, 5> decoded{0xC0, 0xC1, 0xC2, 0xC9, 0xCA};
    const auto refuse = [&](std::string_view what) {
        throw Error{Errc::unsupported_picture, std::string{bytes.source()} + " is " + std::string{what},
                    "save it as an 8-bit baseline or progressive JPEG, PNG or WebP"};
    };
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

inline ImageHeader read_jpeg_header(HeaderBytes& bytes) {
    ImageHeader header;
    header.format = ImageFormat::jpeg;
    std::optional<Orientation> orientation;
    bool framed = false;
    for (std::uint64_t at = 2; !(framed && orientation);) {
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
        }
        at += length;
    }
    header.orientation = orientation.value_or(Orientation::upright);
    return header;
}

// ---- PNG (W3C, third edition) ---------------------------------------------------------------------------------------

inline constexpr std::array<std::uint8_t, 8> png_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

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
    for (std::uint64_t at = 33; !exif;) {
        const Bytes chunk = bytes.at(at, 8);
        if (chunk.size() < 8) break;  // damage behind the size shows when the pixels are read
        const std::uint32_t length = big_endian(chunk, 0, 4);
        const std::string type{reinterpret_cast<const char*>(&chunk[4]), 4};
        if (type == "IDAT" || type == "IEND" || length > largest) break;
        if (length <= most_metadata_bytes && (type == "eXIf" || type == "tEXt" || type == "zTXt" || type == "iTXt")) {
            // Texts are told by their first bytes before they are read.
            constexpr std::string_view xmp_keyword = "XML:com.adobe.xmp";
            constexpr std::string_view profile_keyword = "Raw profile type exif";
            const Bytes first = bytes.at(at + 8, std::min<std::size_t>(length, profile_keyword.size()));
            const bool is_xmp = has(first, 0, xmp_keyword);
            const bool is_profile = has(first, 0, profile_keyword);
            if (type == "eXIf")
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

// ---- WebP (RFC 9649) ------------------------------------------------------------------------------------------------

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
    constexpr unsigned has_exif = 0x08;
    constexpr unsigned has_alpha = 0x10;
    header.stored = {little_endian(head, 12, 3) + 1, little_endian(head, 15, 3) + 1};
    header.channels = (flags & has_alpha) != 0 ? 4 : 3;
    if ((flags & has_exif) == 0) return header;
    // EXIF comes after the pixels: one window a part between here and there.
    for (std::uint64_t at = 20 + std::uint64_t{little_endian(head, 4, 4)};;) {
        at += at % 2;
        const Bytes chunk = bytes.at(at, 8);
        if (chunk.size() < 8) return header;
        const std::uint32_t length = little_endian(chunk, 4, 4);
        if (has(chunk, 0, "EXIF")) {
            const Bytes part = bytes.at(at + 8, std::min<std::size_t>(length, most_metadata_bytes));
            header.orientation = exif_part_orientation(part).value_or(Orientation::upright);
            return header;
        }
        at += std::uint64_t{8} + length;
    }
}

/// What a file of another format is, for the message; empty if that is unknown.
inline std::string_view other_format(Bytes head) noexcept {
    struct Magic {
        std::size_t at;
        std::string_view bytes;
        std::string_view name;
    };
    constexpr std::array<Magic, 12> known{{{0, "GIF8", "GIF"},
                                           {0, "BM", "BMP"},
                                           {0, {"II*\0", 4}, "TIFF"},
                                           {0, {"MM\0*", 4}, "TIFF"},
                                           {4, "ftypavif", "AVIF"},
                                           {4, "ftypavis", "AVIF"},
                                           {4, "ftyphei", "HEIC"},
                                           {4, "ftypmif1", "HEIC"},
                                           {0, "\xFF\x0A", "JPEG XL"},
                                           {0, {"\0\0\0\x0CJXL ", 8}, "JPEG XL"},
                                           {0, {"\0\0\0\x0CjP  ", 8}, "JPEG 2000"},
                                           {0, "8BPS", "Photoshop"}}};
    for (const Magic& magic : known)
        if (has(head, magic.at, magic.bytes)) return magic.name;
    return {};
}

}  // namespace detail

STRATA_INLINE std::string_view name_of(ImageFormat format) noexcept {
    switch (format) {
        case ImageFormat::png:
            return "PNG";
        case ImageFormat::jpeg:
            return "JPEG";
        case ImageFormat::webp:
            return "WebP";
    }
    return "unknown";
}

STRATA_INLINE std::optional<ImageFormat> format_of(std::span<const std::byte> head) noexcept {
    if (head.size() >= detail::png_signature.size() &&
        std::memcmp(head.data(), detail::png_signature.data(), detail::png_signature.size()) == 0)
        return ImageFormat::png;
    if (detail::has(head, 0, "\xFF\xD8\xFF")) return ImageFormat::jpeg;
    if (detail::has(head, 0, "RIFF") && detail::has(head, 8, "WEBP")) return ImageFormat::webp;
    return std::nullopt;
}

STRATA_INLINE ImageHeader read_image_header(const ReadRange& read, std::string_view source) {
    detail::HeaderBytes bytes{read, source};
    const detail::Bytes head = bytes.at(0, 16);
    if (head.empty()) detail::throw_bad_picture(source, "the file is empty");
    const std::optional<ImageFormat> format = format_of(head);
    if (!format) {
        const std::string_view other = detail::other_format(head);
        throw Error{Errc::unsupported_picture,
                    std::string{source} +
                        (other.empty() ? " is no PNG, JPEG or WebP file" : " is a " + std::string{other} + " file"),
                    "convert it to PNG, JPEG or WebP, or remove it"};
    }
    switch (*format) {
        case ImageFormat::png:
            return detail::read_png_header(bytes);
        case ImageFormat::jpeg:
            return detail::read_jpeg_header(bytes);
        case ImageFormat::webp:
            break;
    }
    return detail::read_webp_header(bytes);
}

STRATA_INLINE ImageHeader image_header(std::span<const std::byte> file, std::string_view source) {
    return read_image_header(
        [file](std::uint64_t offset, std::size_t length) {
            if (offset >= file.size()) return std::vector<std::byte>{};
            const auto part = file.subspan(static_cast<std::size_t>(offset));
            const auto bytes = part.first(std::min(length, part.size()));
            return std::vector<std::byte>(bytes.begin(), bytes.end());
        },
        source);
}

}  // namespace strata::pictures
