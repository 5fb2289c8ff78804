#pragma once
// strata/config/impl/text_checks.ipp - what every text must be before a parser sees it.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include <strata/config/impl/load_json.ipp>
#include <strata/core/error.hpp>

namespace strata::config::detail {

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
