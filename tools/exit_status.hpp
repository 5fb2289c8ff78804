#pragma once
// tools/exit_status.hpp - what the command `strata` exits with.

#include <strata/core/error.hpp>

namespace strata::tools {

/// The exit status of a launch that lost a host: start it again.
inline constexpr int host_lost_status = 75;

/// Of a command that an Error ended; the same on all nodes of a launch.
[[nodiscard]] int status_of(const Error& error);

}  // namespace strata::tools
