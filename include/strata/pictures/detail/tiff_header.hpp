#pragma once
// strata/pictures/detail/tiff_header.hpp - the first directory of a TIFF file (TIFF 6.0) or BigTIFF file.

#include <algorithm>
#include <optional>
#include <string>

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

/// Numbers of a TIFF file in its byte order.
class TiffDirectory {
public:
    explicit TiffDirectory(HeaderBytes& bytes) : bytes_{bytes} {
        const Bytes head = bytes.all_at(0, 8);
        big_endian_ = has(head, 0, "MM");
        big_ = number(head, 2, 2) == 43;
        const std::uint64_t first = big_ ? number(bytes.all_at(0, 16), 8, 8) : number(head, 4, 4);
        const std::size_t count_bytes = big_ ? 8 : 2;
        count_ = number(bytes.all_at(first, count_bytes), 0, count_bytes);
        constexpr std::uint64_t most_entries = 4096;
        if (count_ < 1 || count_ > most_entries) throw_bad_picture(bytes.source(), "its header is damaged");
        entries_ = first + count_bytes;
    }

    /// A value of a tag: the first, or one behind it. nullopt: the tag is not there, or has fewer.
    [[nodiscard]] std::optional<std::uint64_t> value(unsigned tag, std::uint64_t which = 0) {
        const auto entry = find(tag);
        if (!entry) return std::nullopt;
        const std::size_t size = entry->type == 3                       ? 2
                                 : entry->type == 1 || entry->type == 7 ? 1
                                 : entry->type == 16                    ? 8
                                                                        : 4;
        if (which >= entry->count) return std::nullopt;
        return number(bytes_.all_at(place(*entry, size) + which * size, size), 0, size);
    }
    /// Where the bytes of a tag lie, whatever they mean.
    [[nodiscard]] std::optional<ProfilePlace::Part> bytes_of(unsigned tag) {
        const auto entry = find(tag);
        if (!entry || (entry->type != 1 && entry->type != 7)) return std::nullopt;
        return ProfilePlace::Part{place(*entry, 1), entry->count};
    }

private:
    struct Entry {
        unsigned type;
        std::uint64_t count;
        std::uint64_t at;  // of the value, or of the offset of the values
    };
    [[nodiscard]] std::uint64_t number(Bytes bytes, std::size_t at, std::size_t size) const noexcept {
        if (size < 8)
            return big_endian_ ? big_endian(bytes, at, static_cast<int>(size))
                               : little_endian(bytes, at, static_cast<int>(size));
        return big_endian_ ? big_endian_8(bytes, at)
                           : little_endian(bytes, at, 4) | (std::uint64_t{little_endian(bytes, at + 4, 4)} << 32);
    }
    [[nodiscard]] std::optional<Entry> find(unsigned tag) {
        const std::size_t size = big_ ? 20 : 12;
        for (std::uint64_t i = 0; i < count_; ++i) {
            const std::uint64_t at = entries_ + i * size;
            const Bytes entry = bytes_.all_at(at, size);
            if (number(entry, 0, 2) != tag) continue;
            return Entry{static_cast<unsigned>(number(entry, 2, 2)), number(entry, 4, big_ ? 8 : 4),
                         at + (big_ ? 12 : 8)};
        }
        return std::nullopt;
    }
    [[nodiscard]] std::uint64_t place(const Entry& entry, std::size_t size) {
        const std::size_t room = big_ ? 8 : 4;
        if (entry.count <= room / size) return entry.at;
        return number(bytes_.all_at(entry.at, room), 0, room);
    }

    HeaderBytes& bytes_;
    bool big_endian_ = false;
    bool big_ = false;
    std::uint64_t count_ = 0;
    std::uint64_t entries_ = 0;
};

inline ImageHeader read_tiff_header(HeaderBytes& bytes) {
    enum Tag : unsigned {
        width = 256,
        height,
        bits,
        compression,
        photometric = 262,
        orientation = 274,
        samples = 277,
        rows_per_strip = 278,
        planar = 284,
        tile_width = 322,
        tile_height,
        extra_samples = 338,
        profile = 34675
    };
    TiffDirectory directory{bytes};
    ImageHeader header;
    header.format = ImageFormat::tiff;
    constexpr std::uint64_t most = 0x7FFFFFFF;
    const auto number = [&](unsigned tag, std::uint64_t otherwise) {
        return static_cast<std::int64_t>(std::min(directory.value(tag).value_or(otherwise), most));
    };
    header.stored = {number(width, 0), number(height, 0)};
    if (header.stored.width < 1 || header.stored.height < 1) throw_bad_picture(bytes.source(), "its header is damaged");
    TiffLayout layout;
    layout.samples = static_cast<int>(number(samples, 1));
    layout.bits = static_cast<int>(number(bits, 1));
    layout.chunk_width = number(tile_width, 0);
    layout.chunk_height =
        layout.chunk_width > 0 ? number(tile_height, 0) : std::min(number(rows_per_strip, most), header.stored.height);
    constexpr std::int64_t most_edge = 1 << 17;
    constexpr int most_samples = 32;
    if (layout.samples > most_samples)
        throw_unsupported(bytes.source(), "a TIFF of " + std::to_string(layout.samples) + " samples a pixel");
    if (layout.samples < 1 || layout.bits < 1 || layout.bits > 64 || layout.chunk_width > most_edge ||
        (layout.chunk_width > 0 && layout.chunk_height > most_edge) || layout.chunk_height < 1)
        throw_bad_picture(bytes.source(), "its header is damaged");
    layout.planes = number(planar, 1) == 2 && layout.samples > 1;
    constexpr std::int64_t separated = 5;
    const std::int64_t colours = number(photometric, 1);
    layout.inks = colours == separated;
    const std::int64_t extra = number(extra_samples, 0);
    const bool has_alpha = extra == 1 || extra == 2;
    header.channels = layout.inks ? 4 : (colours <= 1 ? 1 : 3) + (has_alpha ? 1 : 0);
    const std::int64_t turned_by = number(orientation, 1);
    if (turned_by >= 1 && turned_by <= 8) header.orientation = static_cast<Orientation>(turned_by);
    if (const auto part = directory.bytes_of(profile)) header.profile.parts.push_back(*part);
    header.layout = layout;
    return header;
}

}  // namespace strata::pictures::detail
