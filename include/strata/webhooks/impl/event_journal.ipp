#pragma once
// strata/webhooks/impl/event_journal.ipp - lines with check sums, appended, read again, and thrown away.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <strata/core/crc32c.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/webhooks/event_journal.hpp>
#include <strata/webhooks/impl/event.ipp>

namespace strata::webhooks {

namespace detail {

inline constexpr std::string_view journal_begin = "events-", journal_end = ".jsonl";
inline constexpr std::uint64_t compact_bytes = 4ULL << 20U;

inline std::filesystem::path lock_of(const std::filesystem::path& journal) {
    return std::filesystem::path{journal}.replace_extension(".lock");
}

/// "1f2e3d4c {...}\n"
inline std::string journal_line(const std::string& json) {
    std::array<char, 16> sum{};
    std::snprintf(sum.data(), sum.size(), "%08x ", core::crc32c(core::bytes_of(json)));
    return sum.data() + json + "\n";
}

inline std::string journal_json(const QueuedEvent& event) {
    return text_of({{"id", event.id},
                    {"kind", name_of(event.kind)},
                    {"severity", name_of(event.severity)},
                    {"replaces", event.replaces},
                    {"payload", event.payload},
                    {"pictures", event.pictures},
                    {"to", event.to}});
}

}  // namespace detail

STRATA_INLINE EventJournal::EventJournal(std::filesystem::path folder) {
    std::string name{detail::journal_begin};
    name += random_digits();
    name += detail::journal_end;
    file_ = std::move(folder) / name;
}

STRATA_INLINE EventJournal::EventJournal(std::filesystem::path file, core::FileLock lock)
    : file_{std::move(file)}, lock_{std::move(lock)} {
    read();
    begin();
}

STRATA_INLINE EventJournal::~EventJournal() {
    remove_if_done();
    close();
}

STRATA_INLINE void EventJournal::close() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
}

STRATA_INLINE std::vector<std::unique_ptr<EventJournal>> EventJournal::left_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    std::error_code failed;
    for (std::filesystem::directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (name.starts_with(detail::journal_begin) && name.ends_with(detail::journal_end)) files.push_back(at->path());
    }
    std::sort(files.begin(), files.end());
    std::vector<std::unique_ptr<EventJournal>> found;
    for (const std::filesystem::path& file : files) {
        core::FileLock lock;
        if (lock.hold(detail::lock_of(file))) continue;  // its process lives, or nobody can tell
        if (!std::filesystem::exists(file, failed)) {    // somebody was done with it in this moment
            ::unlink(detail::lock_of(file).c_str());
            continue;
        }
        try {
            found.emplace_back(new EventJournal{file, std::move(lock)});
        } catch (const Error&) {  // not readable: it stays as it is
        }
    }
    return found;
}

STRATA_INLINE void EventJournal::read() {
    const std::vector<std::byte> bytes = storage::read_file(file_);
    const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const std::string_view line = text.substr(at, end == std::string_view::npos ? end : end - at);
        at = end == std::string_view::npos ? text.size() : end + 1;
        if (!line.empty()) read_line(line);
    }
}

STRATA_INLINE void EventJournal::read_line(std::string_view line) try {
    const std::string json{line.substr(std::min<std::size_t>(9, line.size()))};
    if (detail::journal_line(json) != std::string{line} + "\n") throw std::invalid_argument{"check sum"};
    const nlohmann::json object = nlohmann::json::parse(json);
    if (object.contains("done")) {
        const auto found = open_.find(object.at("done").get<std::string>());
        if (found == open_.end()) return;
        std::erase(found->second.event.to, object.at("by").get<std::string>());
        if (found->second.event.to.empty()) open_.erase(found);
        return;
    }
    QueuedEvent event{.id = object.at("id"),
                      .replaces = object.at("replaces"),
                      .payload = object.at("payload"),
                      .pictures = object.at("pictures"),
                      .to = object.at("to")};
    const std::string kind = object.at("kind"), severity = object.at("severity");
    for (std::size_t i = 0; i < event_kind_names.size(); ++i)
        if (event_kind_names[i] == kind) event.kind = static_cast<EventKind>(i);
    for (const auto& known : severity_names)
        if (known.name == severity) event.severity = known.value;
    const std::string id = event.id;
    if (!event.to.empty()) open_.insert_or_assign(id, Open{next_++, std::move(event)});
} catch (const std::exception&) {
    ++damaged_;
}

STRATA_INLINE void EventJournal::begin() {
    if (descriptor_ >= 0) return;
    // Another rank that is done with its own removes the folder in the moment in which it is empty: then once more.
    for (int attempt = 0; attempt < 10 && descriptor_ < 0; ++attempt) {
        std::error_code failed;
        std::filesystem::create_directories(file_.parent_path(), failed);
        // Where locks do not work events are still kept; then nobody takes them over (left_in()).
        if (!lock_.is_held()) static_cast<void>(lock_.hold(detail::lock_of(file_)));
        descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (descriptor_ < 0 && errno != ENOENT) break;
    }
    if (descriptor_ < 0) throw storage::detail::file_error(errno, "create", file_);
    const auto end = ::lseek(descriptor_, 0, SEEK_END);
    bytes_ = end < 0 ? 0 : static_cast<std::uint64_t>(end);
    // A line that was torn has no end: the next one must not become a part of it.
    if (bytes_ > 0 && ::write(descriptor_, "\n", 1) == 1) ++bytes_;
}

STRATA_INLINE void EventJournal::write(const std::string& json) {
    begin();
    const std::string line = detail::journal_line(json);
    std::size_t written = 0;
    while (written < line.size()) {
        const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            const int error = count < 0 ? errno : ENOSPC;
            static_cast<void>(::ftruncate(descriptor_, static_cast<off_t>(bytes_)));
            throw storage::detail::file_error(error, "write", file_);
        }
        written += static_cast<std::size_t>(count);
    }
    bytes_ += line.size();
}

STRATA_INLINE void EventJournal::append(const QueuedEvent& event) {
    write(detail::journal_json(event));
    open_.insert_or_assign(event.id, Open{next_++, event});
}

STRATA_INLINE void EventJournal::settle(const std::string& id, const std::string& webhook) {
    const auto found = open_.find(id);
    if (found == open_.end() || std::erase(found->second.event.to, webhook) == 0) return;
    if (found->second.event.to.empty()) open_.erase(found);
    write(detail::text_of({{"done", id}, {"by", webhook}}));
    if (bytes_ > detail::compact_bytes) compact();
}

/// A file of what is open alone takes its place at once.
STRATA_INLINE void EventJournal::compact() {
    storage::AtomicFile file{file_};
    std::uint64_t bytes = 0;
    for (const QueuedEvent& event : open()) {
        const std::string line = detail::journal_line(detail::journal_json(event));
        file.write(core::bytes_of(line));
        bytes += line.size();
    }
    if (2 * bytes > bytes_) return;  // little would be won
    file.publish();
    close();
    begin();
}

STRATA_INLINE std::vector<QueuedEvent> EventJournal::open() const {
    std::vector<const Open*> sorted;
    for (const auto& [id, open] : open_) sorted.push_back(&open);
    std::sort(sorted.begin(), sorted.end(), [](const Open* a, const Open* b) { return a->order < b->order; });
    std::vector<QueuedEvent> events;
    for (const Open* const one : sorted) events.push_back(one->event);
    return events;
}

STRATA_INLINE void EventJournal::sync() {
    if (descriptor_ >= 0 && ::fdatasync(descriptor_) != 0) throw storage::detail::file_error(errno, "sync", file_);
}

STRATA_INLINE void EventJournal::remove_if_done() noexcept {
    if (descriptor_ < 0 || !open_.empty()) return;
    ::unlink(file_.c_str());  // before the lock: who finds a lock without a journal leaves it alone
    if (lock_.is_held()) {
        try {
            ::unlink(detail::lock_of(file_).c_str());
        } catch (const std::exception&) {  // no memory for a name: an empty file stays
        }
    }
    lock_.release();
    close();
    try {
        ::rmdir(file_.parent_path().c_str());  // fails where others are in it
    } catch (const std::exception&) {
    }
}

}  // namespace strata::webhooks
