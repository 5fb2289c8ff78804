#include "program_beside.hpp"

#include <filesystem>
#include <system_error>

#include <unistd.h>

#include <strata/core/error.hpp>

namespace strata::tools {

std::string program_beside(const std::string& name, const std::string& target) {
    std::error_code failed;
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
    const std::filesystem::path file = own.parent_path() / name;
    if (failed || ::access(file.c_str(), X_OK) != 0)
        throw Error{Errc::cannot_launch, "there is no " + name + " beside " + own.string(),
                    "build the target " + target + ", which needs libtorch, and install again"};
    return file.string();
}

}  // namespace strata::tools
