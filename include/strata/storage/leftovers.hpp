#pragma once
// strata/storage/leftovers.hpp - removes the temporary files of processes that were killed.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>

namespace strata::storage {

/// Removes temporary files that an AtomicFile of a process that has ended left in a folder. A living writer holds a
/// lock on his file, which vanishes with him: what is locked stays, and so does everything where locks do not work.
///
///   depth      folders to go down: 0 for the files of `folder` itself; links are not followed
///   least_age  of files of other machines, of this one before it was started anew, and of earlier versions, since they
///              were last written: there are disks whose locks another machine does not see. 0 where a lock of the
///              caller's own keeps other writers away.
///   returns    how many. A folder that is not there, or a file that may not be removed, is no error.
std::int64_t remove_leftovers(const std::filesystem::path& folder, int depth = std::numeric_limits<int>::max(),
                              std::chrono::seconds least_age = std::chrono::hours{1});

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/leftovers.ipp>
#endif
