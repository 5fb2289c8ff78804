#pragma once
// strata/core/impl/printable.ipp - one pass over the characters.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <strata/core/printable.hpp>

namespace strata::core {

namespace detail {

/// A character at the start of a text. `bytes` is 0 where there is none: no UTF-8, an overlong form, a surrogate.
struct Utf8Character {
    std::uint32_t code = 0;
    std::size_t bytes = 0;
};

inline Utf8Character first_character(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[i])}; };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
    std::uint32_t code = lead & (0x7FU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) return {};
        code = code << 6 | (byte(i) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
    if (code < smallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
    return {code, bytes};
}

/// What a terminal obeys, breaks a line at, or turns the text behind it by.
constexpr bool is_hidden(std::uint32_t code) noexcept {
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

}  // namespace detail

STRATA_INLINE std::string printable(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    const auto escaped = [&](char kind, int digits, std::uint32_t code) {
        std::array<char, 16> escape{};
        std::snprintf(escape.data(), escape.size(), "\\%c%0*x", kind, digits, static_cast<unsigned>(code));
        shown += escape.data();
    };
    while (!text.empty()) {
        const detail::Utf8Character character = detail::first_character(text);
        if (character.bytes == 0)
            escaped('x', 2, static_cast<unsigned char>(text.front()));
        else if (!detail::is_hidden(character.code))
            shown += text.substr(0, character.bytes);
        else if (character.code == '\n')
            shown += "\\n";
        else if (character.code == '\r')
            shown += "\\r";
        else if (character.code == '\t')
            shown += "\\t";
        else if (character.code < 0x80)
            escaped('x', 2, character.code);
        else
            escaped('u', 4, character.code);
        text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
    }
    return shown;
}

}  // namespace strata::core
