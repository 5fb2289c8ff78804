#pragma once
// strata/zero/parts/shard_store.hpp - ShardStore: this rank's shards of units, on whatever tier they are.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/precision.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/tier.hpp>
#include <strata/zero/tier_bytes.hpp>

namespace strata::zero {

/// The class `shards` of a tier (TierShards), for parts that are no templates.
class ShardStore {
public:
    ShardStore(const ShardStore&) = delete;
    ShardStore& operator=(const ShardStore&) = delete;
    virtual ~ShardStore() = default;

    /// A shard's elements (S), until close(); one at a time.
    [[nodiscard]] virtual at::Tensor open(std::size_t shard, offload::Access access) = 0;
    virtual void close(std::size_t shard, offload::Access access) = 0;
    virtual void read_ahead(std::size_t shard, offload::Access access) = 0;
    [[nodiscard]] virtual std::size_t count() const = 0;
    [[nodiscard]] virtual std::size_t reads_ahead() const = 0;
    [[nodiscard]] virtual Place memory_of(std::size_t shard) const = 0;
    [[nodiscard]] virtual PlaceBytes bytes(std::span<const std::int64_t> numels) const = 0;
    [[nodiscard]] virtual TierBytes takes(std::span<const std::int64_t> numels, const TierRoom& room) const = 0;
    virtual void make(const TierContext& context, std::span<const std::int64_t> numels) = 0;

    /// Sets a shard to these values.
    void fill(std::size_t shard, const at::Tensor& values_S) {
        open(shard, offload::Access::write).copy_(values_S);
        close(shard, offload::Access::write);
    }

protected:
    ShardStore() = default;
};

/// pool  outlives it
template <class Shards, class Element>
class ShardsOf final : public ShardStore {
public:
    explicit ShardsOf(const detail::BufferPool& pool) : pool_{pool} {}

    [[nodiscard]] at::Tensor open(std::size_t shard, offload::Access access) override {
        return detail::tensor_over(shards_.open(shard, access), pool_.device_of(memory_of(shard)));
    }
    void close(std::size_t shard, offload::Access access) override { shards_.close(shard, access); }
    void read_ahead(std::size_t shard, offload::Access access) override { shards_.read_ahead(shard, access); }
    [[nodiscard]] std::size_t count() const override { return shards_.count(); }
    [[nodiscard]] std::size_t reads_ahead() const override { return shards_.reads_ahead(); }
    [[nodiscard]] Place memory_of(std::size_t shard) const override { return shards_.memory_of(shard); }
    [[nodiscard]] PlaceBytes bytes(std::span<const std::int64_t> numels) const override {
        return Shards::bytes(numels);
    }
    [[nodiscard]] TierBytes takes(std::span<const std::int64_t> numels, const TierRoom& room) const override {
        return taken_by<Shards>(numels, room);
    }
    void make(const TierContext& context, std::span<const std::int64_t> numels) override {
        shards_.make(context, numels);
    }

private:
    const detail::BufferPool& pool_;
    Shards shards_;
};

/// Shards of parameters in two number formats, each in a store of its own; or of parameters and of bytes of frozen ones.
///
///   Own, Excepted  ShardsOf classes; Own may be a ShardsInFormats
template <class Own, class Excepted>
class ShardsInFormats final : public ShardStore {
public:
    explicit ShardsInFormats(const detail::BufferPool& pool) : own_{pool}, excepted_{pool} {}
    [[nodiscard]] Own& own() noexcept { return own_; }

    /// Which shards are excepted; before the other calls.
    void set_excepted(const std::vector<char>& excepted) {
        for (const char is_excepted : excepted) {
            std::size_t& count = counts_[is_excepted != 0 ? 1 : 0];
            places_.push_back({is_excepted != 0, count++});
        }
    }
    [[nodiscard]] at::Tensor open(std::size_t shard, offload::Access access) override {
        return store(shard).open(places_[shard].number, access);
    }
    void close(std::size_t shard, offload::Access access) override {
        store(shard).close(places_[shard].number, access);
    }
    void read_ahead(std::size_t shard, offload::Access access) override {
        store(shard).read_ahead(places_[shard].number, access);
    }
    [[nodiscard]] std::size_t count() const override { return places_.size(); }
    [[nodiscard]] std::size_t reads_ahead() const override {
        if (counts_[0] == 0 || counts_[1] == 0) return counts_[0] == 0 ? excepted_.reads_ahead() : own_.reads_ahead();
        return std::min(own_.reads_ahead(), excepted_.reads_ahead());
    }
    [[nodiscard]] Place memory_of(std::size_t shard) const override {
        return places_[shard].is_excepted ? excepted_.memory_of(places_[shard].number)
                                          : own_.memory_of(places_[shard].number);
    }
    [[nodiscard]] PlaceBytes bytes(std::span<const std::int64_t> numels) const override {
        return own_.bytes(part(numels, false)) + excepted_.bytes(part(numels, true));
    }
    [[nodiscard]] TierBytes takes(std::span<const std::int64_t> numels, const TierRoom& room) const override {
        return own_.takes(part(numels, false), room.part(2)) + excepted_.takes(part(numels, true), room.part(2));
    }
    void make(const TierContext& context, std::span<const std::int64_t> numels) override {
        own_.make(context.part("own", 2), part(numels, false));
        excepted_.make(context.part("excepted", 2), part(numels, true));
    }

private:
    struct At {
        bool is_excepted;
        std::size_t number;  // in its store
    };
    [[nodiscard]] ShardStore& store(std::size_t shard) noexcept {
        return places_[shard].is_excepted ? static_cast<ShardStore&>(excepted_) : own_;
    }
    [[nodiscard]] std::vector<std::int64_t> part(std::span<const std::int64_t> numels, bool is_excepted) const {
        std::vector<std::int64_t> found;
        for (std::size_t i = 0; i < numels.size(); ++i) {
            if (places_[i].is_excepted == is_excepted) found.push_back(numels[i]);
        }
        return found;
    }

    Own own_;
    Excepted excepted_;
    std::vector<At> places_;
    std::array<std::size_t, 2> counts_{};
};

namespace detail {

/// What keeps the shards of a precision's parameters on a tier.
template <class Tier, class Numerics, class Excepted = strata::detail::excepted_of_t<Numerics>>
struct ShardsOfPrecision {
    template <class Element>
    using Of = ShardsOf<shards_on_t<Tier, Element>, Element>;
    using type = ShardsInFormats<Of<typename Numerics::element>, Of<typename Excepted::element>>;
};
template <class Tier, class Numerics>
struct ShardsOfPrecision<Tier, Numerics, void> {
    using type = ShardsOf<shards_on_t<Tier, typename Numerics::element>, typename Numerics::element>;
};

/// What keeps the shards of a setup: in the formats of its precision, and bytes where frozen weights of units are quantised.
template <class Setup, bool quantises = Setup::frozen_weights::quantises>
struct StoreOfSetup {
    using type = typename ShardsOfPrecision<typename Setup::parameter_offload::tier, typename Setup::precision>::type;
};
template <class Setup>
struct StoreOfSetup<Setup, true> {
    using Bytes = shards_on_t<typename Setup::parameter_offload::tier, std::uint8_t>;
    using type = ShardsInFormats<typename StoreOfSetup<Setup, false>::type, ShardsOf<Bytes, std::uint8_t>>;
};

}  // namespace detail

}  // namespace strata::zero
