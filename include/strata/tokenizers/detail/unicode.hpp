#pragma once
// strata/tokenizers/detail/unicode.hpp - text as code points, and what Python's str and regex do with them.
//
// Categories, lower case and normal forms are utf8proc's (Unicode 15 in Debian 12); they do not depend on the locale.

#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::tokenizers::detail {

/// UTF-8 as code points. What is none becomes U+FFFD, one for each longest piece that a valid character might begin
/// with (Unicode 15, section 3.9, and Python's errors="replace").
[[nodiscard]] std::u32string code_points(std::string_view text);

void append_utf8(std::string& text, char32_t c);
[[nodiscard]] std::string utf8(std::u32string_view text);

/// Of the property White_Space: what `\s` of a regular expression of Unicode is.
[[nodiscard]] constexpr bool is_white_space(char32_t c) noexcept {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// What Python's str.strip() takes away: four separators of ASCII besides.
[[nodiscard]] constexpr bool is_stripped(char32_t c) noexcept { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

[[nodiscard]] bool is_letter(char32_t c) noexcept;  ///< \p{L}
[[nodiscard]] bool is_number(char32_t c) noexcept;  ///< \p{N}
[[nodiscard]] bool is_control(
    char32_t c) noexcept;                          ///< \p{C}: controls, format characters, code points of no character
[[nodiscard]] bool is_blank(char32_t c) noexcept;  ///< \p{Zs}

/// Whether a capital sigma at the end of a word becomes the small letter that Greek has for that place: Python's
/// str.lower() does it, a mapping of single characters does not.
enum class Sigma { by_place, everywhere_the_same };

[[nodiscard]] std::u32string lower_case(std::u32string_view text, Sigma sigma);

/// Normalisation form C.
[[nodiscard]] std::u32string composed(std::u32string_view text);

/// Without what str.strip() takes away.
[[nodiscard]] std::u32string_view stripped(std::u32string_view text) noexcept;

/// Each run of white space as one space.
[[nodiscard]] std::u32string with_single_spaces(std::u32string_view text);

}  // namespace strata::tokenizers::detail

#ifndef STRATA_COMPILED
#include <strata/tokenizers/impl/unicode.ipp>
#endif
