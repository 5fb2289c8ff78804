#pragma once
// strata/offload/block_io.hpp - many reads and writes of files at once, by io_uring or by a few threads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::offload {

constexpr std::size_t aligned_up(std::size_t bytes) noexcept {
    return (bytes + io_alignment - 1) / io_alignment * io_alignment;
}

/// One run of bytes between memory and a file: the order, and what became of it.
struct Transfer {
    IoDirection direction = IoDirection::read;
    int descriptor = -1;
    std::uint64_t offset = 0;
    std::span<std::byte> bytes{};

    bool finished = false;        ///< the rest is valid; set only inside calls of BlockIo
    int error = 0;                ///< errno of a block that failed, or 0
    bool ended = false;           ///< a read met the end of the file
    std::size_t open_blocks = 0;  ///< BlockIo's own
};

/// Reads and writes that go on while the caller computes. Short reads and writes are continued until the transfer is
/// complete, the file ends or the system reports an error; that is left in the transfer, never thrown.
///
/// Local. One thread at a time; the thread that submits stays alive until its transfers have finished. What a transfer
/// refers to must not move before it has finished; the destructor waits for all of them.
class BlockIo {
public:
    virtual ~BlockIo() = default;
    BlockIo(const BlockIo&) = delete;
    BlockIo& operator=(const BlockIo&) = delete;

    /// Starts a transfer of at least one byte. Offset, size and address are multiples of io_alignment.
    virtual void submit(Transfer& transfer) = 0;
    /// Notes what has finished, without waiting.
    virtual void poll() = 0;
    /// Waits until at least one transfer more has finished. Only when in_flight() > 0.
    virtual void wait_one() = 0;

    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }  ///< transfers not finished
    [[nodiscard]] virtual IoEngine engine() const noexcept = 0;                  ///< uring or threads

protected:
    BlockIo() = default;
    std::size_t in_flight_ = 0;
};

/// Throws bad_value for a block size that is no multiple of io_alignment, and io_failed when IoEngine::uring is asked
/// for and the kernel refuses it.
[[nodiscard]] std::unique_ptr<BlockIo> make_block_io(const IoOptions& options = {});

/// True where this kernel lets this process use io_uring; containers often forbid it.
[[nodiscard]] bool has_uring() noexcept;

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/block_io.ipp>
#endif
