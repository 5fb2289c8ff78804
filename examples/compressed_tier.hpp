#pragma once
// compressed_tier.hpp - a tier of one's own: state in host memory, in blocks that zlib has made smaller.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <zlib.h>

#include <strata/zero/tier.hpp>
#include <strata/zero/tiers/cpu.hpp>

//! [tier]
/// Compressed state; parameter shards as Cpu has them.
struct Compressed : strata::Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
};
//! [tier]

template <class Kept, std::size_t states, bool has_master>
class Compressed::state : public strata::Cpu::state<Kept, states, has_master> {
public:
    static constexpr bool fails_alone = true;  // a block that does not come back as it was

    void make(const strata::zero::TierContext& context, const std::vector<std::int64_t>& numels) {
        open_ = context.empty<Kept>(static_cast<std::int64_t>(arrays) * block_numel, strata::zero::MemoryKind::buffers,
                                    strata::Place::host);
        for (std::size_t bucket = 0; bucket < numels.size(); ++bucket) {
            auto& blocks = buckets_.emplace_back();
            for (std::int64_t at = 0; at < numels[bucket]; at += block_numel) {
                const std::int64_t numel = std::min(block_numel, numels[bucket] - at);
                blocks.push_back({bucket, at, numel, at + numel == numels[bucket], {}, Counted{&context.meter()}});
            }
        }
    }
    //! [passes]
    template <class WeightOf>
    void fill(const std::array<float, states>& initial, WeightOf&& weight_of) {
        for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
            const at::Tensor weight = weight_of(bucket);  // in fp32
            for (Block& block : buckets_[bucket]) {
                strata::zero::start_run(view(block), initial, weight);
                pack(block);
            }
        }
    }
    template <class Call>
    void run(strata::offload::Access access, Call&& call) {
        for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) run_bucket(bucket, access, call);
    }
    template <class Call>
    void run_bucket(std::size_t bucket, strata::offload::Access access, Call&& call) {
        for (Block& block : buckets_[bucket]) {
            if (access != strata::offload::Access::write) unpack(block);
            call(view(block));  // a zero::StateRun: the block's elements, in the memory that it was unpacked to
            if (access != strata::offload::Access::read) pack(block);
        }
    }
    //! [passes]

private:
    static constexpr std::size_t arrays = states + (has_master ? 1 : 0);
    static constexpr std::int64_t block_numel = 1 << 12;

    /// Tells the meter what a block takes, as long as it is there.
    struct Counted {
        strata::zero::MemoryMeter* meter = nullptr;
        std::int64_t bytes = 0;

        explicit Counted(strata::zero::MemoryMeter* meter_) : meter{meter_} {}
        Counted(Counted&& other) noexcept : meter{std::exchange(other.meter, nullptr)}, bytes{other.bytes} {}
        ~Counted() { set(0); }
        void set(std::int64_t now) {
            if (meter == nullptr) return;
            meter->add(strata::zero::MemoryKind::state, strata::Place::host, now - std::exchange(bytes, now));
        }
    };
    struct Block {
        std::size_t bucket;
        std::int64_t begin, numel;
        bool last;
        std::vector<Bytef> packed;
        Counted counted;
    };

    [[nodiscard]] strata::zero::StateRun<Kept, states> view(const Block& block) {
        const auto numel = static_cast<std::size_t>(block.numel);
        const auto array = [&](std::size_t k) {
            return std::span{static_cast<Kept*>(open_.data_ptr()) + k * numel, numel};
        };
        strata::zero::StateRun<Kept, states> run{.bucket = block.bucket,
                                                 .begin = block.begin,
                                                 .numel = block.numel,
                                                 .weight = {},
                                                 .state = {},
                                                 .last = block.last};
        for (std::size_t k = 0; k < states; ++k) run.state[k] = array(k);
        if constexpr (has_master) run.weight = array(states);
        return run;
    }
    [[nodiscard]] static uLong bytes_of(const Block& block) {
        return static_cast<uLong>(block.numel) * arrays * sizeof(Kept);
    }

    void pack(Block& block) {
        std::vector<Bytef> packed(compressBound(bytes_of(block)));
        uLongf size = packed.size();
        compress2(packed.data(), &size, static_cast<const Bytef*>(open_.data_ptr()), bytes_of(block), Z_BEST_SPEED);
        block.packed.assign(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
        block.counted.set(static_cast<std::int64_t>(size));
    }
    void unpack(const Block& block) {
        uLongf size = bytes_of(block);
        const int result =
            uncompress(static_cast<Bytef*>(open_.data_ptr()), &size, block.packed.data(), block.packed.size());
        if (result != Z_OK || size != bytes_of(block)) {
            throw std::runtime_error{"a block of state of bucket " + std::to_string(block.bucket) +
                                     " does not decompress"};
        }
    }

    std::vector<std::vector<Block>> buckets_;
    at::Tensor open_;  // the block that is worked on
};
