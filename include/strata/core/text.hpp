#pragma once
// strata/core/text.hpp - small things that are done to text in files, requests and answers.

#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace strata::core {

/// Without white space at its ends.
inline std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view blank = " \t\r\n\v\f";
    const std::size_t begin = text.find_first_not_of(blank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// Up to its first line break, which is not in it: libtorch appends a stack trace to what it says.
inline std::string_view first_line(std::string_view text) noexcept { return text.substr(0, text.find('\n')); }

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Without the one at its beginning, if there is one.
inline std::string_view without_byte_order_mark(std::string_view text) noexcept {
    return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

/// Of ASCII letters.
inline std::string lower_case(std::string_view text) {
    std::string lower{text};
    for (char& c : lower)
        if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}

/// Of a hexadecimal digit; -1 for anything else.
constexpr int hex_value(char c) noexcept {
    if ('0' <= c && c <= '9') return c - '0';
    if ('a' <= c && c <= 'f') return c - 'a' + 10;
    if ('A' <= c && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// Of what stands in a URL as it is (RFC 3986, section 2.3).
constexpr bool is_unreserved(char c) noexcept {
    return ('A' <= c && c <= 'Z') || ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/// Of a number: the shortest text that is read back as it, so another text for another number.
inline std::string shortest_text(double number) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace strata::core
