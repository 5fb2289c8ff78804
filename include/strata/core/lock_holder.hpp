#pragma once
// strata/core/lock_holder.hpp - who holds the lock of a file, for the sentence that somebody who waits is told.

#include <filesystem>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::core {

/// "process 4711 on host gpu3 ('train', since 2026-11-22 03:53:10 UTC)", or that it cannot be seen from here. Of locks by
/// flock and by fcntl, which SQLite takes, asked from the kernel (/proc/locks); a lock of another host or container
/// is known by its note only. Never throws for what it cannot find out.
///
///   note  what the holder wrote about itself (lock_note()); empty: nothing
[[nodiscard]] std::string lock_holder(const std::filesystem::path& file, std::string_view note = {});

/// What this process writes into a file that it locks: "4711 gpu3 2026-11-22T03:53:10Z train\n".
[[nodiscard]] std::string lock_note();

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/lock_holder.ipp>
#endif
