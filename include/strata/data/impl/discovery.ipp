#pragma once
// strata/data/impl/discovery.ipp - names, captions, and what ranks tell each other about their share.

#include <array>
#include <cctype>

#include <strata/data/discovery.hpp>

namespace strata::data {

namespace detail {

/// Position after the last '/'; and the '.' of the extension, or the end.
inline std::string_view file_name_of(std::string_view key) noexcept {
    return key.substr(key.rfind('/') + 1);  // npos + 1 == 0
}
inline std::string_view without_extension(std::string_view key) noexcept {
    const std::string_view name = file_name_of(key);
    const std::size_t dot = name.rfind('.');
    return dot == std::string_view::npos || dot == 0 ? key : key.substr(0, key.size() - (name.size() - dot));
}

STRATA_INLINE std::string pack(const std::vector<Judged>& judged) {
    FieldWriter fields;
    for (const Judged& one : judged) {
        const Sample& sample = one.sample;
        fields << sample.key << sample.version << sample.bytes << sample.size.width << sample.size.height << sample.caption;
        fields << static_cast<int>(one.skipped.has_value());
        if (one.skipped) fields << one.skipped->place << static_cast<int>(one.skipped->reason) << one.skipped->detail;
    }
    return fields.bytes();
}

STRATA_INLINE void unpack(std::string_view bytes, const std::string& dataset, std::vector<Judged>& into) {
    for (FieldReader fields{bytes}; !fields.empty();) {
        Judged one;
        one.sample.key = fields.text();
        one.sample.version = fields.text();
        one.sample.bytes = static_cast<std::uint64_t>(fields.integer());
        one.sample.size.width = fields.integer();
        one.sample.size.height = fields.integer();
        one.sample.caption = fields.text();
        if (fields.integer() != 0) {
            Skipped& skipped = one.skipped.emplace();
            skipped.dataset = dataset;
            skipped.place = fields.text();
            skipped.reason = static_cast<SkipReason>(fields.integer());
            skipped.detail = fields.text();
        }
        into.push_back(std::move(one));
    }
}

}  // namespace detail

STRATA_INLINE bool is_picture_name(std::string_view key) noexcept {
    constexpr std::array<std::string_view, 11> endings{".png", ".jpg",  ".jpeg", ".webp", ".gif", ".bmp",
                                                       ".tif", ".tiff", ".avif", ".heic", ".jxl"};
    const auto lower = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
    return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
        if (key.size() <= ending.size()) return false;
        const std::string_view end = key.substr(key.size() - ending.size());
        return std::equal(end.begin(), end.end(), ending.begin(), [&](char a, char b) { return lower(a) == b; });
    });
}

STRATA_INLINE std::string caption_key(std::string_view picture_key) {
    return std::string{detail::without_extension(picture_key)} + ".txt";
}

STRATA_INLINE std::string first_line(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    constexpr std::string_view blank = " \t\r\v\f";
    while (!text.empty()) {
        const std::size_t newline = text.find('\n');
        const std::string_view line = text.substr(0, newline);
        const std::size_t begin = line.find_first_not_of(blank);
        if (begin != std::string_view::npos) return std::string{line.substr(begin, line.find_last_not_of(blank) - begin + 1)};
        text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    }
    return {};
}

STRATA_INLINE std::string caption_from_name(std::string_view key) {
    std::string caption{detail::without_extension(detail::file_name_of(key))};
    std::replace_if(caption.begin(), caption.end(), [](char c) { return c == '_' || c == '-'; }, ' ');
    return first_line(caption);
}

}  // namespace strata::data
