#include "wrapped_text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace strata::tools {

namespace {

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::optional<std::size_t> terminal_columns() {
    constexpr std::size_t least = 40;
    if (const char* const given = std::getenv("COLUMNS")) {
        const std::string_view text{given};
        std::size_t columns = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
        if (error == std::errc{} && end == text.data() + text.size()) return std::max(columns, least);
    }
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return std::max<std::size_t>(size.ws_col, least);
}

std::string wrapped(std::string_view words, std::string_view first, std::string_view indent, std::size_t columns) {
    std::string text;
    std::string line{first};
    bool is_empty = true;
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find(' ', at), words.size());
        const std::string_view word = words.substr(at, end - at);
        at = end + 1;
        if (!is_empty && characters(line) + 1 + characters(word) > columns) {
            text += line + "\n";
            line = indent;
            is_empty = true;
        }
        line.append(is_empty ? "" : " ").append(word);
        is_empty = false;
    }
    return text + line + "\n";
}

}  // namespace strata::tools
