#pragma once
// strata/config/prompt_file.hpp - read_prompts(): a text file of prompts, one a line.

#include <filesystem>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::config {

/// The lines of a text, without blanks around them; empty ones are none. Windows' line ends and a byte order mark are
/// passed over.
/// Throws Errc::unreadable_config for a file that is missing, and Errc::bad_value for one without a prompt.
[[nodiscard]] std::vector<std::string> read_prompts(const std::filesystem::path& file);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/prompt_file.ipp>
#endif
