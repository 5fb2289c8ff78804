#pragma once
// strata/webhooks/impl/courier.ipp - the clerk, who has the disk, and the senders, who have the network.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <iterator>
#include <map>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <strata/core/amounts.hpp>
#include <strata/core/error.hpp>
#include <strata/webhooks/courier.hpp>
#include <strata/webhooks/impl/event_journal.ipp>
#include <strata/webhooks/impl/request.ipp>
#include <strata/webhooks/impl/transport.ipp>

namespace strata::webhooks {

struct Courier::Sender {
    explicit Sender(WebhookOptions one) : options{std::move(one)}, delivery{options}, transport{options} {}
    WebhookOptions options;
    Delivery delivery;  // under the courier's mutex
    Transport transport;
    Verdict trouble = Verdict::delivered;  // of the last line that was said about it
    std::int64_t said_dropped = 0;
    bool busy = false;

    [[nodiscard]] std::string name() const { return "webhook '" + options.name + "' (" + options.server() + ")"; }
};

namespace detail {

/// The thread runs with all signals blocked: they are for the one that trains.
template <class Body>
std::thread quiet_thread(Body&& body) {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::thread thread{std::forward<Body>(body)};
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return thread;
    } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
}

inline std::string dropped_line(const std::string& what, const std::string& fix) {
    return Error{Errc::events_dropped, what, fix}.what();
}

/// For what other processes left.
inline constexpr std::chrono::minutes time_between_looks{1};

inline std::string events_text(std::int64_t count) { return count_text(count, "event", "events"); }

}  // namespace detail

STRATA_INLINE Courier::Courier(std::vector<WebhookOptions> webhooks, std::filesystem::path folder, Origin origin,
                               CourierHooks hooks)
    : folder_{std::move(folder)},
      origin_{std::move(origin)},
      hooks_{std::move(hooks)},
      id_begin_{random_digits() + "-"},
      journal_{folder_ / folder_name} {
    for (WebhookOptions& one : webhooks) senders_.push_back(std::make_unique<Sender>(std::move(one)));
}

STRATA_INLINE Courier::~Courier() { finish(); }

STRATA_INLINE void Courier::start() {
    clerk_ = detail::quiet_thread([this] { run_clerk(); });
    for (const auto& sender : senders_)
        threads_.push_back(detail::quiet_thread([this, at = sender.get()] { run_sender(*at); }));
}

STRATA_INLINE std::string Courier::emit(const Event& event) noexcept try {
    std::vector<std::string> to;
    for (const auto& sender : senders_)
        if (event.severity <= sender->options.log_level) to.push_back(sender->options.name);
    if (to.empty()) return {};
    std::string id;
    {
        const std::lock_guard lock{mutex_};
        if (closing_ || inbox_.events.size() >= most_in_memory) {
            ++lost_in_memory_;
            return {};
        }
        id = id_begin_ + std::to_string(++emitted_);
    }
    QueuedEvent one = queued(event, origin_, id, hooks_.date(), folder_);
    one.to = std::move(to);
    {
        const std::lock_guard lock{mutex_};
        inbox_.events.push_back(std::move(one));
    }
    changed_.notify_all();
    return id;
} catch (const std::exception&) {  // no memory: the run has other worries
    return {};
}

STRATA_INLINE bool Courier::keep(std::chrono::milliseconds within) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, within, [&] {
        return (inbox_.events.empty() && !clerk_busy_) || !clerk_.joinable();
    }) && inbox_.events.empty();
}

STRATA_INLINE Courier::Counts Courier::counts() const {
    const std::lock_guard lock{mutex_};
    Counts counts{.dropped = lost_in_memory_};
    for (const auto& sender : senders_) {
        counts.waiting += sender->delivery.waiting();
        counts.delivered += sender->delivery.delivered();
        counts.dropped += sender->delivery.dropped();
        counts.refused += sender->delivery.refused();
    }
    return counts;
}

STRATA_INLINE void Courier::say(const std::string& line) const {
    if (hooks_.say) hooks_.say(line);
}

// ---- the clerk ---------------------------------------------------------------------------------------------------------

/// What other processes left and a webhook of now still waits for.
STRATA_INLINE void Courier::take_over(std::vector<QueuedEvent>& found) {
    auto left = EventJournal::left_in(folder_ / folder_name);
    std::map<std::string, std::int64_t> nobodys;
    std::int64_t damaged = 0;
    for (const auto& journal : left) {
        damaged += journal->damaged_lines();
        for (QueuedEvent& event : journal->open()) {
            for (const std::string& name : std::vector<std::string>{event.to}) {
                const bool is_known = std::any_of(senders_.begin(), senders_.end(),
                                                  [&](const auto& sender) { return sender->options.name == name; });
                if (is_known) continue;
                ++nobodys[name];
                std::erase(event.to, name);
                journal->settle(event.id, name);
            }
            if (!event.to.empty()) found.push_back(std::move(event));
        }
    }
    std::move(left.begin(), left.end(), std::back_inserter(taken_over_));
    for (const auto& [name, count] : nobodys)
        say(detail::dropped_line(
            detail::events_text(count) + " of an earlier run dropped: no webhook is called '" + name + "' any more",
            "give a webhook this name again before the next one is changed"));
    if (damaged > 0)
        say(detail::dropped_line(detail::count_text(damaged, "line", "lines") + " of the queue of webhooks left out: " +
                                     (damaged == 1 ? "it was" : "they were") + " torn when an earlier run ended",
                                 "look into metrics.jsonl for what happened then"));
    if (!found.empty())
        say(detail::events_text(static_cast<std::int64_t>(found.size())) + " of an earlier run are delivered now");
}

/// One round of the clerk's. False: nothing was to be done.
STRATA_INLINE bool Courier::write_down() {
    Inbox inbox;
    bool looks = false;
    {
        const std::lock_guard lock{mutex_};
        // Again and again: a process of the run before may still be dying when this one begins, and this one's end may be far away.
        looks = hooks_.now() >= next_look_ || (closing_ && !has_looked_last_);
        has_looked_last_ = has_looked_last_ || closing_;
        inbox = std::exchange(inbox_, {});
        if (inbox.empty() && !looks) return false;
        clerk_busy_ = true;
    }
    std::vector<QueuedEvent> events;
    try {
        if (looks) {
            next_look_ = hooks_.now() + detail::time_between_looks;
            take_over(events);
        }
        write(inbox);
        disk_fails_ = false;
    } catch (const Error& error) {
        if (!std::exchange(disk_fails_, true))
            say("events of webhooks are not on disk, and are lost if this process ends before it can send them: " +
                std::string{error.what()});
    }
    std::move(inbox.events.begin(), inbox.events.end(), std::back_inserter(events));
    hand_out(std::move(events));
    changed_.notify_all();
    return true;
}

STRATA_INLINE void Courier::write(const Inbox& inbox) {
    std::exception_ptr failure;
    const auto attempt = [&](auto&& body) {
        try {
            body();
        } catch (const Error&) {
            failure = std::current_exception();  // the others may fit
        }
    };
    bool durable = false;
    for (const QueuedEvent& event : inbox.events) {
        attempt([&] { journal_.append(event); });
        durable |= event.replaces.empty();
    }
    if (durable) attempt([&] { journal_.sync(); });
    for (const QueuedEvent& event : inbox.refused)
        attempt([&] {
            const std::filesystem::path file = folder_ / folder_name / refused_name;
            const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
            const std::string line = event.payload + "\n";
            const bool is_written =
                descriptor >= 0 && ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
            const int error = errno;
            if (descriptor >= 0) ::close(descriptor);
            if (!is_written) throw storage::detail::file_error(error, "write", file);
        });
    for (const auto& one : inbox.settled)
        attempt([&, &id = one.first, &webhook = one.second] {
            if (journal_.has(id)) return journal_.settle(id, webhook);
            for (const auto& journal : taken_over_)
                if (journal->has(id)) return journal->settle(id, webhook);
        });
    std::erase_if(taken_over_, [](const auto& journal) { return journal->open().empty(); });
    if (failure) std::rethrow_exception(failure);
}

/// To those who send.
STRATA_INLINE void Courier::hand_out(std::vector<QueuedEvent> events) {
    std::vector<std::string> lines;
    {
        const std::lock_guard lock{mutex_};
        clerk_busy_ = false;
        for (QueuedEvent& event : events) {
            const auto shared = std::make_shared<const QueuedEvent>(std::move(event));
            for (const auto& sender : senders_) {
                const auto& to = shared->to;
                if (std::find(to.begin(), to.end(), sender->options.name) == to.end()) continue;
                for (std::string& id : sender->delivery.add(shared))
                    inbox_.settled.emplace_back(std::move(id), sender->options.name);
            }
        }
        for (const auto& sender : senders_) {
            const std::int64_t dropped = sender->delivery.dropped();
            if (dropped > 0 && sender->said_dropped == 0)
                lines.push_back(detail::dropped_line(
                    sender->name() + ": more than " + std::to_string(sender->options.most_waiting) +
                        " events wait, and those that matter least are dropped from now on, and counted",
                    "raise most_waiting, or the intervals of events"));
            sender->said_dropped = dropped;
        }
    }
    for (const std::string& line : lines) say(line);
}

STRATA_INLINE void Courier::run_clerk() {
    while (true) {
        while (write_down()) {
        }
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return !inbox_.empty() || stopping_ || (closing_ && !has_looked_last_); });
        if (stopping_ && inbox_.empty()) return;
    }
}

// ---- the senders -------------------------------------------------------------------------------------------------------

STRATA_INLINE bool Courier::send(Sender& sender, bool closing) {
    std::vector<Delivery::Waiting> batch;
    std::int64_t dropped = 0;
    {
        const std::lock_guard lock{mutex_};
        batch = sender.delivery.next(hooks_.now(), closing);
        if (batch.empty()) return false;
        dropped = sender.delivery.untold();
        sender.busy = true;
    }
    Judgement judgement{Verdict::later, {}, "could not be asked"};
    try {
        const Request request = make_request(sender.options, batch, origin_.run, folder_, dropped, hooks_.date());
        judgement = judge(sender.transport.post(request), hooks_.date());
    } catch (const std::exception& error) {  // no memory, no descriptors
        judgement.why = "could not be asked (" + sender.transport.masked(error.what()) + ")";
    }
    std::vector<std::string> lines;
    {
        const std::lock_guard lock{mutex_};
        sender.busy = false;
        if (!stopping_ || judgement.verdict == Verdict::delivered) tell(sender, judgement, lines);
        for (std::string& id : sender.delivery.answered(judgement, hooks_.now(), hooks_.jitter())) {
            if (judgement.verdict != Verdict::delivered)
                for (const Delivery::Waiting& one : batch)
                    if (one.event->id == id) inbox_.refused.push_back(*one.event);
            inbox_.settled.emplace_back(std::move(id), sender.options.name);
        }
    }
    changed_.notify_all();
    for (const std::string& line : lines) say(line);
    return true;
}

/// A line when trouble begins, when it is of another kind, and when it is over.
STRATA_INLINE void Courier::tell(Sender& sender, const Judgement& judgement, std::vector<std::string>& lines) {
    const Verdict before = sender.trouble;
    switch (judgement.verdict) {
        case Verdict::delivered:
            sender.trouble = Verdict::delivered;
            if (before != Verdict::delivered && before != Verdict::bad_event)
                lines.push_back(sender.name() + " takes events again");
            return;
        case Verdict::bad_event:
            sender.trouble = before == Verdict::bad_event ? before : Verdict::bad_event;
            if (before != Verdict::bad_event)
                lines.push_back(Error{Errc::webhook_failed, sender.name() + " " + judgement.why + " to an event",
                                      "look at what it does not take even alone and without pictures in " +
                                          (folder_ / folder_name / refused_name).string()}
                                    .what());
            return;
        case Verdict::later:
            if (before == judgement.verdict) return;
            lines.push_back(sender.name() + " " + judgement.why + "; events wait, and are sent when it does again");
            break;
        case Verdict::refused:
            if (before == judgement.verdict) return;
            lines.push_back(Error{Errc::webhook_failed, sender.name() + " " + judgement.why + "; events wait",
                                  "correct its address, its auth_token or its ca_file and start the run again"}
                                .what());
            break;
        case Verdict::forbidden:
            if (before == judgement.verdict) return;
            lines.push_back(Error{Errc::webhook_forbidden, sender.name() + " " + judgement.why + "; events wait",
                                  "correct its address, or set allow_private_addresses or allow_redirects to true"}
                                .what());
            break;
    }
    sender.trouble = judgement.verdict;
}

STRATA_INLINE void Courier::run_sender(Sender& sender) {
    while (true) {
        bool closing = false;
        {
            std::unique_lock lock{mutex_};
            while (!stopping_) {
                const auto due = sender.delivery.due(closing_);
                if (due && *due <= hooks_.now()) break;
                const bool was_closing = closing_;
                const auto changed = [&] {
                    return stopping_ || closing_ != was_closing || sender.delivery.due(closing_) != due;
                };
                if (due)
                    changed_.wait_until(lock, *due, changed);
                else
                    changed_.wait(lock, changed);
            }
            if (stopping_) return;
            closing = closing_;
        }
        send(sender, closing);
    }
}

// ---- the end -----------------------------------------------------------------------------------------------------------

/// Nothing can be sent any more before the longest closing_seconds are over. Under the mutex.
STRATA_INLINE bool Courier::is_idle() const {
    return inbox_.empty() && !clerk_busy_ && has_looked_last_ &&
           std::none_of(senders_.begin(), senders_.end(),
                        [](const auto& sender) { return sender->busy || sender->delivery.waiting() > 0; });
}

STRATA_INLINE void Courier::wait_for_end() {
    std::unique_lock lock{mutex_};
    const Delivery::Time begin = hooks_.now();
    const auto deadline_of = [&](const Sender& sender) {
        return begin + detail::milliseconds_of(sender.options.closing_seconds);
    };
    while (!is_idle()) {
        const Delivery::Time now = hooks_.now();
        bool more = !inbox_.empty() || clerk_busy_ || !has_looked_last_;
        Delivery::Time latest = begin + std::chrono::seconds{1};  // for the disk alone
        for (const auto& sender : senders_) {
            const Delivery::Time deadline = deadline_of(*sender);
            const auto due = sender->delivery.due(true);
            const bool can = now < deadline && (sender->busy || (due && *due < deadline));
            if (can) latest = std::max(latest, deadline);
            more |= can;
        }
        if (!more || now >= latest) return;
        changed_.wait_until(lock, latest);
    }
}

STRATA_INLINE void Courier::finish() noexcept try {
    {
        const std::lock_guard lock{mutex_};
        if (std::exchange(finished_, true)) return;
        closing_ = true;
    }
    changed_.notify_all();
    if (clerk_.joinable()) {
        wait_for_end();
        {
            const std::lock_guard lock{mutex_};
            stopping_ = true;
        }
        for (const auto& sender : senders_) sender->transport.interrupt();
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        changed_.notify_all();
        clerk_.join();
    }
    while (write_down()) {
    }
    for (const auto& sender : senders_) {
        const Delivery& delivery = sender->delivery;
        if (delivery.waiting() > 0)
            say(sender->name() + ": " + detail::events_text(static_cast<std::int64_t>(delivery.waiting())) +
                " wait in " + (folder_ / folder_name).string() + "; the next run in this folder delivers them");
        if (delivery.dropped() > 0)
            say(detail::dropped_line(sender->name() + ": " + detail::events_text(delivery.dropped()) +
                                         " dropped in this run, because more than " +
                                         std::to_string(sender->options.most_waiting) + " waited",
                                     "raise most_waiting, or the intervals of events"));
        if (delivery.refused() > 0)
            say(Error{Errc::webhook_failed, sender->name() + " did not take " + detail::events_text(delivery.refused()),
                      "look into " + (folder_ / folder_name / refused_name).string()}
                    .what());
    }
    if (lost_in_memory_ > 0)
        say(detail::dropped_line(detail::events_text(lost_in_memory_) + " dropped: the disk did not take them in time",
                                 "look at the disk of " + folder_.string()));
    taken_over_.clear();
    journal_.remove_if_done();
} catch (const std::exception&) {  // no memory for a line
}

STRATA_INLINE bool Courier::turn(bool closing) {
    bool any = write_down();
    for (const auto& sender : senders_) any |= send(*sender, closing);
    while (write_down()) any = true;
    return any;
}

STRATA_INLINE std::optional<Delivery::Time> Courier::due() const {
    const std::lock_guard lock{mutex_};
    std::optional<Delivery::Time> first;
    for (const auto& sender : senders_)
        if (const auto due = sender->delivery.due(closing_); due && (!first || *due < *first)) first = due;
    return first;
}

}  // namespace strata::webhooks
