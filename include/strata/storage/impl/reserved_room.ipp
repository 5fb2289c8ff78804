#pragma once
// strata/storage/impl/reserved_room.ipp - fallocate, and what it may answer.

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/core/amounts.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/impl/atomic_file.ipp>
#include <strata/storage/reserved_room.hpp>

namespace strata::storage {
namespace detail {

/// Not posix_fallocate(): where the file system cannot do it, that one writes zeros instead, gigabytes of them.
inline int allocate_blocks(int descriptor, std::uint64_t bytes) {
    while (::fallocate(descriptor, 0, 0, static_cast<::off_t>(bytes)) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

inline Error no_room(const std::filesystem::path& folder, const std::string& purpose, std::uint64_t bytes) {
    std::error_code unknown;
    const auto space = std::filesystem::space(folder, unknown);
    return Error{Errc::no_space,
                 "the disk of " + folder.string() + " lacks room for " + purpose + ", which takes " +
                     core::in_megabytes(bytes) +
                     (unknown ? "" : "; " + core::in_megabytes(space.available) + " are free"),
                 "free space there, or choose a folder on another disk with --output DIR"};
}

}  // namespace detail

STRATA_INLINE ReservedRoom::ReservedRoom(std::filesystem::path file, std::string purpose,
                                         std::function<int(int descriptor, std::uint64_t bytes)> allocate)
    : file_{std::move(file)},
      purpose_{std::move(purpose)},
      allocate_{allocate ? std::move(allocate) : detail::allocate_blocks} {}

STRATA_INLINE bool ReservedRoom::make(std::uint64_t bytes) {
    std::error_code failed;
    std::filesystem::create_directories(file_.parent_path(), failed);
    if (failed) throw detail::file_error(failed.value(), "create folder", file_.parent_path());
    const detail::Descriptor file{::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
    if (file.get() < 0) throw detail::file_error(errno, "create", file_);
    made_ = true;
    bytes = std::max<std::uint64_t>(bytes, 1);
    if (detail::size_of(file.get(), file_) > bytes && ::ftruncate(file.get(), static_cast<::off_t>(bytes)) != 0)
        throw detail::file_error(errno, "shorten", file_);
    const int error = allocate_(file.get(), bytes);
    if (error == 0) return true;
    release();
    if (error == ENOSPC || error == EDQUOT) throw detail::no_room(file_.parent_path(), purpose_, bytes);
    if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) return false;
    throw detail::file_error(error, "reserve room in", file_);
}

STRATA_INLINE void ReservedRoom::release() noexcept {
    if (std::exchange(made_, false)) ::unlink(file_.c_str());
}

}  // namespace strata::storage
