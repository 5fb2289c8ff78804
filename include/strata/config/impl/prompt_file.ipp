#pragma once
// strata/config/impl/prompt_file.ipp - lines of a file.

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include <strata/config/prompt_file.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

namespace strata::config {

STRATA_INLINE std::vector<std::string> read_prompts(const std::filesystem::path& file) {
    std::error_code none;
    errno = 0;
    std::ifstream in{file, std::ios::binary};
    if (!in || std::filesystem::is_directory(file, none))
        throw Error{Errc::unreadable_config,
                    "cannot read the prompts in " + file.string() + ": " + std::strerror(errno != 0 ? errno : EISDIR),
                    "name a text file of prompts, one a line"};
    std::vector<std::string> prompts;
    std::string line;
    for (bool is_first = true; std::getline(in, line); is_first = false) {
        if (is_first && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
        if (const std::string_view prompt = core::trimmed(line); !prompt.empty()) prompts.emplace_back(prompt);
    }
    if (prompts.empty())
        throw Error{Errc::bad_value, file.string() + " has no prompt in it", "write prompts into it, one a line"};
    return prompts;
}

}  // namespace strata::config
