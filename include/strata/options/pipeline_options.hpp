#pragma once
// strata/options/pipeline_options.hpp - PipelineOptions: the memory of windows of state on a disk, and how they are moved.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata::offload {

/// What direct I/O wants offsets, sizes and addresses to be multiples of.
inline constexpr std::size_t io_alignment = 4096;

enum class IoDirection : std::uint8_t { read, write };

/// Who does the work.
enum class IoEngine : std::uint8_t {
    automatic,  ///< uring where the kernel allows it, else threads
    uring,
    threads,
};
inline constexpr std::array<NamedValue<IoEngine>, 3> io_engines{
    {{"automatic", IoEngine::automatic}, {"uring", IoEngine::uring}, {"threads", IoEngine::threads}}};

/// Faults for tests, and nothing in production.
struct IoFaults {
    /// Called before a block is handed to the system; returns how many of `length` bytes to ask for, a multiple of
    /// io_alignment, or a negative errno to fail without asking. Called from any thread.
    std::function<std::int64_t(IoDirection, std::uint64_t offset, std::size_t length)> block;
};

struct IoOptions {
    IoEngine engine = IoEngine::automatic;
    std::size_t block_bytes = std::size_t{1} << 20;  ///< a transfer is cut into blocks of this size
    unsigned queue_depth = 256;                      ///< blocks that the kernel has at once
    unsigned threads = 8;                            ///< of IoEngine::threads: blocks that are under way at once
    IoFaults faults{};

    static void describe(auto& option) {
        option("engine", &IoOptions::engine, io_engines,
               {.help = "Who reads and writes: `automatic` is `uring` where the kernel allows it, else `threads`"});
        option("block_bytes", &IoOptions::block_bytes, {io_alignment, 1 << 30},
               "A transfer is cut into blocks of this size, a multiple of 4096 bytes");
        option("queue_depth", &IoOptions::queue_depth, {1, 32768}, "Blocks that the kernel has at once");
        option("threads", &IoOptions::threads, {1, 1024}, "Blocks under way at once where threads read and write");
    }
    void check(OptionCheck& check) const {
        if (check.described(*this) && block_bytes % io_alignment != 0)
            check.refuse(check.name("block_bytes") + " is " + std::to_string(block_bytes) + ", no multiple of 4096",
                         "use a multiple, as 1048576");
    }
};

/// Which bytes a check sum looks at.
enum class Coverage : std::uint8_t {
    none,
    sectors,     ///< 64 bytes of every 512: a sector that was not written is noticed, a changed bit seldom; costs 1/8
    every_byte,  ///< 38 GB/s a core: up to 5 % of a step on a disk of 4 GB/s, nothing to be seen on one of 1 GB/s
};
inline constexpr std::array<NamedValue<Coverage>, 3> coverages{
    {{"none", Coverage::none}, {"sectors", Coverage::sectors}, {"every_byte", Coverage::every_byte}}};

struct SwapFileOptions {
    bool direct = true;                     ///< O_DIRECT where the file system has it; SwapFile::direct() tells
    Coverage coverage = Coverage::sectors;  ///< of the check sum that a window gets when it is written
    /// For tests: replaces posix_fallocate; returns an errno.
    std::function<int(int descriptor, std::uint64_t bytes)> preallocate{};

    static void describe(auto& option) {
        option("direct", &SwapFileOptions::direct, "Past the page cache, where the file system can do that");
        option("coverage", &SwapFileOptions::coverage, coverages,
               {.help = "What check sums look at: 64 bytes of every 512 (`sectors`), `every_byte`, or `none`"});
    }
};

/// How host memory becomes known to a GPU and is forgotten before it is freed. Both empty: plain memory.
struct Pinning {
    std::function<void(std::span<std::byte>)> pin;    ///< may throw: the memory is then not made
    std::function<void(std::span<std::byte>)> unpin;  ///< must not throw
};

/// Settings of a WindowPipeline.
struct PipelineOptions {
    std::size_t budget_bytes = 0;  ///< of all buffers together; 0: chosen from the free memory (plan_buffers)
    IoOptions io{};
    SwapFileOptions file{};
    Pinning pinning{};

    static void describe(auto& option) {
        option("budget_bytes", &PipelineOptions::budget_bytes, ranges::size,
               {.help = "Bytes of host memory, on each rank, for windows under way",
                .special = "0 chooses by the free memory"});
        option.part("io", &PipelineOptions::io, "io_");
        option.part("file", &PipelineOptions::file, "file_");
    }
};

}  // namespace strata::offload
