#pragma once
// bench/nvme_tier/by_hand.hpp - the limit: the same bytes read and written back, and nothing else.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <strata/offload/host_arena.hpp>

/// Every block is read and, when it has come, written back to where it was, with `depth` blocks under way.
class RawDisk {
public:
    RawDisk(const std::filesystem::path& path, std::uint64_t bytes, std::size_t block, unsigned depth)
        : block_{block}, blocks_{bytes / block}, memory_{"the raw loop", block * depth} {
        file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
        ::unlink(path.c_str());
        if (file_ < 0 || ::posix_fallocate(file_, 0, static_cast<::off_t>(bytes)) != 0 ||
            ::io_uring_queue_init(depth, &ring_, IORING_SETUP_COOP_TASKRUN) != 0) {
            std::perror("raw file");
            std::exit(1);
        }
        slots_.resize(depth);
        for (unsigned i = 0; i < depth; ++i) slots_[i].data = memory_.bytes().data() + i * block;
        pass(false);
    }
    ~RawDisk() {
        ::io_uring_queue_exit(&ring_);
        ::close(file_);
    }
    void pass(bool read_first = true) {
        std::uint64_t next = 0;
        std::uint64_t done = 0;
        const auto begin = [&](Slot& slot) {
            if (next == blocks_) return;
            slot.offset = next++ * block_;
            slot.writes = !read_first;
            queue(slot);
        };
        for (Slot& slot : slots_) begin(slot);
        while (done < blocks_) {
            ::io_uring_submit_and_wait(&ring_, 1);
            for (::io_uring_cqe* entry = nullptr; ::io_uring_peek_cqe(&ring_, &entry) == 0;) {
                auto& slot = *static_cast<Slot*>(::io_uring_cqe_get_data(entry));
                if (entry->res != static_cast<int>(block_)) {
                    std::fprintf(stderr, "raw loop: %d\n", entry->res);
                    std::exit(1);
                }
                ::io_uring_cqe_seen(&ring_, entry);
                if (slot.writes) {
                    ++done;
                    begin(slot);
                } else {
                    slot.writes = true;
                    queue(slot);
                }
            }
        }
    }

private:
    struct Slot {
        std::byte* data;
        std::uint64_t offset;
        bool writes;
    };
    void queue(Slot& slot) {
        ::io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
        const auto length = static_cast<unsigned>(block_);
        if (slot.writes) {
            ::io_uring_prep_write(entry, file_, slot.data, length, slot.offset);
        } else {
            ::io_uring_prep_read(entry, file_, slot.data, length, slot.offset);
        }
        ::io_uring_sqe_set_data(entry, &slot);
    }

    std::size_t block_;
    std::uint64_t blocks_;
    strata::offload::HostArena memory_;
    int file_ = -1;
    ::io_uring ring_{};
    std::vector<Slot> slots_;
};
