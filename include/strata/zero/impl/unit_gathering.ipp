#pragma once
// strata/zero/impl/unit_gathering.ipp - when a unit's memory comes and goes, and what is reduced in between.

#include <algorithm>
#include <span>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <strata/core/error.hpp>
#include <strata/core/fnv1a.hpp>
#include <strata/zero/parts/unit_gathering.hpp>

namespace strata::zero {

STRATA_INLINE UnitGathering::UnitGathering(Exchange& exchange, ShardStore& shards, detail::BufferPool& pool,
                                           const Options& options, Reduce reduce)
    : exchange_{exchange}, shards_{shards}, pool_{pool}, options_{options}, order_{exchange, std::move(reduce)} {}

STRATA_INLINE UnitGathering::~UnitGathering() {
    for (const Unit& unit : units_) {
        if (unit.link && unit.link->hooks == this) unit.link->hooks = nullptr;
    }
}

STRATA_INLINE void UnitGathering::add(std::shared_ptr<UnitLink> link, std::vector<Flat> flats, std::size_t trained) {
    Unit& unit = units_.emplace_back();
    unit.flats = std::move(flats);
    unit.trained = trained;
    forbid_use(unit, true);
    for (const Flat& flat : unit.flats) {
        unit.frozen = unit.frozen || flat.frozen;
        unit.numel += flat.all_B.numel();
        unit.bytes += flat.all_B.numel() * flat.all_B.element_size();
    }
    largest_bytes_ = std::max(largest_bytes_, unit.bytes);
    next_.resize(units_.size() * phases, none);
    link->number = static_cast<std::int32_t>(units_.size()) - 1;
    link->hooks = this;
    order_.add_unit(link->name);
    unit.link = std::move(link);
}

// ---- the engine's side of a pass ------------------------------------------------------------------------------------

STRATA_INLINE void UnitGathering::gradient_arrived(std::int32_t number) {
    Unit& unit = this->unit(number);
    // A parameter's gradient comes after all uses of it, but tells nothing of the uses of frozen ones.
    if (++unit.arrived == unit.trained && !unit.frozen) drop(unit);
}

STRATA_INLINE void UnitGathering::gradient_passed(std::int32_t number) {
    Unit& unit = this->unit(number);
    if (++unit.passed == unit.trained && !unit.frozen) drop(unit);
}

STRATA_INLINE void UnitGathering::end_pass() {
    offered_.clear();
    exchange_.post("units", [this, mine = learned()] {
        order_.complete_rest();
        exchange_.alone() ? order_.reduce_due() : meet_at_the_end(mine);
    });
    start_anew();
    forget(learned_the_same_);
}

STRATA_INLINE void UnitGathering::drop_all() {
    for (Unit& unit : units_) drop(unit);
}

STRATA_INLINE void UnitGathering::hold_only(std::int32_t number) {
    if (abandoned_) start_anew();
    Unit& held = unit(number);
    for (Unit& unit : units_) {
        if (&unit != &held) drop(unit);
    }
    if (!held.whole) gather(held, Phase::inference);
    held.ticket.wait();
}

STRATA_INLINE void UnitGathering::hold_all(bool hold) {
    if (abandoned_) start_anew();
    pinned_ = false;
    if (!hold) return drop_all();
    for (Unit& unit : units_) {
        if (!unit.whole) gather(unit, Phase::inference);
        unit.ticket.wait();
    }
    pinned_ = true;
}

STRATA_INLINE void UnitGathering::reshard(const std::function<bool(const at::Tensor&)>& written) {
    for (const Unit& unit : units_) {
        for (const Flat& flat : unit.flats) {
            if (std::none_of(flat.parameters.begin(), flat.parameters.end(), written)) continue;
            const std::int64_t share = flat.all_B.numel() / exchange_.world();
            shards_.fill(flat.shard, flat.all_B.narrow(0, share * exchange_.rank(), share));
        }
    }
}

// ---- the units' side --------------------------------------------------------------------------------------------------

STRATA_INLINE bool UnitGathering::recomputes(std::int32_t number) const {
    return !options_.recomputed.empty() && options_.recomputed[static_cast<std::size_t>(number)] != 0;
}

STRATA_INLINE void UnitGathering::before_forward(std::int32_t number) {
    fetch(number, at::GradMode::is_enabled() ? Phase::forward : Phase::inference);
}

STRATA_INLINE void UnitGathering::after_forward(std::int32_t number, const std::vector<at::Tensor>& outputs,
                                                std::size_t watched) {
    if (!options_.gathers) return;
    const auto entered = std::make_shared<bool>(false);
    for (const at::Tensor& output : outputs) {
        if (!output.requires_grad()) continue;
        output.register_hook([link = unit(number).link, entered, watched](const at::Tensor&) {
            const bool first = !std::exchange(*entered, true);
            if (link->hooks != nullptr) link->hooks->before_rerun(link->number, first ? watched : 0);
        });
    }
    // What forward ended with is what backward begins with.
    const bool stays = next_[key(number, Phase::forward)] == static_cast<int>(key(number, Phase::backward));
    if (!at::GradMode::is_enabled() || !stays) return drop(unit(number));
    unit(number).stays = true;
}

STRATA_INLINE void UnitGathering::forward_failed(std::int32_t number) noexcept {
    try {
        drop(unit(number));
    } catch (...) {  // the channel failed: forward's own exception says more
    }
}

STRATA_INLINE void UnitGathering::before_rerun(std::int32_t number, std::size_t watched) {
    fetch(number, Phase::backward);
    unit(number).watched += watched;
    unit(number).passed = 0;  // nobody says when another engine's pass begins, or that it left a parameter out
}

STRATA_INLINE void UnitGathering::input_done(std::int32_t number) {
    Unit& unit = this->unit(number);
    if (unit.watched > 0 && --unit.watched == 0) drop(unit);
}

// ---- memory that comes and goes ---------------------------------------------------------------------------------------

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
        if (next.is_everyones) exchange_.all_gather(share, flat.all_B);
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
    exchange_.all_gather(share, is_mine ? flat.all_B
                                        : pool_.empty(flat.all_B.numel(), flat.all_B.scalar_type(),
                                                      MemoryKind::gathered, Place::device));
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
