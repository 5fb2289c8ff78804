#pragma once
// strata/data/detail/text.hpp - white space and byte order marks around captions and cells.

#include <cstddef>
#include <string_view>

namespace strata::data::detail {

/// Without white space at its ends.
inline std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view blank = " \t\r\n\v\f";
    const std::size_t begin = text.find_first_not_of(blank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Without the one at its beginning, if there is one.
inline std::string_view without_byte_order_mark(std::string_view text) noexcept {
    return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

}  // namespace strata::data::detail
