#pragma once
// strata/comm/impl/collective_log.ipp - numbering, remembering, and saying who is missing.

#include <algorithm>
#include <cstdio>

#include <strata/comm/collective_log.hpp>

namespace strata::comm {

namespace detail {

/// Copies what fits and always ends with a zero; the rest is zero, so that records compare byte by byte.
template <std::size_t N>
void set_text(std::array<char, N>& to, std::string_view text) noexcept {
    to.fill('\0');
    std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}

inline std::string seconds(std::int64_t milliseconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(milliseconds) / 1000.0);
    return text.data();
}

/// "reduce_scatter of 4096 bytes, 'gradients 3'"
inline std::string operation(const CollectiveRecord& record) {
    std::string text = record.op.data();
    if (record.bytes > 0) text += " of " + std::to_string(record.bytes) + " bytes";
    if (record.label[0] != '\0') text += std::string{", '"} + record.label.data() + "'";
    return text;
}

/// Where a rank is that is not in collective `mine`; empty when it is.
inline std::string whereabouts(const PeerState& peer, const CollectiveRecord& mine) {
    const std::string who = "rank " + std::to_string(peer.rank);
    if (!peer.answered) return who + " does not answer";
    if (has_arrived(peer, mine)) return "";
    if (peer.same.number != 0)
        return who + " called collective " + std::to_string(mine.number) + " as " + operation(peer.same);
    if (peer.latest.number == 0) return who + " did not arrive, it has not been in any collective yet";
    return who + " did not arrive, " +
           (peer.latest.running != 0
                ? "it has been in " + to_string(peer.latest) + " for " + seconds(peer.latest.milliseconds)
                : "its last one was " + to_string(peer.latest) + ", done " + seconds(peer.latest.milliseconds) +
                      " ago");
}

}  // namespace detail

STRATA_INLINE bool same_operation(const CollectiveRecord& a, const CollectiveRecord& b) noexcept {
    return a.op == b.op && a.bytes == b.bytes && a.label == b.label;
}

STRATA_INLINE std::string to_string(const CollectiveRecord& record) {
    return "collective " + std::to_string(record.number) + " (" + detail::operation(record) + ")";
}

STRATA_INLINE CollectiveLog::Running CollectiveLog::begin(std::string_view op, std::uint64_t bytes) {
    const std::lock_guard lock{mutex_};
    const CollectiveRecord& last = entries_[number_ % entries_.size()].record;
    if (last.running != 0)
        throw Error{
            Errc::comm_busy, "a thread calls " + std::string{op} + " while another thread is inside " + to_string(last),
            "let one thread at a time use the communicator: post to its comm::Channel, or wait for what was posted"};
    ++number_;
    Entry& entry = entries_[number_ % entries_.size()];
    entry.record = {.number = number_, .bytes = bytes, .milliseconds = 0, .running = 1, .op = {}, .label = label_};
    detail::set_text(entry.record.op, op);
    entry.since = Clock::now();
    return Running{*this, entry.record};
}

STRATA_INLINE void CollectiveLog::end() noexcept {
    const std::lock_guard lock{mutex_};
    Entry& entry = entries_[number_ % entries_.size()];
    entry.record.running = 0;
    entry.since = Clock::now();
}

STRATA_INLINE void CollectiveLog::label(std::string_view text) {
    const std::lock_guard lock{mutex_};
    detail::set_text(label_, text);
}

STRATA_INLINE CollectiveRecord CollectiveLog::aged(const Entry& entry) {
    CollectiveRecord record = entry.record;
    record.milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - entry.since).count();
    return record;
}

STRATA_INLINE CollectiveRecord CollectiveLog::latest() const {
    const std::lock_guard lock{mutex_};
    return number_ == 0 ? CollectiveRecord{} : aged(entries_[number_ % entries_.size()]);
}

STRATA_INLINE CollectiveRecord CollectiveLog::numbered(std::uint64_t number) const {
    const std::lock_guard lock{mutex_};
    const Entry& entry = entries_[number % entries_.size()];
    return number == 0 || entry.record.number != number ? CollectiveRecord{} : aged(entry);
}

STRATA_INLINE bool has_arrived(const PeerState& peer, const CollectiveRecord& mine) noexcept {
    if (!peer.answered) return false;
    if (peer.same.number == mine.number) return same_operation(peer.same, mine);
    return peer.latest.number > mine.number;  // so far ahead that it has forgotten this one
}

STRATA_INLINE Error explain_stall(const CollectiveRecord& mine, std::span<const PeerState> peers) {
    std::string missing;
    bool mismatch = false;
    for (const PeerState& peer : peers) {
        const std::string where = detail::whereabouts(peer, mine);
        if (where.empty()) continue;
        missing += (missing.empty() ? ": " : "; ") + where;
        mismatch = mismatch || (peer.answered && peer.same.number == mine.number);
    }
    const std::string waits = to_string(mine) + " has not ended after " + detail::seconds(mine.milliseconds);
    if (mismatch)
        return Error{Errc::rank_mismatch, waits + missing,
                     "let every rank call the same collectives in the same order"};
    if (!missing.empty())
        return Error{Errc::collective_timeout, waits + missing,
                     "find out what the named ranks do instead, or raise collective_timeout if they only need longer"};
    if (peers.empty())
        return Error{
            Errc::collective_timeout,
            waits + "; which ranks are missing is unknown, because MPI was started without MPI_THREAD_MULTIPLE",
            "start MPI with MPI_THREAD_MULTIPLE, so that the ranks can be asked"};
    return Error{Errc::collective_timeout, waits + ", although all ranks take part in it",
                 "check the network between the hosts, or raise collective_timeout if it only needs longer"};
}

STRATA_INLINE void throw_mismatch(int rank, const CollectiveRecord& mine, int other, const CollectiveRecord& theirs) {
    throw Error{Errc::rank_mismatch,
                "rank " + std::to_string(rank) + " is in " + to_string(mine) + ", rank " + std::to_string(other) +
                    " in " + to_string(theirs),
                "let every rank call the same collectives in the same order"};
}

STRATA_INLINE void throw_interrupted(const CollectiveRecord& mine) {
    throw Error{Errc::rank_failed,
                mine.number == 0 ? "the communicator was interrupted"
                                 : to_string(mine) + " was given up, because this rank failed",
                "look for the first error line of this rank"};
}

}  // namespace strata::comm
