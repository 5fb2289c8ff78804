#pragma once
// tools/doctor/other_program.hpp - run_other(): another program, what it prints, and an end to it.

#include <chrono>
#include <string>
#include <vector>

namespace strata::tools::doctor {

struct OtherProgram {
    int status = 127;        ///< 128 + signal where a signal ended it; 127 where it cannot be started
    bool is_in_time = true;  ///< false: it was ended
    std::string out;
    std::string err;
};

/// Starts it as a shell does, without its input, and ends it when the time is up. What it has started in its turn may go on.
///
///   words    its name, looked up in PATH, and its arguments
///   changed  NAME=VALUE of its environment, in place of this process's
[[nodiscard]] OtherProgram run_other(const std::vector<std::string>& words, std::chrono::milliseconds patience,
                                     const std::vector<std::string>& changed = {});

}  // namespace strata::tools::doctor
