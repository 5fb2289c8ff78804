#pragma once
// tools/doctor/limits.hpp - what this process may have: memory, /dev/shm, open files, locked memory, io_uring.

#include <cstdint>
#include <optional>
#include <string>

#include "line.hpp"

namespace strata::tools::doctor {

/// Empty is what the kernel does not show.
struct LimitFacts {
    std::optional<std::uint64_t> memory_total;      ///< bytes that this process may use, of its cgroup or the host
    std::optional<std::uint64_t> memory_available;  ///< of them free
    std::optional<std::uint64_t> memory_of_host;
    std::optional<std::uint64_t> shm_total;  ///< bytes; empty: no /dev/shm
    std::optional<std::uint64_t> shm_available;
    bool shm_writable = true;
    std::uint64_t files = 0;  ///< ulimit -n; UINT64_MAX: no limit
    std::uint64_t files_at_most = 0;
    std::uint64_t locked = 0;  ///< bytes, ulimit -l; UINT64_MAX: no limit
    bool has_infiniband = false;
};

[[nodiscard]] LimitFacts look_at_limits();
[[nodiscard]] Line judge_memory(const LimitFacts& facts);
[[nodiscard]] Line judge_shared_memory(const LimitFacts& facts);
[[nodiscard]] Line judge_open_files(const LimitFacts& facts);
[[nodiscard]] Line judge_locked_memory(const LimitFacts& facts);

struct UringFacts {
    int error = 0;                  ///< errno of io_uring_setup
    std::optional<int> disabled{};  ///< kernel.io_uring_disabled
    bool is_filtered = false;       ///< a seccomp filter decides which system calls there are
    std::string kernel;             ///< "6.1.0-18-amd64"
};

[[nodiscard]] UringFacts look_at_uring();
[[nodiscard]] Line judge(const UringFacts& facts);

}  // namespace strata::tools::doctor
