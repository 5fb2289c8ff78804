#pragma once
// tools/rank_death.hpp - RankDeath: a rank that ended and did not say why, and what a person should look at.

#include <string>

#include <sys/types.h>

#include <strata/core/error.hpp>

#include "out_of_memory.hpp"

namespace strata::tools {

struct RankDeath {
    int rank = 0;
    int world = 1;
    std::string host;
    pid_t process = 0;
    int status = 0;  ///< of waitpid; not 0
    OutOfMemory::Verdict memory = OutOfMemory::Verdict::unknown;
    std::string program;
};

/// One sentence of what happened, one of what to look at: Errc::rank_died.
[[nodiscard]] Error error_of(const RankDeath& death);

/// "SIGKILL"
[[nodiscard]] std::string name_of_signal(int signal);

}  // namespace strata::tools
