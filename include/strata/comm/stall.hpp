#pragma once
// strata/comm/stall.hpp - Stall: what is known when a watchdog ends a job whose ranks wait for each other.

#include <functional>
#include <string>
#include <vector>

namespace strata::comm {

struct Stall {
    std::string
        line;  ///< why, as it is printed: `collective 2 (...) has not ended after ...`, with its number in front
    std::vector<std::string> stacks;  ///< by rank: what its threads do (core::thread_stacks); why that is not known
};

/// What a program does with it before the job ends: keep the stacks, tell somebody. Called once, on the rank that speaks, in a thread
/// of its own, which is waited for no longer than 10 s. Returns what is to be printed besides; empty: nothing.
using StallHook = std::function<std::string(const Stall&)>;

}  // namespace strata::comm
