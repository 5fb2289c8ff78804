#pragma once
// strata/zero/parts/unit_gathering.hpp - UnitGathering: units are whole while they compute, and shards otherwise.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/channel.hpp>
#include <strata/core/inline.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/packed_unit.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/unit_order.hpp>
#include <strata/zero/unit.hpp>

namespace strata::zero {

/// The hooks of a model's units where their parameters are sharded, and where they are recomputed.
///
/// A unit is gathered just before its forward and again when backward reaches its outputs, and dropped after either:
/// the memory behind its tensors is taken away and given back, as PyTorch's FSDP does (Zhao et al. 2023,
/// arXiv:2304.11277, section 4), so that graphs keep their tensors. What came after a unit the last time is gathered
/// while it computes.
///
/// Gradient buckets are reduced between gatherings. Which ones are ready may differ between ranks, when a rank's batch leaves
/// a parameter unused, and so may the units that passes need, when a rank's loss leaves one out: UnitOrder says what comes next.
class UnitGathering final : public UnitHooks {
public:
    struct Options {
        bool gathers = false;              ///< parameters of units are sharded; otherwise they are always there
        std::vector<char> recomputed{};    ///< which units run again in backward, by number; empty: none
        std::int64_t prefetch_bytes = -1;  ///< gathered ahead of their use at most; -1: the largest unit
        std::int64_t max_live_numel = 0;  ///< elements of units that are whole at once, as far as prefetch goes; 0: any
    };
    /// A tensor that is whole or without memory, and the number of this rank's shard of it.
    struct Flat {
        at::Tensor all_B;
        std::size_t shard = 0;
        std::vector<at::Tensor> parameters{};  ///< views of all_B
        bool frozen = false;
        std::shared_ptr<const PackedUnit>
            packed{};  ///< the shard is of its bytes, which become all_B; parameters are its pieces
    };
    using Reduce = UnitOrder::Reduce;

    /// reduce  called on the channel's thread; collective
    /// The others outlive it.
    UnitGathering(Exchange& exchange, ShardStore& shards, detail::BufferPool& pool, const Options& options,
                  Reduce reduce);
    UnitGathering(const UnitGathering&) = delete;
    UnitGathering& operator=(const UnitGathering&) = delete;
    ~UnitGathering();

    /// Once for every unit, in order; from then on its calls come here. A unit's tensors are those of Flats, which have no
    /// memory yet.
    void add(std::shared_ptr<UnitLink> link, std::vector<Flat> flats, std::size_t trained);
    /// How many gradient buckets there are.
    void set_buckets(std::size_t buckets) { order_.set_buckets(buckets); }
    [[nodiscard]] bool gathers() const noexcept { return options_.gathers; }

    // ---- the engine's side of a pass ------------------------------------------------------------------------------

    /// A bucket's gradients are complete: it is reduced with one of the next gatherings, or by end_pass().
    void bucket_ready(std::size_t bucket) { offered_.push_back(bucket); }
    void gradient_arrived(std::int32_t number);
    /// The same of a pass that is another engine's: its loss goes through this model, and its units are dropped behind it.
    void gradient_passed(std::int32_t number);
    /// Takes part in what the others still gather, reduces what is left, all of which is ready now, and drops every unit. Collective.
    void end_pass();
    /// For a pass that threw: the next one begins without what it left.
    void abandon_pass() noexcept { abandoned_ = true; }

    void drop_all();
    /// Gathers one unit and drops the others, until drop_all(). Collective.
    void hold_only(std::int32_t number);
    /// Gathers all units and leaves them so, or drops them. Collective.
    void hold_all(bool hold);

    /// Puts what these tensors hold into their shards, while their units are whole. Local. Of quantised ones the bytes are made anew, of
    /// what this rank has: ranks have the same values. Throws bad_parameter where one of these is not finite.
    void reshard(const std::function<bool(const at::Tensor&)>& written);
    /// The bytes that a parameter is kept in, where it is frozen and a unit's bytes are kept. Between passes. Collective.
    [[nodiscard]] std::optional<PackedPiece> bytes_of(const at::Tensor& parameter);

    // ---- the units' side ------------------------------------------------------------------------------------------

    [[nodiscard]] bool recomputes(std::int32_t number) const override;
    void before_forward(std::int32_t number) override;
    void after_forward(std::int32_t number, const std::vector<at::Tensor>& outputs, std::size_t watched) override;
    void forward_failed(std::int32_t number) noexcept override;
    void before_rerun(std::int32_t number, std::size_t watched) override;
    void input_done(std::int32_t number) override;

private:
    using Phase = UnitPhase;
    static constexpr std::size_t phases = 3;
    static constexpr int none = -1;
    static constexpr std::size_t key(std::int32_t unit, Phase phase) noexcept {
        return static_cast<std::size_t>(unit) * phases + static_cast<std::size_t>(phase);
    }
    static constexpr Phase phase_of(int key) noexcept {
        return Phase{static_cast<std::uint8_t>(static_cast<std::size_t>(key) % phases)};
    }

    struct Unit {
        std::shared_ptr<UnitLink> link;
        std::vector<Flat> flats;
        std::int64_t numel = 0;
        std::int64_t bytes = 0;
        std::size_t trained = 0;  // parameters that get a gradient
        std::size_t arrived = 0;  // of them, in this pass
        std::size_t passed = 0;   // of them, in another engine's pass
        std::size_t watched = 0;  // inputs of calls that backward is in, whose gradients are not there yet
        bool frozen = false;      // some parameters get none
        bool whole = false;       // or on its way
        bool ahead = false;       // gathered, and not used yet
        bool stays = false;       // used in forward, and kept for backward, which begins with it
        bool in_order = true;     // gathered by all ranks together, which had learned the same
        comm::Ticket ticket;
    };

    void start_anew();
    void fetch(std::int32_t number, Phase phase);
    void drop_idle();
    void forget(const std::array<bool, phases>& known);
    void prefetch(std::size_t from);
    void gather(Unit& unit, Phase phase);
    bool gather_flat(const UnitTurn& mine, const UnitOrder::Learned& learned);
    void take_part(const UnitTurn& turn, bool is_mine);
    void meet_at_the_end(const UnitOrder::Learned& mine);
    [[nodiscard]] std::pair<at::Tensor, std::exception_ptr> opened(const Flat& flat);
    [[nodiscard]] at::Tensor room_for(const Flat& flat) const;
    void fill(const Flat& flat, const at::Tensor& share);
    void repack(const Flat& flat, const std::function<bool(const at::Tensor&)>& written);
    [[nodiscard]] const Flat& flat_of(const UnitTurn& turn) const {
        return units_[static_cast<std::size_t>(turn.unit)].flats[turn.flat];
    }
    [[nodiscard]] UnitOrder::Learned learned() const;
    void drop(Unit& unit);
    [[nodiscard]] Unit& unit(std::int32_t number) { return units_[static_cast<std::size_t>(number)]; }
    static void forbid_use(const Unit& unit, bool forbidden) noexcept;

    Exchange& exchange_;
    ShardStore& shards_;
    detail::BufferPool& pool_;
    Options options_;
    UnitOrder order_;  // of the channel's thread while it has work
    std::vector<Unit> units_;
    std::vector<int> next_;  // what was asked for after a unit and phase
    int last_ = none;
    std::int64_t largest_bytes_ = 0;
    std::int64_t ahead_bytes_ = 0;
    std::int64_t live_numel_ = 0;
    bool pinned_ = false;
    bool abandoned_ = false;
    std::vector<std::size_t> offered_;
    std::array<bool, phases> learned_the_same_{true, true, true};  // as all ranks have, by the end of the last pass
    at::Tensor bytes_P_;                                           // of the flat that bytes_of() was asked for last
    const PackedUnit* bytes_are_of_ = nullptr;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/unit_gathering.ipp>
#include <strata/zero/impl/unit_gathering_memory.ipp>
#include <strata/zero/impl/unit_gathering_packed.ipp>
#endif
