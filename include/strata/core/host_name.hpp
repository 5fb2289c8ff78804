#pragma once
// strata/core/host_name.hpp - host_name(): what this host is called.

#include <array>
#include <string>

#include <unistd.h>

namespace strata::core {

/// Up to 255 bytes of it. Empty where the system does not say.
[[nodiscard]] inline std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace strata::core
