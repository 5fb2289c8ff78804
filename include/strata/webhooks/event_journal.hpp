#pragma once
// strata/webhooks/event_journal.hpp - EventJournal: the events of one process on disk, until they are delivered.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/file_lock.hpp>
#include <strata/core/inline.hpp>
#include <strata/webhooks/event.hpp>

namespace strata::webhooks {

/// A file that is only appended to: a line for each event, and one for each webhook that is done with it. Lines have a check
/// sum, so that one that was torn by a power loss is known, and those before and behind it count. What is appended survives the
/// process at once, and a power loss from sync() on.
///
/// Beside it lies a file that its process keeps locked: a journal that nobody locks is one of a process that has ended, and the next that
/// comes takes it over. Not thread-safe.
class EventJournal {
public:
    /// A new one; its files appear with the first event.
    explicit EventJournal(std::filesystem::path folder);
    EventJournal(const EventJournal&) = delete;
    EventJournal& operator=(const EventJournal&) = delete;
    ~EventJournal();

    /// Those in a folder that nobody has any more, now this process's. One that cannot be read is left alone.
    [[nodiscard]] static std::vector<std::unique_ptr<EventJournal>> left_in(const std::filesystem::path& folder);

    /// Throws Errc::io_failed, no_space; the file is as before then.
    void append(const QueuedEvent& event);
    /// A webhook is done with an event. No error if the journal does not have it. Throws as append() does.
    void settle(const std::string& id, const std::string& webhook);
    [[nodiscard]] bool has(const std::string& id) const { return open_.contains(id); }
    /// Events that a webhook waits for, oldest first.
    [[nodiscard]] std::vector<QueuedEvent> open() const;
    /// Of the lines that an earlier process wrote those that cannot be read.
    [[nodiscard]] std::int64_t damaged_lines() const noexcept { return damaged_; }
    /// Throws Errc::io_failed.
    void sync();
    /// Removes the files if no webhook waits for any of its events, and the folder if it is empty then.
    void remove_if_done() noexcept;
    [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }

private:
    EventJournal(std::filesystem::path file, core::FileLock lock);
    void begin();
    void read();
    void read_line(std::string_view line);
    void close() noexcept;
    void write(const std::string& json);
    void compact();

    std::filesystem::path file_;
    core::FileLock lock_;
    int descriptor_ = -1;
    std::uint64_t bytes_ = 0;
    std::uint64_t next_ = 0;
    std::int64_t damaged_ = 0;
    struct Open {
        std::uint64_t order;
        QueuedEvent event;
    };
    std::map<std::string, Open, std::less<>> open_;  // by id
};

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/event_journal.ipp>
#endif
