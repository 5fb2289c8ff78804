#pragma once
// strata/train/impl/terminal.ipp - asking the system, and mpirun's own streams.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <strata/train/terminal.hpp>

namespace strata::train {

STRATA_INLINE bool is_terminal(int stream) {
    if (const char* asked = std::getenv("STRATA_PROGRESS")) return std::string_view{asked} == "live";
    if (::isatty(stream) == 0) return false;
    if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
    const std::string of_mpirun = "/proc/" + std::to_string(::getppid()) + "/fd/" + std::to_string(stream);
    const int file = ::open(of_mpirun.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return false;
    const bool terminal = ::isatty(file) != 0;
    ::close(file);
    return terminal;
}

STRATA_INLINE std::string clock_text(double seconds) {
    const auto total = static_cast<long long>(std::max(0.0, seconds) + 0.5);
    char text[32];
    if (total >= 3600)
        std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
    else
        std::snprintf(text, sizeof text, "%lld:%02lld", total / 60, total % 60);
    return text;
}

}  // namespace strata::train
