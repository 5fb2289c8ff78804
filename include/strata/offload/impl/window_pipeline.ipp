#pragma once
// strata/offload/impl/window_pipeline.ipp - which buffer holds what, and when the disk is asked.

#include <algorithm>
#include <string>
#include <utility>

#include <strata/offload/host_memory.hpp>
#include <strata/offload/window_pipeline.hpp>

namespace strata::offload {

namespace detail {

inline std::vector<std::size_t> payloads_of(const std::vector<WindowArrays>& windows) {
    std::vector<std::size_t> payloads;
    for (const WindowArrays& arrays : windows) payloads.push_back(payload_of(arrays));
    return payloads;
}

}  // namespace detail

STRATA_INLINE BufferPlan WindowPipeline::plan(const std::vector<WindowArrays>& windows, std::size_t budget_bytes,
                                              std::uint64_t free_bytes) {
    std::size_t largest = io_alignment;
    for (const WindowArrays& arrays : windows) largest = std::max(largest, SwapFile::bytes_of(payload_of(arrays)));
    return plan_buffers(largest, windows.size(), budget_bytes, free_bytes);
}

STRATA_INLINE WindowPipeline::WindowPipeline(const SwapFolder& folder, std::string_view name,
                                             std::vector<WindowArrays> windows, PipelineOptions options)
    : windows_{std::move(windows)},
      file_{folder, std::string{name} + ".swap", detail::payloads_of(windows_), std::move(options.file)} {
    const std::uint64_t free = options.budget_bytes > 0 ? 0 : free_host_memory();
    const BufferPlan plan = WindowPipeline::plan(windows_, options.budget_bytes, free);
    arena_ = std::make_unique<HostArena>("buffering the " + std::string{name} + " state that is kept on disk",
                                         plan.total(), std::move(options.pinning));
    slots_.resize(plan.buffers);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        slots_[i].memory = arena_->bytes().subspan(i * plan.buffer_bytes, plan.buffer_bytes);
    }
    ahead_ = windows_.size();
    io_ = make_block_io(options.io);
}

STRATA_INLINE WindowPipeline::~WindowPipeline() = default;

STRATA_INLINE void WindowPipeline::throw_failure() const {
    if (failure_) std::rethrow_exception(failure_);
}

STRATA_INLINE void WindowPipeline::fail(std::exception_ptr failure) noexcept {
    if (!failure_) failure_ = std::move(failure);
}

/// Notes what the disk has finished.
STRATA_INLINE void WindowPipeline::collect() {
    for (Slot& slot : slots_) {
        const bool busy = slot.content == Content::reading || slot.content == Content::writing;
        if (!busy || !slot.transfer.finished) continue;
        const bool read = slot.content == Content::reading;
        try {
            file_.check(slot.window, slot.transfer);
            slot.content = read ? Content::unchecked : Content::window;
        } catch (...) {
            slot.content = Content::nothing;
            slot.wanted = false;
            fail(std::current_exception());
        }
    }
}

STRATA_INLINE void WindowPipeline::wait_for_disk() {
    io_->wait_one();
    collect();
    throw_failure();
}

STRATA_INLINE WindowPipeline::Slot* WindowPipeline::find(std::size_t window) noexcept {
    for (Slot& slot : slots_) {
        if (slot.content != Content::nothing && slot.window == window) return &slot;
    }
    return nullptr;
}

/// A buffer that nothing needs: an empty one, else the window that was used longest ago.
STRATA_INLINE WindowPipeline::Slot* WindowPipeline::free_slot() noexcept {
    Slot* best = nullptr;
    for (Slot& slot : slots_) {
        if (slot.content == Content::nothing) return &slot;
        const bool idle = slot.content == Content::window && !slot.wanted;
        if (idle && (best == nullptr || slot.last_use < best->last_use)) best = &slot;
    }
    return best;
}

STRATA_INLINE WindowPipeline::Slot& WindowPipeline::wait_for_slot() {
    while (true) {
        if (Slot* const slot = free_slot()) return *slot;
        if (io_->in_flight() > 0) {
            wait_for_disk();
            continue;
        }
        for (Slot& slot : slots_) {  // read ahead for another order than the one that came
            if (slot.content != Content::held) return slot;
        }
        throw Error{Errc::wrong_call_order, "all " + std::to_string(slots_.size()) + " buffers are held",
                    "release a window before the next one is acquired, or raise the buffer budget"};
    }
}

STRATA_INLINE void WindowPipeline::count_buffers() noexcept {
    std::size_t in_use = 0;
    for (const Slot& slot : slots_) {
        const bool idle = slot.content == Content::nothing || (slot.content == Content::window && !slot.wanted);
        in_use += idle ? 0 : 1;
    }
    counts_.most_buffers = std::max(counts_.most_buffers, in_use);
}

/// Hands the slot's transfer to the disk.
STRATA_INLINE void WindowPipeline::start(Slot& slot, Content content) {
    slot.content = content;
    count_buffers();
    try {
        io_->submit(slot.transfer);
    } catch (...) {
        fail(std::current_exception());
        throw;
    }
}

STRATA_INLINE void WindowPipeline::start_read(Slot& slot, std::size_t window) {
    slot.transfer = file_.read_order(window, slot.memory);
    slot.window = window;
    slot.wanted = true;
    ++counts_.windows_read;
    start(slot, Content::reading);
}

STRATA_INLINE void WindowPipeline::read_ahead() {
    io_->poll();
    collect();
    throw_failure();
    while (ahead_ < windows_.size()) {
        if (Slot* const have = find(ahead_)) {
            have->wanted = true;
        } else if (Slot* const slot = free_slot()) {
            start_read(*slot, ahead_);
        } else {
            return;
        }
        ++ahead_;
    }
}

STRATA_INLINE void WindowPipeline::prefetch() {
    throw_failure();
    if (ahead_ == windows_.size()) ahead_ = 0;
    read_ahead();
}

STRATA_INLINE bool WindowPipeline::prefetch(std::size_t window) {
    throw_failure();
    io_->poll();
    collect();
    throw_failure();
    Slot* slot = find(window);
    if (slot != nullptr) {
        slot->wanted = true;
        return true;
    }
    slot = free_slot();
    if (slot != nullptr) start_read(*slot, window);
    return slot != nullptr;
}

STRATA_INLINE Window WindowPipeline::view(Slot& slot, std::size_t window) {
    slot.window = window;
    slot.content = Content::held;
    slot.wanted = false;
    slot.last_use = ++uses_;
    count_buffers();
    std::vector<std::span<std::byte>> arrays;
    std::size_t at = 0;
    for (const std::size_t bytes : windows_[window]) {
        arrays.push_back(slot.memory.subspan(at, bytes));
        at += payload_of({bytes});
    }
    return {window, std::move(arrays)};
}

STRATA_INLINE Window WindowPipeline::acquire(std::size_t window, Access access) {
    throw_failure();
    Slot* slot = find(window);
    if (slot != nullptr && slot->content == Content::held) {
        throw Error{Errc::wrong_call_order, "window " + std::to_string(window) + " is acquired while it is held",
                    "release it first"};
    }
    if (slot == nullptr) {
        slot = &wait_for_slot();
        slot->content = Content::nothing;
        if (access != Access::write) start_read(*slot, window);
    }
    while (slot->content == Content::reading || slot->content == Content::writing) {
        wait_for_disk();
        read_ahead();
    }
    if (slot->content == Content::unchecked && access != Access::write) {
        try {
            file_.verify(window, slot->memory);
        } catch (...) {
            fail(std::current_exception());
            throw;
        }
    }
    return view(*slot, window);
}

STRATA_INLINE void WindowPipeline::release(const Window& window, Access access) {
    throw_failure();
    Slot* const slot = find(window.index());
    if (slot == nullptr || slot->content != Content::held) {
        throw Error{Errc::wrong_call_order,
                    "window " + std::to_string(window.index()) + " is released while it is not held",
                    "release what acquire() returned, once"};
    }
    if (access == Access::read) {
        slot->content = Content::window;
        return;
    }
    slot->transfer = file_.write_order(window.index(), slot->memory);
    ++counts_.windows_written;
    start(*slot, Content::writing);
}

STRATA_INLINE void WindowPipeline::run(Access access, const Update& update) {
    throw_failure();
    if (access == Access::write) {
        ahead_ = windows_.size();
    } else if (ahead_ == windows_.size()) {  // else prefetch() has begun
        ahead_ = 0;
    }
    for (std::size_t i = 0; i < windows_.size(); ++i) {
        read_ahead();
        ahead_ = std::max(ahead_, i + 1);  // acquire() sees to window i itself
        const Window window = acquire(i, access);
        try {
            update(window);
        } catch (...) {
            fail(std::current_exception());
            throw;
        }
        release(window, access);
    }
}

STRATA_INLINE void WindowPipeline::run(std::size_t first, std::size_t end, Access access, const Update& update) {
    throw_failure();
    for (std::size_t i = first; i < end; ++i) {
        for (std::size_t next = i; access != Access::write && next < end && prefetch(next);) ++next;
        const Window window = acquire(i, access);
        try {
            update(window);
        } catch (...) {
            fail(std::current_exception());
            throw;
        }
        release(window, access);
    }
}

STRATA_INLINE void WindowPipeline::flush() {
    throw_failure();
    io_->poll();
    collect();
    const auto writes = [this] {
        return std::any_of(slots_.begin(), slots_.end(),
                           [](const Slot& slot) { return slot.content == Content::writing; });
    };
    throw_failure();
    while (writes()) wait_for_disk();
}

}  // namespace strata::offload
