#pragma once
// strata/zero/impl/unit_gathering_memory.ipp - a unit's memory: gathered ahead and in turn, and given back.

#include <exception>
#include <span>
#include <utility>

#include <strata/core/fnv1a.hpp>
#include <strata/zero/parts/unit_gathering.hpp>

namespace strata::zero {

STRATA_INLINE void UnitGathering::start_anew() {
    exchange_.wait();
    abandoned_ = pinned_ = false;
    offered_.clear();
    order_.start_anew();
    last_ = none;
    for (Unit& unit : units_) unit.arrived = unit.watched = 0;
    drop_all();
}

STRATA_INLINE UnitOrder::Learned UnitGathering::learned() const {
    UnitOrder::Learned hashes{};
    std::vector<int> its_own(next_.size());
    for (std::size_t i = 0; i < hashes.size(); ++i) {
        for (std::size_t k = 0; k < next_.size(); ++k) {
            const bool is = next_[k] != none && static_cast<std::size_t>(phase_of(next_[k])) == i;
            its_own[k] = is ? next_[k] : none;
        }
        const auto bytes = std::as_bytes(std::span{its_own});
        hashes[i] = core::fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    return hashes;
}

/// What ranks have learned differently would let them gather ahead, and keep whole, different units.
///
///   known  by phase: they have learned the same
STRATA_INLINE void UnitGathering::forget(const std::array<bool, phases>& known) {
    for (int& following : next_) {
        if (following != none && !known[static_cast<std::size_t>(phase_of(following))]) following = none;
    }
}

/// Drops units that are whole for later.
STRATA_INLINE void UnitGathering::drop_idle() {
    for (Unit& unit : units_) {
        if (unit.ahead || unit.stays) drop(unit);
    }
}

STRATA_INLINE void UnitGathering::fetch(std::int32_t number, Phase phase) {
    if (abandoned_) start_anew();
    if (!options_.gathers || pinned_) return;
    const std::size_t now = key(number, phase);
    const bool infers = phase == Phase::inference;
    // In passes with gradients ranks may go different ways, and keep different units for later.
    if (infers && (last_ == none || phase_of(last_) != Phase::inference)) drop_idle();
    if (last_ != none) next_[static_cast<std::size_t>(last_)] = static_cast<int>(now);
    last_ = static_cast<int>(now);
    Unit& unit = this->unit(number);
    if (!unit.whole) gather(unit, phase);
    if (unit.ahead) ahead_bytes_ -= unit.bytes;
    unit.ahead = unit.stays = false;
    if (!infers) prefetch(now);
    unit.ticket.wait();
    if (!infers) return;
    unit.in_order ? prefetch(now) : forget({true, true, false});
}

/// Gathers what followed the last time, as far as the bounds go, and lets the disk read what follows that.
STRATA_INLINE void UnitGathering::prefetch(std::size_t from) {
    const std::int64_t limit = options_.prefetch_bytes < 0 ? largest_bytes_ : options_.prefetch_bytes;
    std::size_t reads = shards_.reads_ahead();
    bool gathers = !exchange_.alone();  // alone, a gathering is a copy: only the disk has to begin early
    std::size_t at = from;
    for (std::size_t steps = 0; steps < units_.size() && (gathers || reads > 0); ++steps) {
        const int following = next_[at];
        if (following == none || static_cast<std::size_t>(following) % phases != from % phases) return;
        at = static_cast<std::size_t>(following);
        Unit& unit = units_[at / phases];
        if (unit.whole) continue;
        const bool fits = ahead_bytes_ + unit.bytes <= limit &&
                          (options_.max_live_numel == 0 || live_numel_ + unit.numel <= options_.max_live_numel);
        gathers = gathers && fits;
        if (gathers) {
            gather(unit, phase_of(following));
            unit.ahead = true;
            ahead_bytes_ += unit.bytes;
        } else if (reads >= unit.flats.size()) {
            reads -= unit.flats.size();
            exchange_.post("read ahead", [this, &unit] {
                for (const Flat& flat : unit.flats) shards_.read_ahead(flat.shard, offload::Access::read);
            });
        } else {
            return;
        }
    }
}

STRATA_INLINE void UnitGathering::gather(Unit& unit, Phase phase) {
    for (const Flat& flat : unit.flats) {
        const std::size_t bytes = static_cast<std::size_t>(flat.all_B.numel() * flat.all_B.element_size());
        detail::give_memory(flat.all_B, pool_.take(bytes, MemoryKind::gathered, Place::device));
    }
    forbid_use(unit, false);
    unit.whole = true;
    live_numel_ += unit.numel;
    const auto number = static_cast<std::int32_t>(&unit - units_.data());
    const UnitOrder::Learned mine = phase == Phase::inference ? learned() : UnitOrder::Learned{};
    // All such operations have one name: ranks may meet in them with different units.
    unit.ticket = exchange_.post("units", [this, number, phase, mine, offered = std::exchange(offered_, {})] {
        for (const std::size_t bucket : offered) order_.complete(bucket);
        bool in_order = true;
        for (std::size_t i = 0; i < this->unit(number).flats.size(); ++i)
            in_order = gather_flat({number, phase, static_cast<std::uint16_t>(i)}, mine) && in_order;
        this->unit(number).in_order = in_order;
    });
}

// ---- what follows runs on the channel's thread --------------------------------------------------------------------------

/// This rank's shard, or what opening it threw.
STRATA_INLINE std::pair<at::Tensor, std::exception_ptr> UnitGathering::opened(const Flat& flat) {
    try {
        return {shards_.open(flat.shard, offload::Access::read), nullptr};
    } catch (const std::exception&) {
        return {{}, std::current_exception()};
    }
}

/// Returns whether all ranks gathered it at once, and had learned the same order without gradients.
STRATA_INLINE bool UnitGathering::gather_flat(const UnitTurn& mine, const UnitOrder::Learned& learned) {
    const Flat& flat = flat_of(mine);
    while (true) {
        const auto [share, failure] = opened(flat);
        if (failure && exchange_.alone()) std::rethrow_exception(failure);
        const UnitOrder::Next next = exchange_.alone() ? UnitOrder::Next{mine} : order_.next(mine, failure, learned);
        if (next.is_everyones) fill(flat, share);
        shards_.close(flat.shard, offload::Access::read);
        order_.reduce_due();
        if (!next.is_everyones) take_part(next.turn, next.turn == mine);
        if (next.turn == mine)
            return next.is_everyones && next.learned_the_same[static_cast<std::size_t>(Phase::inference)];
    }
}

/// Gathers what some ranks need and others do not: those have no memory for it, and throw it away.
STRATA_INLINE void UnitGathering::take_part(const UnitTurn& turn, bool is_mine) {
    const Flat& flat = flat_of(turn);
    const auto [share, failure] = opened(flat);
    order_.check_all_read(failure);
    is_mine ? fill(flat, share) : exchange_.all_gather(share, room_for(flat));
    shards_.close(flat.shard, offload::Access::read);
}

STRATA_INLINE void UnitGathering::meet_at_the_end(const UnitOrder::Learned& mine) {
    while (true) {
        const UnitOrder::Next next = order_.next({}, nullptr, mine);
        learned_the_same_ = next.learned_the_same;
        order_.reduce_due();
        if (next.is_everyones) return;
        take_part(next.turn, false);
    }
}

STRATA_INLINE void UnitGathering::drop(Unit& unit) {
    if (!unit.whole || !options_.gathers || pinned_) return;
    unit.ticket.wait();
    for (const Flat& flat : unit.flats) detail::drop_memory(flat.all_B);
    forbid_use(unit, true);
    unit.whole = false;
    live_numel_ -= unit.numel;
    if (unit.ahead) ahead_bytes_ -= unit.bytes;
    unit.ahead = unit.stays = false;
}

STRATA_INLINE void UnitGathering::forbid_use(const Unit& unit, bool forbidden) noexcept {
    for (const Flat& flat : unit.flats) {
        for (const at::Tensor& parameter : flat.parameters) detail::forbid_use(parameter, forbidden);
    }
}

}  // namespace strata::zero
