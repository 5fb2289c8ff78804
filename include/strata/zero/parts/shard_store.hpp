#pragma once
// strata/zero/parts/shard_store.hpp - ShardStore: this rank's shards of units, on whatever tier they are.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/tier.hpp>

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
    void make(const TierContext& context, std::span<const std::int64_t> numels) override {
        shards_.make(context, numels);
    }

private:
    const detail::BufferPool& pool_;
    Shards shards_;
};

}  // namespace strata::zero
