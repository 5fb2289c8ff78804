#pragma once
// strata/storage/tar.hpp - where the members of a tar file lie, found by reading its headers only.
//
// ustar (POSIX.1-1988), GNU long names, pax headers (POSIX.1-2001: path, size; those for all members as well).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>

namespace strata::storage {

/// A file in a tar file.
struct TarMember {
    std::string name;          ///< without "./" in front
    std::uint64_t offset = 0;  ///< of its first byte in the tar file
    std::uint64_t size = 0;    ///< bytes
    friend bool operator==(const TarMember&, const TarMember&) = default;
};

/// The regular files of a tar file, in its order; folders, links and devices are left out. Reads 16 KiB at each header
/// that the read before does not hold, so small members cost no read of their own.
///
///   read   bytes [offset, offset + length), fewer at the end of the file; may throw
///   size   bytes of the file
///   place  named in messages
///
/// Throws Errc::bad_tar: damaged, cut off, compressed, with sparse members, of several volumes, or with a name that is
/// no key (absolute, with "..", longer than 4096 bytes); what `read` throws.
[[nodiscard]] std::vector<TarMember> tar_members(
    const std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t length)>& read, std::uint64_t size,
    std::string_view place);

/// True if a name has the form of a pattern: '*' stands for any text without '/', "{000..127}" for the numbers from
/// the first to the last, filled up with zeros to as many digits where one of them begins with 0.
[[nodiscard]] bool matches_shard_pattern(std::string_view name, std::string_view pattern);

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/tar.ipp>
#endif
