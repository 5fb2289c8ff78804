#pragma once
// strata/zero/impl/unit_order.ipp - the message before every gathering, and what follows from it.

#include <algorithm>
#include <cstring>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/zero/parts/unit_order.hpp>

namespace strata::zero {

namespace detail {

/// Which of two turns is first: what forward passes need, what is called without gradients, so that ranks that all call that meet
/// in it, and what backward passes need; the first unit first, and the last unit first in backward; a rank that has ended is not
/// waited for.
inline bool comes_before(const UnitTurn& a, const UnitTurn& b) noexcept {
    const bool a_ended = a.unit == UnitTurn::ended, b_ended = b.unit == UnitTurn::ended;
    if (a_ended || b_ended) return !a_ended && b_ended;
    const auto place = [](UnitPhase phase) {
        return phase == UnitPhase::forward ? 0 : phase == UnitPhase::inference ? 1 : 2;
    };
    if (a.phase != b.phase) return place(a.phase) < place(b.phase);
    if (a.unit != b.unit) return (a.phase == UnitPhase::backward) == (a.unit > b.unit);
    return a.flat > b.flat;
}

}  // namespace detail

STRATA_INLINE void UnitOrder::set_buckets(std::size_t buckets) {
    complete_.assign(buckets, 0);
    reduced_.assign(buckets, 0);
}

STRATA_INLINE void UnitOrder::start_anew() {
    set_buckets(complete_.size());
    due_.clear();
}

STRATA_INLINE void UnitOrder::complete_rest() {
    for (std::size_t i = 0; i < complete_.size(); ++i) complete_[i] = reduced_[i] == 0 ? 1 : 0;
}

STRATA_INLINE UnitOrder::Next UnitOrder::next(const UnitTurn& mine, const std::exception_ptr& failure,
                                              const Learned& learned) {
    const Said said{.learned = learned, .turn = mine, .failed = failure ? 1U : 0U};
    const auto world = static_cast<std::size_t>(exchange_.world());
    const std::size_t length = sizeof said + complete_.size();
    said_.resize(length);
    heard_.resize(length * world);
    std::memcpy(said_.data(), &said, sizeof said);
    if (!complete_.empty()) std::memcpy(said_.data() + sizeof said, complete_.data(), complete_.size());
    exchange_.all_gather_bytes(said_, heard_);

    std::vector<Said> all(world);
    std::vector<char> failed(world);
    for (std::size_t rank = 0; rank < world; ++rank) {
        std::memcpy(&all[rank], heard_.data() + rank * length, sizeof said);
        failed[rank] = all[rank].failed != 0 ? 1 : 0;
    }
    throw_failed(failure, failed);
    for (std::size_t bucket = complete_.size(); bucket-- > 0;) {
        bool everywhere = true;
        for (std::size_t rank = 0; rank < world; ++rank)
            everywhere = everywhere && heard_[rank * length + sizeof said + bucket] != std::byte{0};
        if (everywhere) due_.push_back(bucket);
    }

    Next found{.turn = mine};
    bool all_infer = true;
    for (const Said& other : all) {
        found.is_everyones = found.is_everyones && other.turn == mine;
        for (std::size_t i = 0; i < learned.size(); ++i)
            found.learned_the_same[i] = found.learned_the_same[i] && other.learned[i] == learned[i];
        if (detail::comes_before(other.turn, found.turn)) found.turn = other.turn;
        all_infer = all_infer && other.turn.phase == UnitPhase::inference;
    }
    if (!found.is_everyones && all_infer) throw_different(all);
    return found;
}

STRATA_INLINE void UnitOrder::check_all_read(const std::exception_ptr& failure) {
    const char mine = failure ? 1 : 0;
    std::vector<char> failed(static_cast<std::size_t>(exchange_.world()));
    exchange_.all_gather_bytes(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{failed}));
    throw_failed(failure, failed);
}

STRATA_INLINE void UnitOrder::reduce_due() {
    for (std::size_t bucket = complete_.size(); exchange_.alone() && bucket-- > 0;) {
        if (complete_[bucket] != 0) due_.push_back(bucket);
    }
    for (const std::size_t bucket : std::exchange(due_, {})) {
        reduce_(bucket);
        complete_[bucket] = 0;
        reduced_[bucket] = 1;
    }
}

STRATA_INLINE void UnitOrder::throw_failed(const std::exception_ptr& failure, const std::vector<char>& failed) const {
    if (failure) std::rethrow_exception(failure);
    const auto found = std::find(failed.begin(), failed.end(), 1);
    if (found == failed.end()) return;
    throw Error{Errc::io_failed,
                "rank " + std::to_string(found - failed.begin()) + " could not read its shards of the parameters",
                "look for the line of that rank, which names the disk's error"};
}

STRATA_INLINE void UnitOrder::throw_different(const std::vector<Said>& all) const {
    const auto other =
        std::find_if(all.begin(), all.end(), [&](const Said& said) { return said.turn != all.front().turn; });
    const auto name = [&](const Said& said) { return names_[static_cast<std::size_t>(said.turn.unit)]; };
    throw Error{Errc::rank_mismatch,
                "without gradients, rank " + std::to_string(other - all.begin()) + " calls the unit " + name(*other) +
                    " where rank 0 calls the unit " + name(all.front()),
                "call the same units in the same order on every rank where no gradient is recorded"};
}

}  // namespace strata::zero
