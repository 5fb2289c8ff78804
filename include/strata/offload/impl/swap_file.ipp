#pragma once
// strata/offload/impl/swap_file.ipp - the layout of a swap file, its seals, and what can be wrong with them.

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <strata/core/fnv1a.hpp>
#include <strata/offload/host_memory.hpp>
#include <strata/offload/swap_file.hpp>

namespace strata::offload {

namespace detail {

/// The last 4 KiB of a window; the rest of them is not looked at.
struct Seal {
    std::uint64_t magic = 0x3130504157535453;  // "STSWAP01"
    std::uint64_t owner = 0;
    std::uint64_t window = 0;
    std::uint64_t generation = 0;
    std::uint64_t payload = 0;
    Checksum sums{};
    friend bool operator==(const Seal&, const Seal&) = default;
};
static_assert(sizeof(Seal) == 56);

}  // namespace detail

STRATA_INLINE SwapFile::SwapFile(const SwapFolder& folder, std::string_view name,
                                 std::vector<std::size_t> payload_bytes, SwapFileOptions options)
    : path_{folder.file(name)},
      owner_{core::fnv1a(folder.run_id() + "/" + path_.filename().string())},
      options_{std::move(options)} {
    for (const std::size_t payload : payload_bytes) {
        windows_.push_back({.offset = file_bytes_, .payload = payload});
        file_bytes_ += bytes_of(payload);
    }
    require_disk_space("the state that is kept on disk", folder.path(), file_bytes_);
    try {
        create();
    } catch (...) {
        if (descriptor_ >= 0) {  // else it is not this object's file
            ::close(descriptor_);
            ::unlink(path_.c_str());
        }
        throw;
    }
}

STRATA_INLINE SwapFile::~SwapFile() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
}

STRATA_INLINE void SwapFile::create() {
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    if (options_.direct) descriptor_ = ::open(path_.c_str(), flags | O_DIRECT, 0600);
    direct_ = descriptor_ >= 0;
    if (options_.direct && !direct_ && errno == EINVAL) {
        ::unlink(path_.c_str());  // a file system that refuses O_DIRECT may have made the file before it looked
    }
    if (!direct_) descriptor_ = ::open(path_.c_str(), flags, 0600);
    if (descriptor_ < 0) throw detail::swap_error(errno, "create", path_);
    if (file_bytes_ == 0) return;

    const auto size = static_cast<::off_t>(file_bytes_);
    int error = EINTR;
    while (error == EINTR) {
        error = options_.preallocate ? options_.preallocate(descriptor_, file_bytes_)
                                     : ::posix_fallocate(descriptor_, 0, size);
    }
    if (error != 0) throw detail::swap_error(error, "allocate " + in_gib(file_bytes_) + " for", path_);

    // Some file systems take the flag and refuse the first block.
    alignas(io_alignment) std::byte block[io_alignment]{};
    ::ssize_t written = ::pwrite(descriptor_, block, sizeof block, 0);
    if (written < 0 && errno == EINVAL && direct_) {
        direct_ = false;
        if (::fcntl(descriptor_, F_SETFL, 0) != 0) throw detail::swap_error(errno, "set up", path_);
        written = ::pwrite(descriptor_, block, sizeof block, 0);
    }
    if (written < 0) throw detail::swap_error(errno, "write to", path_);
}

STRATA_INLINE Transfer SwapFile::order(IoDirection direction, std::size_t window, std::span<std::byte> memory) const {
    Transfer transfer;
    transfer.direction = direction;
    transfer.descriptor = descriptor_;
    transfer.offset = windows_.at(window).offset;
    transfer.bytes = memory.first(window_bytes(window));
    return transfer;
}

STRATA_INLINE Transfer SwapFile::read_order(std::size_t window, std::span<std::byte> memory) const {
    if (generation(window) == 0) {
        throw Error{
            Errc::wrong_call_order,
            "window " + std::to_string(window) + " of " + path_.string() + " is read before it was ever written",
            "write every window once, as WindowPipeline does with Access::write"};
    }
    return order(IoDirection::read, window, memory);
}

STRATA_INLINE Transfer SwapFile::write_order(std::size_t window, std::span<std::byte> memory) {
    Window& w = windows_.at(window);
    const detail::Seal seal{.owner = owner_,
                            .window = window,
                            .generation = ++w.generation,
                            .payload = w.payload,
                            .sums = checksum(memory.first(w.payload), options_.coverage)};
    const Transfer transfer = order(IoDirection::write, window, memory);
    std::memcpy(transfer.bytes.last(io_alignment).data(), &seal, sizeof seal);
    return transfer;
}

STRATA_INLINE void SwapFile::check(std::size_t window, const Transfer& order) const {
    const bool reads = order.direction == IoDirection::read;
    if (order.error != 0) {
        throw detail::swap_error(
            order.error, std::string{reads ? "read" : "write"} + " window " + std::to_string(window) + " of", path_);
    }
    if (order.ended) {
        throw Error{Errc::stale_swap,
                    path_.string() + " ends inside window " + std::to_string(window) + ": it was cut after it was made",
                    "restart from the last checkpoint, and keep other programs away from the swap folder"};
    }
}

STRATA_INLINE void SwapFile::verify(std::size_t window, std::span<const std::byte> memory) const {
    const Window& w = windows_.at(window);
    detail::Seal seal;
    std::memcpy(&seal, memory.subspan(bytes_of(w.payload) - io_alignment).data(), sizeof seal);
    const auto fail = [&](const std::string& what) {
        throw Error{Errc::stale_swap, "window " + std::to_string(window) + " of " + path_.string() + " " + what,
                    "restart from the last checkpoint; if no other program writes there, replace the disk"};
    };
    const detail::Seal any{
        .owner = owner_, .window = window, .generation = seal.generation, .payload = w.payload, .sums = seal.sums};
    if (seal != any) fail("is not what this rank wrote there");
    if (seal.generation != w.generation) {
        fail("is generation " + std::to_string(seal.generation) + " where generation " + std::to_string(w.generation) +
             " was written last");
    }
    if (seal.sums != checksum(memory.first(w.payload), options_.coverage))
        fail("has another check sum than when it was written");
}

}  // namespace strata::offload
