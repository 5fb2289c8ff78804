#pragma once
// strata/offload/host_memory.hpp - how much memory and disk is free, and the sentence when it will not be enough.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <strata/core/error.hpp>

namespace strata::offload {

/// Bytes that this process can still allocate without swapping: the least of MemAvailable in /proc/meminfo and what
/// the control groups above this process (version 1 or 2) leave, where file pages that can be dropped count as free.
///
///   root  where proc/ and sys/ are found; tests give a folder of their own
/// Local. Throws io_failed where there is no /proc/meminfo.
[[nodiscard]] std::uint64_t free_host_memory(const std::filesystem::path& root = "/");

/// Bytes that this user can still write on the disk that holds `path`. Throws not_found, io_failed.
[[nodiscard]] std::uint64_t free_disk_space(const std::filesystem::path& path);

/// Throws Errc::not_enough_memory, "<what> needs X GiB of host memory on this node, Y GiB are free", unless
/// `bytes` <= `free`.
///
///   what   what the memory is for, as the beginning of a sentence
///   bytes  of all ranks of this node together, when all of them are about to allocate
///   fix    what makes the need smaller
void require_host_memory(std::string_view what, std::uint64_t bytes, std::string_view fix,
                         std::uint64_t free = free_host_memory());

/// Throws Errc::no_space, "<what> needs X GiB on PATH, Y GiB are free", unless `bytes` fit on the disk that holds
/// `path`.
///
///   bytes  of all ranks that write there, when all of them are about to
void require_disk_space(std::string_view what, const std::filesystem::path& path, std::uint64_t bytes);

/// "1.25 GiB".
[[nodiscard]] std::string in_gib(std::uint64_t bytes);

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/host_memory.ipp>
#endif
