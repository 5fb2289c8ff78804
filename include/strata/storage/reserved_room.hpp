#pragma once
// strata/storage/reserved_room.hpp - ReservedRoom: a part of a disk kept free for what must be written when it is full.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <strata/core/inline.hpp>

namespace strata::storage {

/// A file whose blocks are allocated and never written: whoever removes it has that much room, whatever else filled the
/// disk. (Another program may be quicker; file systems that never overwrite in place, as btrfs and zfs, promise less.)
/// Only a process that is killed leaves the file behind; the next one takes it over. Local.
class ReservedRoom {
public:
    /// Makes nothing yet.
    ///
    ///   purpose   what is to be written, for messages: "one checkpoint"
    ///   allocate  for tests: replaces fallocate(); returns an errno
    ReservedRoom(std::filesystem::path file, std::string purpose,
                 std::function<int(int descriptor, std::uint64_t bytes)> allocate = {});
    ReservedRoom(const ReservedRoom&) = delete;
    ReservedRoom& operator=(const ReservedRoom&) = delete;
    ~ReservedRoom() { release(); }

    /// Reserves `bytes`, in a folder that is made if it is missing. Throws no_space, with what is free and what is needed,
    /// and io_failed; nothing is reserved then.
    ///
    ///   returns  false where the file system cannot reserve, and then nothing is
    [[nodiscard]] bool make(std::uint64_t bytes);

    /// Gives the room back. Nothing where there is none.
    void release() noexcept;

private:
    std::filesystem::path file_;
    std::string purpose_;
    std::function<int(int, std::uint64_t)> allocate_;
    bool made_ = false;
};

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/reserved_room.ipp>
#endif
