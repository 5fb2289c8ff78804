#pragma once
// strata/zero/parts/unit_order.hpp - UnitOrder: which unit all ranks gather next, and which gradients they reduce before it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// What a unit is gathered for; `inference` is a forward pass without gradients.
enum class UnitPhase : std::uint8_t { forward, backward, inference };

/// What a rank is about to gather: one of the tensors that a unit is kept in.
struct UnitTurn {
    static constexpr std::int32_t ended = -1;
    std::int32_t unit = ended;  ///< ended: nothing more in this backward pass
    UnitPhase phase = UnitPhase::backward;
    std::uint16_t flat = 0;  ///< which of the unit's tensors
    friend bool operator==(const UnitTurn&, const UnitTurn&) = default;
};

/// Lets ranks gather units in one order, though their passes may differ.
///
/// Every gathering begins with one message in which each rank says what it is about to gather, whether it could read its
/// shard of that, and which gradient buckets are complete on it. Buckets that are complete everywhere are reduced behind
/// it. Where ranks are about to gather different units, because one has no use for a unit or uses it at another time, one of
/// these is chosen, and all take part in it. A rank whose backward pass has ended goes on taking part until all have ended
/// theirs. So all ranks do the same operations in one order, and a disk that fails on one rank fails the pass on all.
///
/// Passes without gradients have no end that ranks could meet at: there, ranks that are about to gather different units are told
/// so. A rank may call units without gradients while the others are in a pass with them; what it learns of their order by that the
/// others do not know, and ranks gather ahead only in an order that all have learned.
///
/// What collects messages runs on the channel's thread; all of it is collective but for what says that it is not.
class UnitOrder {
public:
    using Reduce = std::function<void(std::size_t bucket)>;
    /// A number for what a rank has learned of the order of units in each phase.
    using Learned = std::array<std::uint64_t, 3>;

    /// What is gathered now.
    struct Next {
        UnitTurn turn;
        bool is_everyones =
            true;  ///< false: a turn of some ranks only, of which the others have not read their shard yet
        std::array<bool, 3> learned_the_same{true, true, true};
    };

    /// reduce  called on the channel's thread; collective
    UnitOrder(Exchange& exchange, Reduce reduce) : exchange_{exchange}, reduce_{std::move(reduce)} {}

    /// Names of units, in order, for messages; and how many buckets of gradients there are. Local.
    void add_unit(std::string name) { names_.push_back(std::move(name)); }
    void set_buckets(std::size_t buckets);

    /// A bucket's gradients are complete on this rank; and all are that were not reduced yet. Local.
    void complete(std::size_t bucket) { complete_[bucket] = 1; }
    void complete_rest();
    /// A pass begins: nothing is complete, nothing reduced. Local.
    void start_anew();

    /// Says what this rank is about to gather and hears what the others are. Of several ranks. Throws `failure`, io_failed where
    /// another rank could not read its shard, and rank_mismatch.
    ///
    ///   failure  what reading this rank's shard threw
    [[nodiscard]] Next next(const UnitTurn& mine, const std::exception_ptr& failure, const Learned& learned = {});
    /// After a Next that is not everyone's: whether all could read their shards of it. Throws as next() does.
    void check_all_read(const std::exception_ptr& failure);
    /// Reduces what was complete everywhere when ranks last said so. While no shard is open: a bucket that is updated as soon as
    /// it is reduced opens its own.
    void reduce_due();

private:
    /// What a rank says, in front of a byte for each bucket. Plain bytes.
    struct Said {
        Learned learned{};
        UnitTurn turn{};
        std::uint32_t failed = 0;
        std::uint32_t nothing = 0;
    };

    void throw_failed(const std::exception_ptr& failure, const std::vector<char>& failed) const;
    void throw_different(const std::vector<Said>& all) const;

    Exchange& exchange_;
    Reduce reduce_;
    std::vector<std::string> names_;
    std::vector<char> complete_;  // buckets of this rank that wait for the others
    std::vector<char> reduced_;   // in this pass
    std::vector<std::size_t> due_;
    std::vector<std::byte> said_, heard_;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/unit_order.ipp>
#endif
