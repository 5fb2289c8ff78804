#pragma once
// strata/offload/window_pipeline.hpp - the pass over windows on disk: read i + 1, update i, write i - 1.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/offload/block_io.hpp>
#include <strata/offload/host_arena.hpp>
#include <strata/offload/swap_file.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/offload/windows.hpp>
#include <strata/options/pipeline_options.hpp>

namespace strata::offload {

/// What a pass does with every window.
enum class Access : std::uint8_t {
    read,    ///< look at it; nothing is written
    write,   ///< fill it anew; nothing is read, and what the memory holds at first is undefined
    update,  ///< change what it holds
};

/// One window's arrays in memory.
class Window {
public:
    Window(std::size_t index, std::vector<std::span<std::byte>> arrays) noexcept
        : index_{index}, arrays_{std::move(arrays)} {}
    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] std::size_t array_count() const noexcept { return arrays_.size(); }
    /// Array k as elements of type T; its bytes are a multiple of sizeof(T).
    template <class T>
    [[nodiscard]] std::span<T> array(std::size_t k) const {
        const std::span<std::byte> bytes = arrays_.at(k);
        return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

private:
    std::size_t index_;
    std::vector<std::span<std::byte>> arrays_;
};

/// What a pipeline has done since it was made.
struct PipelineCounts {
    std::uint64_t windows_read = 0;
    std::uint64_t windows_written = 0;
    std::size_t most_buffers = 0;  ///< that were reading, writing, waiting for their turn or in use at once
};

/// State in a file, a few windows of it in memory.
///
///   WindowPipeline state{folder, "optimizer", windows, {}};
///   state.run(Access::write, fill);       // once: the first values
///   state.prefetch();                     // during backward, as often as convenient: the first windows of the next
///   pass state.run(Access::update, step);      // each step; its last writes go on afterwards
///
/// Reads and writes go on while the caller computes; a pass waits for the window it needs next and for nothing else. A
/// window that is still in a buffer is not read again. Parameters, whose order is not that of a pass, use prefetch(i),
/// acquire(i) and release(i).
///
/// An I/O error is thrown by the call that meets it, or by the next one; from then on, and after an update that threw,
/// every call throws that same error: state that was updated in part is never handed out. Local; one thread at a time.
class WindowPipeline {
public:
    using Update = std::function<void(const Window&)>;

    /// The buffers that a pipeline of these windows has. Throws as plan_buffers().
    ///
    ///   free_bytes  of the host's memory; only where the budget is 0
    [[nodiscard]] static BufferPlan plan(const std::vector<WindowArrays>& windows, std::size_t budget_bytes,
                                         std::uint64_t free_bytes);

    /// Makes the file and the buffers. Throws not_enough_memory, no_space, bad_value, not_found, io_failed.
    ///
    ///   folder   outlives the pipeline
    ///   name     of the file, and of its purpose in messages
    ///   windows  the arrays of each
    WindowPipeline(const SwapFolder& folder, std::string_view name, std::vector<WindowArrays> windows,
                   PipelineOptions options = {});
    WindowPipeline(const WindowPipeline&) = delete;
    WindowPipeline& operator=(const WindowPipeline&) = delete;
    ~WindowPipeline();  ///< waits for the I/O under way, which uses the buffers

    /// Calls `update` with window 0, 1, 2, ... in turn. The window's memory is valid during the call.
    void run(Access access, const Update& update);
    /// The same for windows first .. end - 1 only. Not between prefetch() and the run() that it is for.
    void run(std::size_t first, std::size_t end, Access access, const Update& update);

    /// Starts reading the first windows of the next pass into the buffers that are free. Never waits for the disk.
    void prefetch();
    /// Starts reading one window; false when no buffer is free. Never waits for the disk.
    bool prefetch(std::size_t window);

    /// The window in memory, waited for if need be; with Access::write not read. Until release() it keeps its buffer,
    /// so at most buffer_count() windows can be held: one more throws wrong_call_order.
    Window acquire(std::size_t window, Access access = Access::update);
    /// Gives a window back. `access` says what was done with it: after write or update it starts its way to the disk.
    void release(const Window& window, Access access);

    /// Waits until everything is written.
    void flush();

    [[nodiscard]] std::size_t window_count() const noexcept { return windows_.size(); }
    [[nodiscard]] std::size_t buffer_count() const noexcept { return slots_.size(); }
    [[nodiscard]] std::size_t buffer_bytes() const noexcept { return arena_->bytes().size(); }  ///< all of them
    [[nodiscard]] const SwapFile& file() const noexcept { return file_; }
    [[nodiscard]] IoEngine engine() const noexcept { return io_->engine(); }
    [[nodiscard]] const PipelineCounts& counts() const noexcept { return counts_; }

private:
    enum class Content : std::uint8_t {
        nothing,
        reading,
        unchecked,  // read, its seal not looked at yet
        window,     // as on the disk
        held,
        writing,
    };
    struct Slot {
        std::span<std::byte> memory;
        Content content = Content::nothing;
        bool wanted = false;  // read ahead and not used yet
        std::size_t window = 0;
        std::uint64_t last_use = 0;
        Transfer transfer;
    };

    void throw_failure() const;
    void fail(std::exception_ptr failure) noexcept;
    void collect();
    void wait_for_disk();
    void read_ahead();
    void start(Slot& slot, Content content);
    void start_read(Slot& slot, std::size_t window);
    [[nodiscard]] Slot* find(std::size_t window) noexcept;
    [[nodiscard]] Slot* free_slot() noexcept;
    [[nodiscard]] Slot& wait_for_slot();
    [[nodiscard]] Window view(Slot& slot, std::size_t window);
    void count_buffers() noexcept;

    std::vector<WindowArrays> windows_;
    SwapFile file_;
    std::unique_ptr<HostArena> arena_;
    std::vector<Slot> slots_;
    std::unique_ptr<BlockIo> io_;  // after what its transfers refer to: ends first
    std::size_t ahead_ = 0;        // the next window that read_ahead() looks at
    std::uint64_t uses_ = 0;
    PipelineCounts counts_;
    std::exception_ptr failure_;
};

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/window_pipeline.ipp>
#endif
