#pragma once
// strata/zero/impl/unit_gathering.ipp - the engine's side of a pass, and the units'.

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>

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
            if (flat.packed) {
                repack(flat, written);
                continue;
            }
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

}  // namespace strata::zero
