#pragma once
// strata/zero/parts/take_over.hpp - TakeOver: a model's parameters become buckets and shards, with the values of rank 0.
//
// Shapes: B  elements of a bucket with padding      S = B / world, a rank's share of it
//
// The values of units that have no memory yet (in_units()) come from where these have them, unit by unit.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/precision.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/packed_unit.hpp>
#include <strata/zero/parts/shard_store.hpp>
#include <strata/zero/parts/unit_gathering.hpp>

namespace strata::zero {

/// Frozen parameters of a unit, which are sharded with it.
struct FrozenUnit {
    std::int32_t unit = -1;
    std::shared_ptr<UnitLink> link{};
    std::vector<at::Tensor> tensors{};
    std::vector<std::string> names{};  ///< of them
    std::int64_t numel = 0;
    bool excepted = false;                       ///< they keep the other number format; others of the unit are apart
    std::shared_ptr<const PackedUnit> packed{};  ///< where frozen weights are quantised
};

/// What frozen parameters of units are kept in.
struct FrozenFormats {
    at::ScalarType dtype = at::kFloat;
    at::ScalarType excepted_dtype = at::kFloat;
    const FrozenFormat* quantised = nullptr;  ///< of matrices; nullptr: they are kept as they compute
};

/// Whether a frozen parameter is sharded with its unit, where units are.
[[nodiscard]] inline bool shards_frozen(const Parameter& parameter) {
    return parameter.unit >= 0 && parameter.tensor.is_floating_point();
}
/// Those parameters, by unit. Local.
[[nodiscard]] std::vector<FrozenUnit> frozen_units_of(const std::vector<Parameter>& frozen,
                                                      const FrozenFormats& formats);

/// This rank's shards: of sharded buckets, then of the frozen parameters of units.
struct ShardSizes {
    std::vector<std::int64_t> numels;
    std::vector<char> excepted;  ///< whether each is of the other number format
    std::vector<char> packed;    ///< whether each is bytes of frozen parameters
    std::size_t trained = 0;     ///< how many are of buckets, which come first
};
[[nodiscard]] ShardSizes shard_sizes(const Buckets& buckets, const std::vector<FrozenUnit>& frozen);
/// Tells a store of a setup which of its shards are of which kind; before its other calls.
template <class Setup, class Store>
void sort_shards(Store& store, const ShardSizes& sizes) {
    if constexpr (Setup::frozen_weights::quantises) {
        store.set_excepted(sizes.packed);
        if constexpr (!std::is_void_v<strata::detail::excepted_of_t<typename Setup::precision>>)
            store.own().set_excepted(
                {sizes.excepted.begin(), sizes.excepted.begin() + static_cast<std::ptrdiff_t>(sizes.trained)});
    } else if constexpr (!std::is_void_v<strata::detail::excepted_of_t<typename Setup::precision>>) {
        store.set_excepted(sizes.excepted);
    }
}

/// Gives the parameters of a model their place in an engine. Once; what it has made stays when it goes.
class TakeOver {
public:
    struct Options {
        at::ScalarType dtype = at::kFloat;           ///< parameters are kept in
        at::ScalarType excepted_dtype = at::kFloat;  ///< those are that keep the other number format
        Place device = Place::host;                  ///< memory_of() the device
        Place state = Place::host;                   ///< and of the state's first values
        Place excepted_state = Place::host;          ///< and of those of exceptions
        const FrozenFormat* quantised = nullptr;     ///< what frozen matrices of units are kept in; nullptr: in `dtype`
        /// Makes the unit of a parameter whole, for values that are sharded yet; collective. Empty: all are there.
        std::function<void(const at::Tensor& parameter)> gather{};
        /// The bytes that such a parameter is kept in, where it is; collective. Empty: none is.
        std::function<std::optional<PackedPiece>(const at::Tensor& parameter)> bytes_of{};
    };
    /// All but `options` outlive it.
    TakeOver(Exchange& exchange, detail::BufferPool& pool, Buckets& buckets, ShardStore& shards,
             const std::vector<Parameter>& trained, const std::vector<Parameter>& frozen, const Options& options);

    /// Elements of this rank's shards, and what each of them is of. Local.
    [[nodiscard]] ShardSizes sizes_of_shards() const { return shard_sizes(buckets_, frozen_units_); }
    [[nodiscard]] std::vector<std::int64_t> shard_numels() const { return sizes_of_shards().numels; }

    /// Converts the frozen parameters that are not sharded and gives them rank 0's values. Collective.
    void take_frozen();
    /// Places a bucket's parameters and returns their values in fp32: (B), or this rank's share (S) of a sharded bucket that every
    /// rank reads its own share of. Once for each bucket, in order. Collective.
    at::Tensor take_bucket(std::size_t bucket);
    /// This rank's share (S) of such values, and of the bucket's parameters in their own format. Before shard_bucket(). Local.
    [[nodiscard]] at::Tensor own_values(std::size_t bucket, const at::Tensor& values) const {
        return values.numel() == buckets_.padded_of(bucket) ? buckets_.own_share(values) : values;
    }
    [[nodiscard]] at::Tensor own_weights(std::size_t bucket) const {
        return own_weight_S_.defined() ? own_weight_S_ : buckets_.own_share(buckets_[bucket].weight_B);
    }
    /// Fills a sharded bucket's shard, and lets its memory go; nothing for others. When all else has its values. Local.
    void shard_bucket(std::size_t bucket);
    /// What the state of a bucket starts its masters with: this rank's part of these values, in the state's memory. Local.
    ///
    ///   values  (B), or (S) where `own`
    [[nodiscard]] at::Tensor start_of_state(const at::Tensor& values, bool excepted = false, bool own = false) const;
    /// How many buckets were taken.
    [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
    /// Fills the shard of a unit's frozen parameters. Once for each unit of frozen_units(), in order. Collective.
    void take_frozen_unit(std::size_t unit);
    [[nodiscard]] const std::vector<FrozenUnit>& frozen_units() const noexcept { return frozen_units_; }

    /// Bytes that the making of one unit takes beside its values, at most. Local.
    [[nodiscard]] std::int64_t bytes_beside() const;
    /// The units that had no memory have it now, or shards: where their values came from may go. Throws on all ranks what failed on one
    /// while values were read or made. Collective.
    void end_values();

    /// Hands all units over in registration order; returns their numbers by tensor. Local.
    [[nodiscard]] std::map<const void*, std::int32_t> add_units(UnitGathering& gathering);

private:
    [[nodiscard]] at::ScalarType dtype_of(bool excepted) const noexcept {
        return excepted ? options_.excepted_dtype : options_.dtype;
    }
    /// Where the values of a parameter come from that has no memory; else nullptr: one that its unit was given later has its own.
    [[nodiscard]] static DeferredUnit* deferred_of(const Parameter& parameter) noexcept {
        DeferredUnit* const unit = parameter.link ? parameter.link->deferred.get() : nullptr;
        return unit != nullptr && unit->find(parameter.tensor) ? unit : nullptr;
    }
    /// Of a bucket: a unit that has the values of some of its parameters, or of all.
    [[nodiscard]] DeferredUnit* deferred_of(std::size_t bucket, bool all) const noexcept;
    /// Elements begin, begin + 1, ... of tensors that lie one behind the other, from where they have their values. What that throws is
    /// kept, and the others go on: end_values() says it.
    void read_values(DeferredUnit& unit, const std::vector<at::Tensor>& tensors, std::int64_t begin,
                     const at::Tensor& values);
    void take_packed_unit(std::size_t unit);
    void pack_missing(const FrozenUnit& frozen, const std::vector<char>& is_there, const at::Tensor& packed_P);
    [[nodiscard]] at::Tensor values_of(const FrozenUnit& frozen, std::size_t parameter, at::ScalarType dtype);
    [[nodiscard]] at::Tensor all_values(std::size_t bucket);
    [[nodiscard]] at::Tensor without_memory(std::int64_t numel, at::ScalarType dtype) const;
    [[nodiscard]] std::vector<at::Tensor> tensors_of(std::size_t bucket) const;
    void trim_now_and_then(std::int64_t numel);

    Exchange& exchange_;
    detail::BufferPool& pool_;
    Buckets& buckets_;
    ShardStore& shards_;
    const std::vector<Parameter>& trained_;
    const std::vector<Parameter>& frozen_;
    Options options_;
    std::vector<FrozenUnit> frozen_units_;           // where units are sharded
    std::vector<UnitGathering::Flat> frozen_flats_;  // of them
    at::Tensor own_weight_S_;                        // of the bucket that is taken over, where no rank has all of it
    std::exception_ptr failure_;                     // of where values come from
    std::size_t taken_ = 0;
    std::int64_t untrimmed_ = 0;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/take_over.ipp>
#include <strata/zero/impl/take_over_packed.ipp>
#include <strata/zero/impl/take_over_values.ipp>
#endif
