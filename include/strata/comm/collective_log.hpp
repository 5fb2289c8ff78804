#pragma once
// strata/comm/collective_log.hpp - CollectiveLog: numbered collectives, and the sentence about who is missing.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <strata/comm/wait_listener.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

/// One collective as one rank sees it. Plain bytes: ranks show it to each other.
struct CollectiveRecord {
    std::uint64_t number = 0;       ///< 1, 2, ... in the order of the calls on this rank; 0: none
    std::uint64_t bytes = 0;        ///< the size all ranks must agree on; 0 where each brings its own
    std::int64_t milliseconds = 0;  ///< since it began while it runs, since it ended afterwards
    std::uint32_t running = 0;      ///< 1 while the rank is inside
    std::array<char, 20> op{};      ///< "reduce_scatter"; ends with a zero, like `label`
    std::array<char, 40> label{};   ///< what the program calls it; cut to 39 bytes
};

/// True when two ranks that meet in these collectives mean the same: operation, size and label.
[[nodiscard]] bool same_operation(const CollectiveRecord& a, const CollectiveRecord& b) noexcept;

/// "collective 17 (reduce_scatter of 4096 bytes, 'gradients 3')"
[[nodiscard]] std::string to_string(const CollectiveRecord& record);

/// Numbers the collectives of one communicator and remembers the last ones. Local; costs about 0.1 us a collective.
///
/// Any thread may read; what begins and ends collectives is the one thread that is inside the communicator.
class CollectiveLog {
public:
    /// Ends the collective when it leaves the scope, by an exception too.
    class Running {
    public:
        explicit Running(CollectiveLog& log, const CollectiveRecord& record) : log_{log}, record_{record} {}
        ~Running() { log_.end(); }
        Running(const Running&) = delete;
        Running& operator=(const Running&) = delete;
        [[nodiscard]] const CollectiveRecord& record() const noexcept { return record_; }

    private:
        CollectiveLog& log_;
        CollectiveRecord record_;
        InCollective stands_;
    };

    /// The next collective begins. Throws comm_busy while another one runs: two threads inside one communicator
    /// would mix their messages.
    [[nodiscard]] Running begin(std::string_view op, std::uint64_t bytes);

    /// A name for the collectives that follow, until the next call; empty for none.
    void label(std::string_view text);

    /// The collective that runs, else the last one.
    [[nodiscard]] CollectiveRecord latest() const;

    /// What this rank did as collective `number`; number 0 in the answer when it is not among the last 16.
    [[nodiscard]] CollectiveRecord numbered(std::uint64_t number) const;

private:
    using Clock = std::chrono::steady_clock;
    struct Entry {
        CollectiveRecord record;
        Clock::time_point since;
    };
    void end() noexcept;
    [[nodiscard]] static CollectiveRecord aged(const Entry& entry);

    mutable std::mutex mutex_;
    std::array<Entry, 16> entries_{};  // collective n is entry n mod 16
    std::uint64_t number_ = 0;
    std::array<char, 40> label_{};
};

/// What another rank said when asked about a collective.
struct PeerState {
    int rank = 0;
    bool answered = false;
    CollectiveRecord same;    ///< what it did under the number it was asked for, if it remembers
    CollectiveRecord latest;  ///< what it does now, or did last
};

/// True when the peer takes part in the same collective, or has done so.
[[nodiscard]] bool has_arrived(const PeerState& peer, const CollectiveRecord& mine) noexcept;

/// The sentence of the watchdog: in which collective this rank waits, and for each rank that is not in it, where
/// that rank is instead.
///
///   mine     the collective that runs here
///   peers    all other ranks; none when nobody could be asked
///   returns  rank_mismatch when a rank does something else under the same number, else collective_timeout
[[nodiscard]] Error explain_stall(const CollectiveRecord& mine, std::span<const PeerState> peers);

/// Throws rank_mismatch: two ranks met in one collective and mean different things.
[[noreturn]] void throw_mismatch(int rank, const CollectiveRecord& mine, int other, const CollectiveRecord& theirs);

/// Throws rank_failed: the collective was interrupted on this rank before the others arrived, or an earlier one was.
[[noreturn]] void throw_interrupted(const CollectiveRecord& mine);

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/collective_log.ipp>
#endif
