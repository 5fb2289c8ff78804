#pragma once
// strata/zero/impl/unit_gathering.ipp - when a unit's memory comes and goes, and what is reduced in between.

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <strata/core/error.hpp>
#include <strata/zero/parts/unit_gathering.hpp>

namespace strata::zero {

STRATA_INLINE UnitGathering::UnitGathering(Exchange& exchange, ShardStore& shards, detail::BufferPool& pool,
                                           const Options& options, Reduce reduce)
    : exchange_{exchange}, shards_{shards}, pool_{pool}, options_{options}, reduce_{std::move(reduce)} {}

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
    unit.link = std::move(link);
}

STRATA_INLINE void UnitGathering::set_buckets(std::size_t buckets) {
    ready_.assign(buckets, 0);
    reduced_.assign(buckets, 0);
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
    exchange_.post("gradients", [this] {
        for (std::size_t bucket = reduced_.size(); bucket-- > 0;) {
            if (reduced_[bucket] == 0) reduce_(bucket);
        }
    });
    start_anew();
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
    if (!held.whole) gather(held);
    held.ticket.wait();
}

STRATA_INLINE void UnitGathering::hold_all(bool hold) {
    if (abandoned_) start_anew();
    pinned_ = false;
    if (!hold) return drop_all();
    for (Unit& unit : units_) {
        if (!unit.whole) gather(unit);
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

STRATA_INLINE UnitHooks::CallPlan UnitGathering::call_plan(std::int32_t number) const {
    const auto units = static_cast<std::int32_t>(units_.size());
    return {.recomputes = options_.recomputes != nullptr && options_.recomputes(number, units),
            .trains = units_[static_cast<std::size_t>(number)].trained > 0};
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
    if (!at::GradMode::is_enabled() || !stays) drop(unit(number));
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
    ready_.assign(ready_.size(), 0);
    reduced_.assign(reduced_.size(), 0);
    for (Unit& unit : units_) unit.arrived = unit.watched = 0;
    drop_all();
}

STRATA_INLINE void UnitGathering::fetch(std::int32_t number, Phase phase) {
    if (abandoned_) start_anew();
    if (!options_.gathers || pinned_) return;
    const std::size_t now = key(number, phase);
    if (last_ != none) next_[static_cast<std::size_t>(last_)] = static_cast<int>(now);
    last_ = static_cast<int>(now);
    Unit& unit = this->unit(number);
    if (!unit.whole) gather(unit);
    if (unit.ahead) {
        unit.ahead = false;
        ahead_bytes_ -= unit.bytes;
    }
    prefetch(now);
    unit.ticket.wait();
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
            gather(unit);
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

STRATA_INLINE void UnitGathering::gather(Unit& unit) {
    for (const Flat& flat : unit.flats) {
        const std::size_t bytes = static_cast<std::size_t>(flat.all_B.numel() * flat.all_B.element_size());
        detail::give_memory(flat.all_B, pool_.take(bytes, MemoryKind::gathered, Place::device));
    }
    forbid_use(unit, false);
    unit.whole = true;
    live_numel_ += unit.numel;
    unit.ticket = exchange_.post("unit " + std::to_string(&unit - units_.data()),
                                 [this, &unit, offered = std::exchange(offered_, {})] {
                                     for (const std::size_t bucket : offered) ready_[bucket] = 1;
                                     for (const Flat& flat : unit.flats) gather_flat(flat);
                                 });
}

// On the channel's thread, as is what it calls.
STRATA_INLINE void UnitGathering::gather_flat(const Flat& flat) {
    std::exception_ptr failure;
    at::Tensor mine;
    try {
        mine = shards_.open(flat.shard, offload::Access::read);
    } catch (const std::exception&) {
        failure = std::current_exception();
    }
    if (!exchange_.alone()) exchange_readiness(failure);
    if (failure) std::rethrow_exception(failure);
    if (exchange_.alone()) reduce_ready([](std::size_t) { return true; });
    exchange_.all_gather(mine, flat.all_B);
    shards_.close(flat.shard, offload::Access::read);
}

/// Tells all ranks what is ready on this one, and reduces what is ready on all.
STRATA_INLINE void UnitGathering::exchange_readiness(const std::exception_ptr& failure) {
    const std::size_t length = 1 + ready_.size();
    const auto world = static_cast<std::size_t>(exchange_.world());
    const auto said = [](bool yes) { return std::byte{yes ? std::uint8_t{1} : std::uint8_t{0}}; };
    said_.assign(length, std::byte{0});
    said_[0] = said(failure != nullptr);
    for (std::size_t i = 0; i < ready_.size(); ++i) said_[1 + i] = said(ready_[i] != 0);
    heard_.resize(length * world);
    exchange_.all_gather_bytes(said_, heard_);
    for (std::size_t rank = 0; rank < world && !failure; ++rank) {
        if (heard_[rank * length] == std::byte{0}) continue;
        throw Error{Errc::io_failed, "rank " + std::to_string(rank) + " could not read its shards of the parameters",
                    "look for the line of that rank, which names the disk's error"};
    }
    if (failure) return;
    reduce_ready([&](std::size_t bucket) {
        for (std::size_t rank = 0; rank < world; ++rank) {
            if (heard_[rank * length + 1 + bucket] == std::byte{0}) return false;
        }
        return true;
    });
}

STRATA_INLINE void UnitGathering::reduce_ready(const std::function<bool(std::size_t bucket)>& everywhere) {
    for (std::size_t bucket = ready_.size(); bucket-- > 0;) {
        if (ready_[bucket] == 0 || !everywhere(bucket)) continue;
        reduce_(bucket);
        ready_[bucket] = 0;
        reduced_[bucket] = 1;
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
    unit.ahead = false;
}

STRATA_INLINE void UnitGathering::forbid_use(const Unit& unit, bool forbidden) noexcept {
    for (const Flat& flat : unit.flats) {
        for (const at::Tensor& parameter : flat.parameters) detail::forbid_use(parameter, forbidden);
    }
}

}  // namespace strata::zero
