#pragma once
// strata/zero/impl/memory_plan.ipp - the sum of what an engine needs.

#include <algorithm>

#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parts/memory_plan.hpp>
#include <strata/zero/parts/take_over.hpp>

namespace strata::zero {

STRATA_INLINE MemoryPlan::Need MemoryPlan::need(const Buckets& buckets, const std::vector<Parameter>& frozen) const {
    const auto element_of = [&](bool excepted) {
        return static_cast<std::int64_t>(c10::elementSize(excepted ? excepted_dtype : dtype));
    };
    const bool gathers = buckets.shards_units();
    const std::int64_t waiting = buckets.world() == 1 ? 1 : gathers ? 2 : gradients.buckets_in_flight + 1;
    std::int64_t device = 0;
    // Beside what is kept: a bucket's values in fp32 while it is taken over; later gradients on their way, and whole units.
    std::int64_t largest = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        const std::int64_t all = buckets.padded_of(i);
        const bool excepted = buckets.excepted(i);
        if (!buckets[i].sharded) device += all * element_of(excepted);
        device += GradientReduction::bytes_kept(gradients, excepted, all, buckets.share_of(i));
        const auto gradient =
            static_cast<std::int64_t>(c10::elementSize(excepted ? gradients.excepted_dtype : gradients.dtype));
        const std::int64_t in_use =
            (gradients.sharded ? waiting * gradient : 0) + (gathers ? 2 * element_of(excepted) : 0);
        const auto of_sum =
            static_cast<std::int64_t>(c10::elementSize(GradientReduction::sum_dtype_of(gradients, excepted)));
        const std::int64_t leaving = gradients.sums_on_tier ? buckets.share_of(i) * of_sum : 0;  // a sum, to its tier
        largest = std::max(largest, all * std::max<std::int64_t>(sizeof(float), in_use) + leaving);
    }
    if (gathers && quantised != nullptr) {
        // Its bytes and a matrix in fp32 while it is taken over; later its bytes and what they become, and the next one ahead of its use.
        for (const FrozenUnit& unit : frozen_units_of(frozen, {dtype, excepted_dtype, quantised})) {
            std::int64_t matrix = 0;
            for (const PackedUnit::Piece& piece : unit.packed->pieces()) matrix = std::max(matrix, piece.numel);
            const std::int64_t whole = 2 * unit.numel * element_of(unit.excepted);
            const auto of_matrix = matrix * static_cast<std::int64_t>(sizeof(float));
            const std::int64_t bytes = share_numel(unit.packed->bytes(), buckets.world()) * buckets.world();
            largest = std::max(largest, bytes + std::max(whole, of_matrix));
        }
    }
    device += largest + (device_is_host ? beside : 0);

    // What parameters give back is in the memory where they are now.
    const auto given_back = [&](const at::Tensor& tensor, bool of_device) {
        const bool here = device_is_host || tensor.is_cpu() != of_device;
        return here ? detail::own_bytes(tensor) : 0;
    };
    std::int64_t host = device_is_host ? 0 : beside;
    for (const TrainedParameter& p : buckets.parameters()) {
        device -= given_back(p.tensor, true);
        if (!device_is_host) host -= given_back(p.tensor, false);
    }
    const auto in = [&](const PlaceBytes& bytes, bool of_device) {
        if (device_is_host) return of_device ? bytes.in_memory() : 0;
        return bytes[of_device ? Place::device : Place::host];
    };
    const auto add = [&](std::int64_t& bytes, bool of_device) {
        bytes += in(state + average + sums + trained_shards, of_device);
        std::int64_t shards_need = in(frozen_shards, of_device);
        for (const Parameter& p : frozen) {
            const std::int64_t size = p.tensor.is_floating_point() ? element_of(p.excepted) : p.tensor.element_size();
            // Given back only when all of the above is there: it makes room for its shard, or itself, and for nothing else.
            if (gathers && shards_frozen(p)) {
                std::int64_t kept = p.tensor.numel() * size;
                if (quantised != nullptr) {
                    PackedUnit alone{*quantised, p.excepted ? excepted_dtype : dtype};
                    alone.add(p.name, p.tensor, p.excepted);
                    kept = alone.bytes();
                }
                shards_need -= std::min(share_numel(kept, buckets.world()), given_back(p.tensor, of_device));
            } else if (of_device) {
                bytes += std::max<std::int64_t>(0, p.tensor.numel() * size - given_back(p.tensor, true));
            }
        }
        bytes += std::max<std::int64_t>(0, shards_need);
    };
    add(device, true);
    if (!device_is_host) add(host, false);
    const auto positive = [](std::int64_t bytes) { return std::max<std::int64_t>(0, bytes); };
    return device_is_host ? Need{positive(device), 0} : Need{positive(host), positive(device)};
}

STRATA_INLINE std::string MemoryPlan::fix(const Sharded& sharded) const {
    if (state[Place::disk] > 0 && state.in_memory() == 0) return "use more ranks, or a smaller model";
    if (!sharded.parameters)
        return "shard more with a higher ZeroStage, keep state on disk with OffloadTarget<Nvme>, or use more nodes";
    return "keep state on disk with OffloadTarget<Nvme, OptimizerState, Parameters>, or use more nodes";
}

}  // namespace strata::zero
