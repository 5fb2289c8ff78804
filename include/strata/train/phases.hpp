#pragma once
// strata/train/phases.hpp - Phases: how far what precedes training has come: listing, examining, caching, preparing.

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::train {

/// How far a phase has come.
struct PhaseNews {
    std::string_view what;
    std::int64_t done = 0;
    std::int64_t total = 0;  ///< 0: not known
    std::optional<double> seconds_left{};
};

/// What Phases works with; a test gives its own.
struct PhasesHooks {
    std::function<void(std::string_view text)> write{};  ///< empty: standard error
    std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
    /// Who else hears of a phase: of its begin, then every two seconds at most, and when all is done; from any thread, one at a time. Does not call back.
    std::function<void(const PhaseNews&)> tell{};
};

/// Shows phases of work that count what is done: the `progress` that data sources and surveys call. Thread-safe.
///
/// A phase begins with its first call. It is shown once it has taken two seconds, with its rate and the time that is left. On a terminal that is one line, drawn
/// again at most ten times a second; elsewhere one line when the phase is shown first, one every thirty seconds, and one at its end.
class Phases {
public:
    using Clock = std::chrono::steady_clock;

    ///   shown  false: it does nothing, but for note(). true on rank 0.
    ///   live   standard error is a terminal
    Phases(bool shown, bool live, PhasesHooks hooks = {});
    Phases(const Phases&) = delete;
    Phases& operator=(const Phases&) = delete;
    /// Ends the last phase.
    ~Phases();

    /// So much of a phase is done. Another `what` than the last time ends that phase and begins one; so does less `done`.
    ///
    ///   what   is done: "pictures examined", "latents"
    ///   total  0: not known
    void operator()(std::string_view what, std::int64_t done, std::int64_t total);
    /// Ends the phase.
    void end();

    /// A line of its own that stays, on every rank that calls it. Control characters in it are shown as escapes.
    void note(std::string_view line);
    /// Takes an open line from the terminal, so that something else can be written there.
    void clear_line();

private:
    void begin(std::string_view what, std::int64_t done);
    void close();
    void tell();
    [[nodiscard]] double rate() const;  ///< a second; 0: not known
    [[nodiscard]] std::optional<double> seconds_left() const;
    void draw(bool is_last);
    [[nodiscard]] std::string text(bool is_last) const;
    void write(std::string_view text) const;

    bool shown_;
    bool live_;
    PhasesHooks hooks_;
    std::mutex mutex_;  // of what follows
    std::string what_;  // empty: no phase
    std::int64_t done_ = 0;
    std::int64_t total_ = 0;
    std::int64_t done_at_first_ = 0;
    Clock::time_point began_{};
    Clock::time_point drawn_{};
    Clock::time_point told_{};
    Clock::time_point now_{};
    bool was_drawn_ = false;
    bool line_is_open_ = false;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/phases.ipp>
#endif
