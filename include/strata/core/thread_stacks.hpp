#pragma once
// strata/core/thread_stacks.hpp - thread_stacks(): what every thread of this process does, for people.

#include <chrono>
#include <string>

#include <strata/core/inline.hpp>

namespace strata::core {

/// A paragraph for each thread: its number, name and state, and the functions that it is in, innermost first.
///
/// Each thread is asked by a signal (the highest real-time one that the program does not use; system calls go on behind it), so that this
/// needs no debugger and no right to trace. For the last words of a process: names are looked up with locks that a thread
/// may hold where it hangs, so call it where somebody else waits no longer than he wants to.
///
///   patience  with a thread that does not come to its signal, which is said in its place
/// Local, from any thread.
[[nodiscard]] std::string thread_stacks(std::chrono::milliseconds patience = std::chrono::milliseconds{500});

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/thread_stacks.ipp>
#endif
