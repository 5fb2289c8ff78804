#pragma once
// strata/datasets/folder_place.hpp - where a folder of pictures is, as indexes and cache identities have it.

#include <filesystem>
#include <string>
#include <system_error>

namespace strata::datasets {

/// The place of a folder: the same from every working directory.
[[nodiscard]] inline std::string folder_place(const std::filesystem::path& folder) {
    std::error_code unknown;
    const auto place = std::filesystem::weakly_canonical(std::filesystem::absolute(folder, unknown), unknown);
    return (unknown ? folder : place).string();
}

}  // namespace strata::datasets
