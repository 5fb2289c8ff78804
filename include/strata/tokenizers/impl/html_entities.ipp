#pragma once
// strata/tokenizers/impl/html_entities.ipp - references by number, and by the names of html_entity_names.inc.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <unordered_map>

#include <strata/tokenizers/detail/html_entities.hpp>

namespace strata::tokenizers::detail {

/// Names without their semicolon, and what they stand for.
struct HtmlEntities {
    struct Meaning {
        std::u32string characters;
        bool needs_semicolon = true;
    };
    std::unordered_map<std::u32string, Meaning> by_name;
    std::size_t longest = 0;
};

[[nodiscard]] inline const HtmlEntities& html_entities() {
    static const HtmlEntities entities = [] {
        // "AMP!26 Abreve=102 bne=3D+20E5 ": a '!' behind a name that also stands without a semicolon.
        constexpr std::string_view table =
#include <strata/tokenizers/impl/html_entity_names.inc>
            ;
        HtmlEntities all;
        for (std::size_t i = 0; i < table.size();) {
            const std::size_t sign = table.find_first_of("=!", i);
            const std::size_t end = table.find(' ', sign);
            HtmlEntities::Meaning meaning{{}, table[sign] == '='};
            for (std::size_t at = sign; at < end; at = table.find_first_of("+ ", at + 1)) {
                unsigned number = 0;
                std::from_chars(table.data() + at + 1, table.data() + end, number, 16);
                meaning.characters.push_back(number);
            }
            const std::u32string name(table.begin() + static_cast<std::ptrdiff_t>(i),
                                      table.begin() + static_cast<std::ptrdiff_t>(sign));
            all.longest = std::max(all.longest, name.size());
            all.by_name.emplace(name, std::move(meaning));
            i = end + 1;
        }
        return all;
    }();
    return entities;
}

/// What `&#number;` stands for.
inline void append_numbered(std::u32string& out, char32_t number) {
    // 0x80 to 0x9F are read as Windows-1252, as browsers do; 0 leaves it to itself.
    constexpr std::array<char16_t, 32> windows{0x20AC, 0,      0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021,
                                               0x2C6,  0x2030, 0x160,  0x2039, 0x152,  0,      0x17D,  0,
                                               0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                               0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0,      0x17E,  0x178};
    if (number >= 0x80 && number <= 0x9F) {
        const char16_t other = windows[number - 0x80];
        out.push_back(other == 0 ? number : other);
    } else if (number == 0 || (number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF) {
        out.push_back(0xFFFD);
    } else if (const bool nothing = number <= 0x8 || number == 0xB || (number >= 0xE && number <= 0x1F) ||
                                    number == 0x7F || (number >= 0xFDD0 && number <= 0xFDEF) ||
                                    (number & 0xFFFE) == 0xFFFE;
               !nothing) {
        out.push_back(number);
    }
}

/// Resolves the reference that begins behind the '&' before `i`, and returns where it ends; `i` if there is none.
inline std::size_t append_reference(std::u32string& out, std::u32string_view text, std::size_t i) {
    const auto at = [&](std::size_t place) { return place < text.size() ? text[place] : U'\0'; };
    if (at(i) == U'#') {
        const bool is_hexadecimal = at(i + 1) == U'x' || at(i + 1) == U'X';
        const char32_t base = is_hexadecimal ? 16 : 10;
        const std::size_t first = i + (is_hexadecimal ? 2 : 1);
        std::size_t end = first;
        char32_t number = 0;
        for (;; ++end) {
            const char32_t c = at(end);
            char32_t digit = base;
            if (c >= U'0' && c <= U'9') digit = c - U'0';
            if (is_hexadecimal && c >= U'a' && c <= U'f') digit = c - U'a' + 10;
            if (is_hexadecimal && c >= U'A' && c <= U'F') digit = c - U'A' + 10;
            if (digit >= base) break;
            number = std::min<char32_t>(number * base + digit, 0x110000);  // stays too large
        }
        if (end == first) return i;
        append_numbered(out, number);
        return end + (at(end) == U';' ? 1 : 0);
    }
    const HtmlEntities& entities = html_entities();
    std::size_t end = i;
    while (end < text.size() && end - i < 32 &&
           std::u32string_view{U"\t\n\f <&#;"}.find(text[end]) == std::u32string_view::npos)
        ++end;
    const std::size_t longest = std::min(end - i, entities.longest);
    for (std::size_t length = longest; length > 0; --length) {
        const auto found = entities.by_name.find(std::u32string{text.substr(i, length)});
        if (found == entities.by_name.end()) continue;
        const bool has_semicolon = length == end - i && at(end) == U';';
        if (found->second.needs_semicolon && !has_semicolon) continue;
        out += found->second.characters;
        return i + length + (has_semicolon ? 1 : 0);
    }
    return i;
}

STRATA_INLINE std::u32string unescaped(std::u32string_view text) {
    std::u32string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] != U'&') {
            out.push_back(text[i++]);
            continue;
        }
        const std::size_t behind = append_reference(out, text, i + 1);
        if (behind == i + 1) out.push_back(U'&');
        i = behind;
    }
    return out;
}

}  // namespace strata::tokenizers::detail
