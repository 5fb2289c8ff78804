#pragma once
// strata/tokenizers/impl/unicode.ipp - utf8proc asked in the words of Python.

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>

#include <strata/tokenizers/detail/unicode.hpp>

namespace strata::tokenizers::detail {

constexpr char32_t replacement_character = 0xFFFD;

[[nodiscard]] inline utf8proc_category_t category(char32_t c) noexcept {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

STRATA_INLINE std::u32string code_points(std::string_view text) {
    std::u32string out;
    out.reserve(text.size());
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned first = byte(i);
        if (first < 0x80) {
            out.push_back(first);
            ++i;
            continue;
        }
        const std::size_t length = first >= 0xF0 && first <= 0xF4   ? 4
                                   : first >= 0xE0 && first <= 0xEF ? 3
                                   : first >= 0xC2 && first <= 0xDF ? 2
                                                                    : 0;
        if (length == 0) {
            out.push_back(replacement_character);
            ++i;
            continue;
        }
        // The second byte has a narrower range where the first could begin an overlong form, a surrogate or too large
        // a number.
        unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        char32_t c = first & (0xFFU >> (length + 1));
        std::size_t taken = 1;
        while (taken < length && byte(i + taken) >= least && byte(i + taken) <= most) {
            c = (c << 6) | (byte(i + taken) & 0x3F);
            least = 0x80;
            most = 0xBF;
            ++taken;
        }
        out.push_back(taken == length ? c : replacement_character);
        i += taken;
    }
    return out;
}

STRATA_INLINE void append_utf8(std::string& text, char32_t c) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
    text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(length));
}

STRATA_INLINE std::string utf8(std::u32string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char32_t c : text) append_utf8(out, c);
    return out;
}

STRATA_INLINE bool is_letter(char32_t c) noexcept {
    const utf8proc_category_t kind = category(c);
    return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
STRATA_INLINE bool is_number(char32_t c) noexcept {
    const utf8proc_category_t kind = category(c);
    return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}
STRATA_INLINE bool is_control(char32_t c) noexcept {
    const utf8proc_category_t kind = category(c);
    return kind == UTF8PROC_CATEGORY_CN || (kind >= UTF8PROC_CATEGORY_CC && kind <= UTF8PROC_CATEGORY_CO);
}
STRATA_INLINE bool is_blank(char32_t c) noexcept { return category(c) == UTF8PROC_CATEGORY_ZS; }

/// Of the property Cased: letters with a case, and what Other_Lowercase and Other_Uppercase add outside of Lm, which
/// is_passed_over() has.
[[nodiscard]] inline bool is_cased(char32_t c) noexcept {
    const utf8proc_category_t kind = category(c);
    return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LT) || c == 0xAA || c == 0xBA ||
           (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

/// Of the property Case_Ignorable: marks, modifiers, format characters, and the punctuation of Word_Break MidLetter,
/// MidNumLet and Single_Quote.
[[nodiscard]] inline bool is_passed_over(char32_t c) noexcept {
    switch (category(c)) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK:
            return true;
        default:
            break;
    }
    constexpr char32_t within_words[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                         0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    return std::binary_search(std::begin(within_words), std::end(within_words), c);
}

/// The condition Final_Sigma (Unicode 15, table 3-17) for the character at `place`.
[[nodiscard]] inline bool ends_a_word(std::u32string_view text, std::size_t place) noexcept {
    std::size_t before = place;
    while (before > 0 && is_passed_over(text[before - 1])) --before;
    if (before == 0 || !is_cased(text[before - 1])) return false;
    std::size_t after = place + 1;
    while (after < text.size() && is_passed_over(text[after])) ++after;
    return after == text.size() || !is_cased(text[after]);
}

STRATA_INLINE std::u32string lower_case(std::u32string_view text, Sigma sigma) {
    std::u32string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char32_t c = text[i];
        if (c == 0x130) {  // the one character whose small form is two
            out += {U'i', 0x307};
        } else if (c == 0x3A3) {
            out.push_back(sigma == Sigma::by_place && ends_a_word(text, i) ? 0x3C2 : 0x3C3);
        } else {
            out.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
        }
    }
    return out;
}

STRATA_INLINE std::u32string composed(std::u32string_view text) {
    const std::string bytes = utf8(text);
    utf8proc_uint8_t* raw = nullptr;
    const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                     static_cast<utf8proc_ssize_t>(bytes.size()), &raw,
                                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> kept{raw, &std::free};
    if (length < 0) throw std::bad_alloc{};  // `bytes` are UTF-8, so nothing else can have been wrong
    return code_points({reinterpret_cast<const char*>(raw), static_cast<std::size_t>(length)});
}

STRATA_INLINE std::u32string_view stripped(std::u32string_view text) noexcept {
    while (!text.empty() && is_stripped(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_stripped(text.back())) text.remove_suffix(1);
    return text;
}

STRATA_INLINE std::u32string with_single_spaces(std::u32string_view text) {
    std::u32string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!is_white_space(text[i])) {
            out.push_back(text[i]);
        } else if (i == 0 || !is_white_space(text[i - 1])) {
            out.push_back(U' ');
        }
    }
    return out;
}

}  // namespace strata::tokenizers::detail
