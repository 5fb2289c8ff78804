#pragma once
// strata/config/impl/text_checks.ipp - what every text must be before a parser sees it.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <strata/core/error.hpp>

namespace strata::config::detail {

/// "line 3, column 14" of a byte, counted from 0. A character counts as one column, whatever bytes it has.
inline std::string place_in(std::string_view text, std::size_t position) {
    const std::string_view before = text.substr(0, position);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t newline = before.rfind('\n');
    const std::string_view on_line = before.substr(newline == std::string_view::npos ? 0 : newline + 1);
    const auto column = 1 + std::count_if(on_line.begin(), on_line.end(),
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

/// The first byte that belongs to no UTF-8 character (RFC 3629), if there is one.
inline std::optional<std::size_t> first_non_utf8(std::string_view text) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned lead = byte(i);
        const std::size_t more = lead < 0x80        ? 0
                                 : lead >> 5U == 6  ? 1
                                 : lead >> 4U == 14 ? 2
                                 : lead >> 3U == 30 ? 3
                                                    : 4;
        if (more == 4) return i;
        for (std::size_t k = 1; k <= more; ++k)
            if ((byte(i + k) & 0xC0U) != 0x80) return i;
        // Longer than needed, a half of a UTF-16 pair, or beyond U+10FFFF.
        const unsigned second = byte(i + 1);
        if ((more == 1 && lead < 0xC2) || (more == 2 && lead == 0xE0 && second < 0xA0) ||
            (more == 2 && lead == 0xED && second > 0x9F) || (more == 3 && lead == 0xF0 && second < 0x90) ||
            (more == 3 && (lead > 0xF4 || (lead == 0xF4 && second > 0x8F))))
            return i;
        i += more + 1;
    }
    return std::nullopt;
}

/// The text without its byte order mark. Throws Errc::unreadable_config for one that is empty, no UTF-8, or no text.
inline std::string_view checked_text(std::string_view text, const std::string& source) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        throw Error{Errc::unreadable_config, source + " is UTF-16 text", "save it as UTF-8"};
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    if (const auto bad = first_non_utf8(text))
        throw Error{Errc::unreadable_config, source + " is no UTF-8 text at " + place_in(text, *bad),
                    "save it as UTF-8"};
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
        throw Error{Errc::unreadable_config, source + " has a NUL byte at " + place_in(text, nul),
                    "write it anew: the file was damaged, or is no text"};
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw Error{Errc::unreadable_config, source + " is empty", "write a configuration into it"};
    return text;
}

/// All of a file that may be a configuration: at most 16 MiB.
inline std::string read_text(const std::filesystem::path& file) {
    std::error_code error;
    std::ifstream stream{file, std::ios::binary};
    if (!stream || std::filesystem::is_directory(file, error))
        throw Error{Errc::unreadable_config, "cannot read configuration file '" + file.string() + "'",
                    "check the path and its permissions"};
    constexpr std::size_t most = std::size_t{16} << 20U;
    std::string text(most + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most)
        throw Error{Errc::unreadable_config, file.string() + " is larger than 16 MiB",
                    "give a configuration, not data"};
    return text;
}

}  // namespace strata::config::detail
