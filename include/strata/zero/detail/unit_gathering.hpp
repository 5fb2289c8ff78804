#pragma once
// strata/zero/detail/unit_gathering.hpp - UnitGathering: units are whole while they compute, and shards otherwise.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/core/error.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/unit.hpp>

namespace strata::zero::detail {

/// What UnitGathering may be told.
struct GatheringOptions {
    bool gathers = false;      ///< parameters of units are sharded; otherwise they are always there
    bool recomputes = false;   ///< Recompute<Blocks>
    std::int64_t prefetch_bytes = -1;   ///< gathered ahead of their use at most; -1: the largest unit
    std::int64_t max_live_numel = 0;    ///< elements of units that are whole at once, as far as prefetch goes; 0: any
};

/// The keeper of a model's units under ZeroStage<3> and under Recompute<Blocks>.
///
/// A unit is gathered just before its forward and again when backward reaches its outputs, and dropped after either:
/// the memory behind its tensors is taken away and given back, as PyTorch's FSDP does (Zhao et al. 2023,
/// arXiv:2304.11277, section 4), so that graphs keep their tensors. What came after a unit the last time is gathered
/// while it computes.
///
/// Gradient buckets are reduced between gatherings. Which ones are ready may differ between ranks, when a rank's
/// batch leaves a parameter unused; every gathering therefore begins with one message in which ranks say which buckets
/// are ready and whether reading their shards failed, and reduces those that are ready everywhere. So all ranks do the
/// same operations in one order, and a disk that fails on one rank fails the pass on all.
///
///   Shards    satisfies TierShards
///   Exchange  detail::Exchange of the engine; Channel its detail::DeviceChannel
template <class Shards, class Exchange, class Channel>
class UnitGathering final : public UnitKeeper {
public:
    /// A tensor that is whole or without memory, and the number of this rank's shard of it.
    struct Flat {
        at::Tensor all_B;
        std::size_t shard = 0;
        std::vector<at::Tensor> parameters{};  ///< views of all_B
        bool frozen = false;
    };
    using Reduce = std::function<void(std::size_t bucket)>;

    /// reduce  called on the channel's thread; collective
    UnitGathering(Exchange& exchange, Channel& channel, Shards& shards, BufferPool& pool, GatheringOptions options,
                  Reduce reduce)
        : exchange_{exchange}, channel_{channel}, shards_{shards}, pool_{pool}, options_{options}, reduce_{std::move(reduce)} {}
    UnitGathering(const UnitGathering&) = delete;
    UnitGathering& operator=(const UnitGathering&) = delete;
    ~UnitGathering() {
        for (const Unit& unit : units_) {
            if (unit.link && unit.link->keeper == this) unit.link->keeper = nullptr;
        }
    }

    /// Once for every unit, in order; from then on it is kept. A unit's tensors are those of Flats, which have no
    /// memory yet.
    void add(std::shared_ptr<UnitLink> link, std::vector<Flat> flats, std::size_t trained) {
        Unit& unit = units_.emplace_back();
        unit.flats = std::move(flats);
        unit.trained = trained;
        forbid_use(unit, true);
        for (const Flat& flat : unit.flats) {
            unit.frozen = unit.frozen || flat.frozen;
            unit.numel += flat.all_B.numel();
            unit.bytes += flat.all_B.numel() * static_cast<std::int64_t>(flat.all_B.element_size());
        }
        largest_bytes_ = std::max(largest_bytes_, unit.bytes);
        next_.resize(units_.size() * phases, none);
        link->number = static_cast<std::int32_t>(units_.size()) - 1;
        link->keeper = this;
        unit.link = std::move(link);
    }

    /// How many gradient buckets there are.
    void set_buckets(std::size_t buckets) {
        ready_.assign(buckets, false);
        reduced_.assign(buckets, false);
    }

    [[nodiscard]] bool gathers() const noexcept { return options_.gathers; }

    // ---- the engine's side of a pass ------------------------------------------------------------------------------

    /// A bucket's gradients are complete: it is reduced with one of the next gatherings, or by end_pass().
    void bucket_ready(std::size_t bucket) { offered_.push_back(bucket); }

    void gradient_arrived(std::int32_t number) {
        Unit& unit = units_[static_cast<std::size_t>(number)];
        // A parameter's gradient comes after all uses of it, but tells nothing of the uses of frozen ones.
        if (++unit.arrived == unit.trained && !unit.frozen) drop(unit);
    }

    /// Reduces what is left, all of which is ready now, and drops every unit. Collective.
    void end_pass() {
        offered_.clear();
        channel_.post("gradients", [this] {
            for (std::size_t bucket = reduced_.size(); bucket-- > 0;) {
                if (!reduced_[bucket]) reduce_(bucket);
            }
        });
        start_anew();
    }

    /// For a pass that threw: the next one begins without what it left.
    void abandon_pass() noexcept { abandoned_ = true; }

    void drop_all() {
        for (Unit& unit : units_) drop(unit);
    }

    /// Gathers one unit and drops the others, until drop_all(). Collective.
    void hold_only(std::int32_t number) {
        if (abandoned_) start_anew();
        Unit& held = units_[static_cast<std::size_t>(number)];
        for (Unit& unit : units_) {
            if (&unit != &held) drop(unit);
        }
        if (!held.whole) gather(held);
        held.ticket.wait();
    }
    /// Gathers all units and leaves them so, or drops them. Collective.
    void hold_all(bool held) {
        if (abandoned_) start_anew();
        pinned_ = false;
        if (!held) return drop_all();
        for (Unit& unit : units_) {
            if (!unit.whole) gather(unit);
            unit.ticket.wait();
        }
        pinned_ = true;
    }

    // ---- the units' side ------------------------------------------------------------------------------------------

    [[nodiscard]] Manner manner(std::int32_t number) const override {
        const Unit& unit = units_[static_cast<std::size_t>(number)];
        return {.recomputes = options_.recomputes, .trains = unit.trained > 0};
    }
    void before_forward(std::int32_t number) override {
        fetch(number, at::GradMode::is_enabled() ? Phase::forward : Phase::inference);
    }
    void after_forward(std::int32_t number, const std::vector<at::Tensor>& outputs, std::size_t watched) override {
        if (!options_.gathers) return;
        const auto entered = std::make_shared<bool>(false);
        for (const at::Tensor& output : outputs) {
            if (!output.requires_grad()) continue;
            output.register_hook([link = units_[static_cast<std::size_t>(number)].link, entered, watched](const at::Tensor&) {
                const bool first = !std::exchange(*entered, true);
                if (link->keeper != nullptr) link->keeper->before_rerun(link->number, first ? watched : 0);
            });
        }
        // What forward ended with is what backward begins with.
        const bool stays = next_[key(number, Phase::forward)] == static_cast<int>(key(number, Phase::backward));
        if (!at::GradMode::is_enabled() || !stays) drop(units_[static_cast<std::size_t>(number)]);
    }
    void forward_failed(std::int32_t number) noexcept override {
        try {
            drop(units_[static_cast<std::size_t>(number)]);
        } catch (...) {  // the channel failed: forward's own exception says more
        }
    }
    void before_rerun(std::int32_t number, std::size_t watched) override {
        fetch(number, Phase::backward);
        units_[static_cast<std::size_t>(number)].watched += watched;
    }
    void input_done(std::int32_t number) override {
        Unit& unit = units_[static_cast<std::size_t>(number)];
        if (unit.watched > 0 && --unit.watched == 0) drop(unit);
    }

private:
    enum class Phase : std::uint8_t { forward, backward, inference };
    static constexpr std::size_t phases = 3;
    static constexpr int none = -1;
    static constexpr std::size_t key(std::int32_t unit, Phase phase) noexcept {
        return static_cast<std::size_t>(unit) * phases + static_cast<std::size_t>(phase);
    }

    struct Unit {
        std::shared_ptr<UnitLink> link;
        std::vector<Flat> flats;
        std::int64_t numel = 0;
        std::int64_t bytes = 0;
        std::size_t trained = 0;  // parameters that get a gradient
        std::size_t arrived = 0;  // of them, in this pass
        std::size_t watched = 0;  // inputs of calls that backward is in, whose gradients are not there yet
        bool frozen = false;      // some parameters get none
        bool whole = false;       // or on its way
        bool ahead = false;       // gathered, and not used yet
        typename Channel::Ticket ticket;
    };

    void start_anew() {
        channel_.wait();
        abandoned_ = pinned_ = false;
        offered_.clear();
        ready_.assign(ready_.size(), false);
        reduced_.assign(reduced_.size(), false);
        for (Unit& unit : units_) unit.arrived = unit.watched = 0;
        drop_all();
    }

    void fetch(std::int32_t number, Phase phase) {
        if (abandoned_) start_anew();
        if (!options_.gathers || pinned_) return;
        const std::size_t now = key(number, phase);
        if (last_ != none) next_[static_cast<std::size_t>(last_)] = static_cast<int>(now);
        last_ = static_cast<int>(now);
        Unit& unit = units_[static_cast<std::size_t>(number)];
        if (!unit.whole) gather(unit);
        if (unit.ahead) {
            unit.ahead = false;
            ahead_bytes_ -= unit.bytes;
        }
        prefetch(now);
        unit.ticket.wait();
    }

    /// Gathers what followed the last time, as far as the bounds go, and lets the disk read what follows that.
    void prefetch(std::size_t from) {
        const std::int64_t limit = options_.prefetch_bytes < 0 ? largest_bytes_ : options_.prefetch_bytes;
        std::size_t reads = shards_.reads_ahead();
        bool gathers = exchange_.world() > 1;  // alone, a gathering is a copy: only the disk has to begin early
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
                channel_.post("read ahead", [this, &unit] {
                    for (const Flat& flat : unit.flats) shards_.read_ahead(flat.shard, offload::Access::read);
                });
            } else {
                return;
            }
        }
    }

    void gather(Unit& unit) {
        for (const Flat& flat : unit.flats) {
            const std::size_t bytes = static_cast<std::size_t>(flat.all_B.numel() * flat.all_B.element_size());
            give_memory(flat.all_B, pool_.take(bytes, Held::gathered, Place::device));
        }
        forbid_use(unit, false);
        unit.whole = true;
        live_numel_ += unit.numel;
        unit.ticket = channel_.post("unit " + std::to_string(&unit - units_.data()),
                                    [this, &unit, offered = std::exchange(offered_, {})] {
                                        for (const std::size_t bucket : offered) ready_[bucket] = true;
                                        for (const Flat& flat : unit.flats) gather_flat(flat);
                                    });
    }

    // On the channel's thread, as is what it calls.
    void gather_flat(const Flat& flat) {
        std::exception_ptr failure;
        at::Tensor mine;
        try {
            mine = tensor_over(shards_.open(flat.shard, offload::Access::read), pool_.device_of(shards_.memory_of(flat.shard)));
        } catch (const std::exception&) {
            failure = std::current_exception();
        }
        if (exchange_.world() > 1) exchange_readiness(failure);
        if (failure) std::rethrow_exception(failure);
        if (exchange_.world() == 1) reduce_ready([](std::size_t) { return true; });
        exchange_.all_gather(mine, flat.all_B);
        shards_.close(flat.shard, offload::Access::read);
    }

    /// Tells all ranks what is ready on this one, and reduces what is ready on all.
    void exchange_readiness(const std::exception_ptr& failure) {
        const std::size_t length = 1 + ready_.size();
        const auto world = static_cast<std::size_t>(exchange_.world());
        said_.assign(length, std::byte{0});
        said_[0] = std::byte{failure ? std::uint8_t{1} : std::uint8_t{0}};
        for (std::size_t i = 0; i < ready_.size(); ++i) said_[1 + i] = std::byte{ready_[i] ? std::uint8_t{1} : std::uint8_t{0}};
        heard_.resize(length * world);
        exchange_.host().all_gather(said_, heard_);
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
    template <class Everywhere>
    void reduce_ready(Everywhere&& everywhere) {
        for (std::size_t bucket = ready_.size(); bucket-- > 0;) {
            if (!ready_[bucket] || !everywhere(bucket)) continue;
            reduce_(bucket);
            ready_[bucket] = false;
            reduced_[bucket] = true;
        }
    }

    void drop(Unit& unit) {
        if (!unit.whole || !options_.gathers || pinned_) return;
        unit.ticket.wait();
        for (const Flat& flat : unit.flats) drop_memory(flat.all_B);
        forbid_use(unit, true);
        unit.whole = false;
        live_numel_ -= unit.numel;
        if (unit.ahead) ahead_bytes_ -= unit.bytes;
        unit.ahead = false;
    }

    static void forbid_use(const Unit& unit, bool forbidden) noexcept {
        for (const Flat& flat : unit.flats) {
            for (const at::Tensor& parameter : flat.parameters) detail::forbid_use(parameter, forbidden);
        }
    }

    Exchange& exchange_;
    Channel& channel_;
    Shards& shards_;
    BufferPool& pool_;
    GatheringOptions options_;
    Reduce reduce_;
    std::vector<Unit> units_;
    std::vector<int> next_;  // what was asked for after a unit and phase
    int last_ = none;
    std::int64_t largest_bytes_ = 0;
    std::int64_t ahead_bytes_ = 0;
    std::int64_t live_numel_ = 0;
    bool pinned_ = false;
    bool abandoned_ = false;
    std::vector<std::size_t> offered_;

    // Of the channel's thread while it has work.
    std::vector<char> ready_;    // buckets of this rank that wait for the others
    std::vector<char> reduced_;  // in this pass
    std::vector<std::byte> said_, heard_;
};

}  // namespace strata::zero::detail
