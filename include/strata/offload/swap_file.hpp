#pragma once
// strata/offload/swap_file.hpp - one rank's windows of state in a preallocated file, each sealed with its generation.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/offload/block_io.hpp>
#include <strata/offload/checksum.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::offload {

/// Windows of bytes in one file that lives as long as this object.
///
/// A window is its payload, padded to 4 KiB, and a seal of 4 KiB that says whose it is (run, rank, window), how often
/// it has been written, and its check sum. What is read back is therefore what was written last, or an error: a write
/// that was lost, went elsewhere or stopped half way, and a file of another run do not go unnoticed.
///
/// All blocks are allocated when the file is made, so that a full disk is found then. (File systems that never
/// overwrite in place, as btrfs and zfs, cannot promise that.) Nothing is synced: what a power failure leaves is never
/// read again. Moves no bytes itself: it makes the orders for a BlockIo and judges the answers. Local; one thread at a
/// time.
class SwapFile {
public:
    /// Throws no_space, not_found, io_failed.
    ///
    ///   folder         outlives the file
    ///   name           of this file among the rank's files
    ///   payload_bytes  of each window; at least 1 each
    SwapFile(const SwapFolder& folder, std::string_view name, std::vector<std::size_t> payload_bytes,
             SwapFileOptions options = {});
    SwapFile(const SwapFile&) = delete;
    SwapFile& operator=(const SwapFile&) = delete;
    ~SwapFile();

    /// Bytes on the disk, and in memory, of a window with this payload.
    [[nodiscard]] static constexpr std::size_t bytes_of(std::size_t payload_bytes) noexcept {
        return aligned_up(payload_bytes) + io_alignment;
    }
    [[nodiscard]] std::size_t window_count() const noexcept { return windows_.size(); }
    [[nodiscard]] std::size_t window_bytes(std::size_t window) const { return bytes_of(windows_.at(window).payload); }
    [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }
    /// How often a window has been written.
    [[nodiscard]] std::uint64_t generation(std::size_t window) const { return windows_.at(window).generation; }
    [[nodiscard]] bool direct() const noexcept { return direct_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

    /// The order to read a window into the beginning of `memory`, which is aligned to 4096 bytes.
    /// Throws wrong_call_order for a window that was never written.
    [[nodiscard]] Transfer read_order(std::size_t window, std::span<std::byte> memory) const;
    /// Seals the window that lies at the beginning of `memory` as its next generation; the order to write it.
    [[nodiscard]] Transfer write_order(std::size_t window, std::span<std::byte> memory);

    /// Throws what a finished order met: no_space, io_failed, or stale_swap for a file that is too short.
    void check(std::size_t window, const Transfer& order) const;
    /// Throws stale_swap unless `memory` holds the window as it was written last.
    void verify(std::size_t window, std::span<const std::byte> memory) const;

private:
    struct Window {
        std::uint64_t offset = 0;
        std::size_t payload = 0;
        std::uint64_t generation = 0;
    };
    void create();
    [[nodiscard]] Transfer order(IoDirection direction, std::size_t window, std::span<std::byte> memory) const;

    std::filesystem::path path_;
    std::uint64_t owner_ = 0;  // of run and rank
    SwapFileOptions options_;
    std::vector<Window> windows_;
    std::uint64_t file_bytes_ = 0;
    int descriptor_ = -1;
    bool direct_ = false;
};

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/swap_file.ipp>
#endif
