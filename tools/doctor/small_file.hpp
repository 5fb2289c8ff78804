#pragma once
// tools/doctor/small_file.hpp - small_file(): the text of a file of /proc or /sys.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace strata::tools::doctor {

/// None where it cannot be read.
[[nodiscard]] inline std::optional<std::string> small_file(const std::filesystem::path& path) {
    std::ifstream in{path, std::ios::binary};
    if (!in) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>{in}, {}};
}

}  // namespace strata::tools::doctor
