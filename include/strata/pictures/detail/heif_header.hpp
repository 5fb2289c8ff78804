#pragma once
// strata/pictures/detail/heif_header.hpp - the boxes of an AVIF or HEIC file (ISO/IEC 14496-12 and 23008-12).

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <strata/pictures/detail/header_bytes.hpp>
#include <strata/pictures/header_fields.hpp>

namespace strata::pictures::detail {

/// A box: its type, and where its contents lie.
struct Box {
    std::string_view type;
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// The boxes in a part of `bytes`. Throws Errc::bad_picture when one reaches beyond it.
inline std::vector<Box> boxes_in(Bytes bytes, std::size_t begin, std::size_t end, std::string_view source) {
    std::vector<Box> boxes;
    while (end - begin >= 8) {
        std::uint64_t size = big_endian(bytes, begin, 4);
        std::size_t head = 8;
        if (size == 1 && end - begin >= 16) {
            size = big_endian_8(bytes, begin + 8);
            head = 16;
        }
        if (size == 0) size = end - begin;
        if (size < head || size > end - begin) throw_bad_picture(source, "its boxes are damaged");
        boxes.push_back({std::string_view{reinterpret_cast<const char*>(&bytes[begin + 4]), 4}, begin + head,
                         begin + static_cast<std::size_t>(size)});
        begin += static_cast<std::size_t>(size);
    }
    return boxes;
}

inline const Box* box_of(const std::vector<Box>& boxes, std::string_view type) noexcept {
    const auto found = std::find_if(boxes.begin(), boxes.end(), [&](const Box& box) { return box.type == type; });
    return found == boxes.end() ? nullptr : &*found;
}

/// The properties of the primary item, in their order.
inline std::vector<Box> primary_properties(Bytes meta, const std::vector<Box>& boxes, std::string_view source) {
    const auto damaged = [&] { throw_bad_picture(source, "its boxes are damaged"); };
    const Box* const pitm = box_of(boxes, "pitm");
    const Box* const iprp = box_of(boxes, "iprp");
    if (pitm == nullptr || iprp == nullptr || pitm->end - pitm->begin < 6) damaged();
    const int id_bytes = meta[pitm->begin] == std::byte{0} ? 2 : 4;
    if (pitm->end - pitm->begin < 4U + static_cast<unsigned>(id_bytes)) damaged();
    const std::uint32_t primary = big_endian(meta, pitm->begin + 4, id_bytes);
    const std::vector<Box> parts = boxes_in(meta, iprp->begin, iprp->end, source);
    const Box* const ipco = box_of(parts, "ipco");
    if (ipco == nullptr) damaged();
    const std::vector<Box> all = boxes_in(meta, ipco->begin, ipco->end, source);
    std::vector<Box> own;
    for (const Box& ipma : parts) {
        if (ipma.type != "ipma") continue;
        std::size_t at = ipma.begin;
        const auto take = [&](int bytes) {
            if (ipma.end - at < static_cast<std::size_t>(bytes)) damaged();
            const std::uint32_t value = big_endian(meta, at, bytes);
            at += static_cast<std::size_t>(bytes);
            return value;
        };
        const std::uint32_t version_and_flags = take(4);
        const int item_bytes = (version_and_flags >> 24) < 1 ? 2 : 4;
        const int index_bytes = (version_and_flags & 1U) != 0 ? 2 : 1;
        for (std::uint32_t items = take(4); items > 0; --items) {
            const std::uint32_t item = take(item_bytes);
            for (std::uint32_t count = take(1); count > 0; --count) {
                const std::uint32_t index = take(index_bytes) & ((1U << (8 * index_bytes - 1)) - 1);
                if (item != primary || index == 0) continue;
                if (index > all.size()) damaged();
                own.push_back(all[index - 1]);
            }
        }
    }
    return own;
}

/// One turn after another, as one. An orientation as a matrix: where x and y of the stored picture point to when seen.
inline Orientation followed_by(Orientation first, Orientation second) noexcept {
    constexpr std::array<std::array<int, 4>, 8> matrices{{{1, 0, 0, 1},
                                                          {-1, 0, 0, 1},
                                                          {-1, 0, 0, -1},
                                                          {1, 0, 0, -1},
                                                          {0, 1, 1, 0},
                                                          {0, -1, 1, 0},
                                                          {0, -1, -1, 0},
                                                          {0, 1, -1, 0}}};
    const auto& a = matrices[static_cast<std::size_t>(second) - 1];
    const auto& b = matrices[static_cast<std::size_t>(first) - 1];
    const std::array<int, 4> both{a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                                  a[2] * b[1] + a[3] * b[3]};
    return static_cast<Orientation>(std::find(matrices.begin(), matrices.end(), both) - matrices.begin() + 1);
}

/// The part that a clean aperture leaves of `layout.coded`; all of it where the box is no whole part inside.
inline PictureSize clean_aperture(Bytes box, HeifLayout& layout) noexcept {
    const auto fraction = [&](std::size_t i) -> std::optional<double> {
        const auto over = static_cast<std::int32_t>(big_endian(box, i * 8, 4));
        const auto under = static_cast<std::int32_t>(big_endian(box, i * 8 + 4, 4));
        if (under <= 0) return std::nullopt;
        return static_cast<double>(over) / under;
    };
    if (box.size() < 32) return layout.coded;
    const auto width = fraction(0);
    const auto height = fraction(1);
    const auto right = fraction(2);
    const auto down = fraction(3);
    if (!width || !height || !right || !down) return layout.coded;
    const double left = *right + (static_cast<double>(layout.coded.width) - *width) / 2;
    const double top = *down + (static_cast<double>(layout.coded.height) - *height) / 2;
    const bool inside = *width >= 1 && *height >= 1 && left >= 0 && top >= 0 &&
                        left + *width <= static_cast<double>(layout.coded.width) &&
                        top + *height <= static_cast<double>(layout.coded.height);
    const PictureSize kept{static_cast<std::int64_t>(*width), static_cast<std::int64_t>(*height)};
    const bool whole = inside && static_cast<double>(kept.width) == *width &&
                       static_cast<double>(kept.height) == *height &&
                       static_cast<double>(static_cast<std::int64_t>(left)) == left &&
                       static_cast<double>(static_cast<std::int64_t>(top)) == top;
    if (!whole) return layout.coded;
    layout.left = static_cast<std::int64_t>(left);
    layout.top = static_cast<std::int64_t>(top);
    return kept;
}

inline ImageHeader read_heif_header(HeaderBytes& bytes, ImageFormat format) {
    const auto damaged = [&] { throw_bad_picture(bytes.source(), "its boxes are damaged"); };
    // Along the boxes of the file to the one that describes its items.
    std::uint64_t at = 0;
    std::uint64_t meta_begin = 0;
    std::uint64_t meta_bytes = 0;
    while (meta_bytes == 0) {
        const Bytes head = bytes.all_at(at, 16);
        std::uint64_t size = big_endian(head, 0, 4);
        std::uint64_t own = 8;
        if (size == 1) {
            size = big_endian_8(head, 8);
            own = 16;
        }
        if (has(head, 4, "moov"))
            throw_unsupported(bytes.source(),
                              "a film of " + std::string{name_of(format)} + " pictures without a still");
        constexpr std::uint64_t largest = std::uint64_t{1} << 62;
        if (size < own || size > largest) damaged();
        if (has(head, 4, "meta")) {
            meta_begin = at + own + 4;  // behind version and flags
            if (size < own + 5) damaged();
            meta_bytes = size - own - 4;
        }
        at += size;
    }
    if (meta_bytes > most_metadata_bytes)
        throw_fault(Errc::picture_too_large, bytes.source(), "its list of items is larger than 256 KiB");
    const Bytes part = bytes.all_at(meta_begin, static_cast<std::size_t>(meta_bytes));
    const std::vector<std::byte> kept(part.begin(), part.end());
    const Bytes meta{kept};
    const std::vector<Box> boxes = boxes_in(meta, 0, meta.size(), bytes.source());

    ImageHeader header;
    header.format = format;
    HeifLayout layout;
    bool monochrome = false;
    std::optional<Box> aperture;
    for (const Box& box : primary_properties(meta, boxes, bytes.source())) {
        const Bytes content = meta.subspan(box.begin, box.end - box.begin);
        const auto need = [&](std::size_t size) {
            if (content.size() < size) damaged();
        };
        if (box.type == "ispe") {
            need(12);
            layout.coded = {big_endian(content, 4, 4), big_endian(content, 8, 4)};
        } else if (box.type == "pixi") {
            need(5);
            monochrome = content[4] == std::byte{1};
            if (content.size() > 5) layout.bits = std::max(layout.bits, static_cast<int>(big_endian(content, 5, 1)));
        } else if (box.type == "av1C") {
            need(4);
            monochrome = (big_endian(content, 2, 1) & 0x10U) != 0;
            if ((big_endian(content, 2, 1) & 0x40U) != 0) layout.bits = std::max(layout.bits, 10);
        } else if (box.type == "hvcC") {
            need(18);
            monochrome = (big_endian(content, 16, 1) & 3U) == 0;
            layout.bits = std::max(layout.bits, static_cast<int>(big_endian(content, 17, 1) & 7U) + 8);
        } else if (box.type == "clap") {
            aperture = box;
        } else if (box.type == "irot") {
            need(1);
            constexpr std::array<Orientation, 4> turns{Orientation::upright, Orientation::turn_left,
                                                       Orientation::turn_half, Orientation::turn_right};
            header.orientation = followed_by(header.orientation, turns[big_endian(content, 0, 1) & 3U]);
        } else if (box.type == "imir") {
            need(1);
            const bool sides = (big_endian(content, 0, 1) & 1U) != 0;
            header.orientation = followed_by(header.orientation, sides ? Orientation::mirror : Orientation::flip);
        } else if (box.type == "colr" && (has(content, 0, "prof") || has(content, 0, "rICC"))) {
            if (header.profile.parts.empty())
                header.profile.parts.push_back({meta_begin + box.begin + 4, content.size() - 4});
        }
    }
    header.stored = layout.coded;
    if (aperture)
        header.stored = clean_aperture(meta.subspan(aperture->begin, aperture->end - aperture->begin), layout);
    if (header.stored.width < 1 || header.stored.height < 1) damaged();
    // An alpha plane is an item of its own; its property says what it is.
    constexpr std::array<std::string_view, 2> alpha{"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
                                                    "urn:mpeg:hevc:2015:auxid:1"};
    const std::string_view text{reinterpret_cast<const char*>(meta.data()), meta.size()};
    const bool has_alpha =
        text.find(alpha[0]) != std::string_view::npos || text.find(alpha[1]) != std::string_view::npos;
    header.channels = (monochrome ? 1 : 3) + (has_alpha ? 1 : 0);
    header.layout = layout;
    return header;
}

}  // namespace strata::pictures::detail
