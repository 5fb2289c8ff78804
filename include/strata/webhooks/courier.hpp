#pragma once
// strata/webhooks/courier.hpp - Courier: takes a rank's events without making it wait, keeps them on disk, and delivers them.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/http/retry.hpp>
#include <strata/webhooks/delivery.hpp>
#include <strata/webhooks/event.hpp>
#include <strata/webhooks/event_journal.hpp>
#include <strata/webhooks/transport.hpp>

namespace strata::webhooks {

/// Where the times and the luck of a courier come from, and where its lines go.
struct CourierHooks {
    std::function<Delivery::Time()> now = [] { return std::chrono::steady_clock::now(); };
    std::function<std::chrono::system_clock::time_point()> date = [] { return std::chrono::system_clock::now(); };
    std::function<double()> jitter = [] { return http::jitter(); };
    std::function<void(const std::string&)> say{};  ///< one line, from any thread; empty: nothing is said
};

/// One rank's. Thread-safe.
///
/// emit() puts an event into memory and returns. A thread, the clerk, writes it down (EventJournal) at once and hands it to those
/// that send, one for each webhook; so neither a disk nor a server is waited for, and no server for another. Every event is
/// delivered at least once, and again where an answer was lost, with the same id; what is not delivered when a process ends, however it
/// does, the next one delivers that works in the same folder. Dropped is what most_waiting has no room for, and said with a count.
class Courier {
public:
    static constexpr std::string_view folder_name = "webhooks";  ///< below the run's folder
    static constexpr std::string_view refused_name = "refused.jsonl";
    static constexpr std::size_t most_in_memory = 10'000;  ///< events that a disk that hangs has not taken yet

    ///   webhooks  one at least
    ///   folder    of the run: the queue is in `webhooks` below it, and pictures are mostly
    /// Touches neither disk nor network.
    Courier(std::vector<WebhookOptions> webhooks, std::filesystem::path folder, Origin origin, CourierHooks hooks = {});
    Courier(const Courier&) = delete;
    Courier& operator=(const Courier&) = delete;
    ~Courier();  ///< finish()

    /// Starts the threads, the first thing of which is to take over what earlier processes left. Once.
    void start();

    /// Takes an event. Waits for nothing but a lock that is held for microseconds. Returns its id; empty: no webhook wants it, or it
    /// was dropped.
    std::string emit(const Event& event) noexcept;

    /// Waits until all events by now are on disk. False: not within this time.
    bool keep(std::chrono::milliseconds within);

    /// Sends what waits as long as closing_seconds and a server's own wishes let it, ends the threads, and says what is left for the
    /// next run. Later events are not taken. Does nothing the second time.
    void finish() noexcept;

    struct Counts {
        std::size_t waiting = 0;  ///< over all webhooks, those counts
        std::int64_t delivered = 0, dropped = 0, refused = 0;
    };
    [[nodiscard]] Counts counts() const;

    // ---- without threads: tests and tools --------------------------------------------------------------------------------

    /// What the threads would do now, once, by the calling thread. False: there was nothing to do.
    bool turn(bool closing = false);
    /// When there is more to do; nothing: when there is another event.
    [[nodiscard]] std::optional<Delivery::Time> due() const;

private:
    struct Sender;
    struct Inbox {
        std::vector<QueuedEvent> events;
        std::vector<std::pair<std::string, std::string>> settled;  // ids and webhooks
        std::vector<QueuedEvent> refused;
        [[nodiscard]] bool empty() const noexcept { return events.empty() && settled.empty() && refused.empty(); }
    };

    void take_over(std::vector<QueuedEvent>& found);
    bool write_down();
    void write(const Inbox& inbox);
    void hand_out(std::vector<QueuedEvent> events);
    bool send(Sender& sender, bool closing);
    void tell(Sender& sender, const Judgement& judgement, std::vector<std::string>& lines);
    void run_clerk();
    void run_sender(Sender& sender);
    void wait_for_end();
    void say(const std::string& line) const;
    [[nodiscard]] bool is_idle() const;

    std::filesystem::path folder_;
    Origin origin_;
    CourierHooks hooks_;
    std::string id_begin_;

    // The clerk's alone.
    EventJournal journal_;
    std::vector<std::unique_ptr<EventJournal>> taken_over_;
    Delivery::Time next_look_{};
    bool disk_fails_ = false;

    mutable std::mutex mutex_;  // of what follows, and of the senders' deliveries
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Sender>> senders_;
    Inbox inbox_;
    std::uint64_t emitted_ = 0, kept_ = 0;
    std::int64_t lost_in_memory_ = 0;
    bool clerk_busy_ = false, closing_ = false, stopping_ = false, finished_ = false;
    bool has_looked_last_ = false;
    std::vector<std::thread> threads_;
    std::thread clerk_;
};

}  // namespace strata::webhooks

#ifndef STRATA_COMPILED
#include <strata/webhooks/impl/courier.ipp>
#endif
