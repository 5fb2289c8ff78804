#pragma once
// tools/out_of_memory.hpp - OutOfMemory: whether the kernel ended a process because memory ran out.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <sys/types.h>

#include "launch_wire.hpp"

namespace strata::tools {

/// Counts what the kernel has killed for memory by now, and looks again after a death. SIGKILL itself does not say
/// where it came from.
class OutOfMemory {
public:
    enum class Verdict : char {
        killed = 'k',    ///< the kernel's log names the process, or its control group counts one kill more
        likely = 'l',    ///< only the machine's count rose, which is not of this job alone
        not_seen = 'n',  ///< the counts are the same
        unknown = 'u',   ///< nothing of this can be read here
    };

    ///   root  what stands for "/": tests bring their own
    explicit OutOfMemory(std::filesystem::path root = "/");

    [[nodiscard]] Verdict verdict(pid_t process) const;

private:
    [[nodiscard]] std::optional<std::uint64_t> group_kills() const;
    [[nodiscard]] std::optional<std::uint64_t> machine_kills() const;
    [[nodiscard]] bool log_names(pid_t process) const;

    std::filesystem::path root_;
    std::filesystem::path group_file_;  // empty: this process is in no control group whose count can be read
    std::optional<std::uint64_t> group_kills_;
    std::optional<std::uint64_t> machine_kills_;
    File log_;  // behind its last line of then
};

}  // namespace strata::tools
