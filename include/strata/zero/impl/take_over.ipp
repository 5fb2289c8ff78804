#pragma once
// strata/zero/impl/take_over.ipp - parameters become views of buckets, and shards.

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/ops/empty.h>

#include <strata/zero/layout.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parts/take_over.hpp>

namespace strata::zero {

namespace detail {
/// Elements of a model that are taken over between two returns of its memory to the system.
inline constexpr std::int64_t trimmed_numel = std::int64_t{8} << 20;
}  // namespace detail

STRATA_INLINE std::vector<FrozenUnit> frozen_units_of(const std::vector<Parameter>& frozen,
                                                      const FrozenFormats& formats) {
    std::map<std::pair<std::int32_t, bool>, FrozenUnit> units;
    for (const Parameter& parameter : frozen) {
        if (!shards_frozen(parameter)) continue;
        FrozenUnit& unit = units[{parameter.unit, parameter.excepted}];
        unit.unit = parameter.unit;
        unit.link = parameter.link;
        unit.excepted = parameter.excepted;
        unit.tensors.push_back(parameter.tensor);
        unit.names.push_back(parameter.name);
        unit.numel += parameter.tensor.numel();
    }
    std::vector<FrozenUnit> found;
    for (auto& [number, unit] : units) {
        if (formats.quantised != nullptr) {
            auto packed = std::make_shared<PackedUnit>(*formats.quantised,
                                                       unit.excepted ? formats.excepted_dtype : formats.dtype);
            for (std::size_t i = 0; i < unit.tensors.size(); ++i)
                packed->add(unit.names[i], unit.tensors[i], unit.excepted);
            unit.packed = std::move(packed);
        }
        found.push_back(std::move(unit));
    }
    return found;
}

STRATA_INLINE TakeOver::TakeOver(Exchange& exchange, detail::BufferPool& pool, Buckets& buckets, ShardStore& shards,
                                 const std::vector<Parameter>& trained, const std::vector<Parameter>& frozen,
                                 const Options& options)
    : exchange_{exchange},
      pool_{pool},
      buckets_{buckets},
      shards_{shards},
      trained_{trained},
      frozen_{frozen},
      options_{options} {
    if (buckets.shards_units())
        frozen_units_ = frozen_units_of(frozen, {options.dtype, options.excepted_dtype, options.quantised});
}

STRATA_INLINE ShardSizes shard_sizes(const Buckets& buckets, const std::vector<FrozenUnit>& frozen) {
    ShardSizes sizes{.numels = buckets.shard_numels(), .excepted = {}, .packed = {}, .trained = 0};
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        if (buckets[i].sharded) sizes.excepted.push_back(buckets.excepted(i) ? 1 : 0);
    }
    sizes.trained = sizes.excepted.size();
    sizes.packed.resize(sizes.trained);
    for (const FrozenUnit& unit : frozen) {
        sizes.numels.push_back(share_numel(unit.packed ? unit.packed->bytes() : unit.numel, buckets.world()));
        sizes.packed.push_back(unit.packed ? 1 : 0);
        sizes.excepted.push_back(unit.excepted ? 1 : 0);
    }
    return sizes;
}

STRATA_INLINE void TakeOver::take_frozen() {
    DeferredUnit* last = nullptr;
    const auto leave = [&](DeferredUnit* next) {
        if (last != nullptr && last != next) last->values->let_go();
        last = next;
    };
    for (const Parameter& parameter : frozen_) {
        if (buckets_.shards_units() && shards_frozen(parameter)) continue;
        const at::Device device = pool_.device_of(Place::device);
        at::Tensor values;
        if (DeferredUnit* const unit = deferred_of(parameter)) {
            leave(unit);
            const at::Tensor& tensor = parameter.tensor;
            const at::ScalarType dtype =
                tensor.is_floating_point() ? dtype_of(parameter.excepted) : tensor.scalar_type();
            values = at::empty(tensor.sizes(), at::TensorOptions{}.dtype(dtype).device(device));
            if (exchange_.rank() == 0) read_values(*unit, {tensor}, 0, values.view(-1));
            detail::forbid_use(tensor, false);
        } else {
            values = detail::converted_frozen(parameter.tensor, dtype_of(parameter.excepted), device);
        }
        exchange_.broadcast(values);
        at::Tensor{parameter.tensor}.set_data(values);
    }
    leave(nullptr);
}

STRATA_INLINE at::Tensor TakeOver::take_bucket(std::size_t bucket) {
    taken_ = bucket + 1;
    TrainedBucket& b = buckets_[bucket];
    const std::int64_t padded = buckets_.padded_of(bucket);
    const std::size_t first = b.bucket.first_parameter;
    const std::size_t end = first + b.bucket.parameter_count;
    const at::ScalarType dtype = dtype_of(b.bucket.excepted);
    DeferredUnit* const unit = deferred_of(bucket, true);
    own_weight_S_.reset();
    at::Tensor values;
    if (unit != nullptr && b.sharded && unit->values->reads_ranges()) {
        const ElementRun own = buckets_.own(bucket);
        values = pool_.zeros(buckets_.share_of(bucket), at::kFloat, MemoryKind::buffers, Place::device);
        read_values(*unit, tensors_of(bucket), own.begin - b.bucket.begin, values.narrow(0, 0, own.numel));
        unit->values->let_go();
        own_weight_S_ = pool_.empty(values.numel(), dtype, MemoryKind::buffers, Place::device).copy_(values);
        b.weight_B = without_memory(padded, dtype);
    } else {
        values = all_values(bucket);
        b.weight_B =
            pool_.empty(padded, dtype, b.sharded ? MemoryKind::gathered : MemoryKind::parameters, Place::device);
        b.weight_B.copy_(values);
    }
    for (std::size_t i = first; i < end; ++i) {
        const TrainedParameter& p = buckets_.parameter(i);
        at::Tensor tensor = trained_[i].tensor;
        if (unit != nullptr) detail::forbid_use(tensor, false);
        tensor.mutable_grad().reset();
        tensor.set_data(b.weight_B.narrow(0, p.offset, p.tensor.numel()).view(p.tensor.sizes()));
    }
    trim_now_and_then(padded);
    return values;
}

STRATA_INLINE void TakeOver::shard_bucket(std::size_t bucket) {
    const TrainedBucket& b = buckets_[bucket];
    if (!b.sharded) return;
    shards_.fill(b.shard, own_weights(bucket));
    own_weight_S_.reset();
    detail::drop_memory(b.weight_B);
}

/// The memory that parameters gave back goes to the system from time to time: that takes milliseconds.
STRATA_INLINE void TakeOver::trim_now_and_then(std::int64_t numel) {
    untrimmed_ += numel;
    if (untrimmed_ < detail::trimmed_numel) return;
    pool_.trim();
    untrimmed_ = 0;
}

STRATA_INLINE at::Tensor TakeOver::start_of_state(const at::Tensor& values, bool excepted, bool own) const {
    const bool moves = (excepted ? options_.excepted_state : options_.state) != options_.device;
    const bool as_it_is = own || buckets_.replicates_state();
    if (!moves && (as_it_is || exchange_.alone())) return values;
    const at::Tensor kept = as_it_is ? values : buckets_.own_share(values);
    const at::Tensor copy =
        pool_.empty(kept.numel(), at::kFloat, MemoryKind::buffers, moves ? Place::host : Place::device);
    return copy.copy_(kept);  // lets the others go
}

STRATA_INLINE void TakeOver::take_frozen_unit(std::size_t unit) {
    const FrozenUnit& frozen = frozen_units_[unit];
    if (frozen.packed) return take_packed_unit(unit);
    const std::int64_t share = share_numel(frozen.numel, buckets_.world());
    const std::int64_t padded = share * buckets_.world();
    const at::ScalarType dtype = dtype_of(frozen.excepted);
    DeferredUnit* const source = frozen.link ? frozen.link->deferred.get() : nullptr;
    at::Tensor all_B;
    at::Tensor own_S;
    if (options_.gather) options_.gather(frozen.tensors.front());
    if (source != nullptr && source->values->reads_ranges()) {
        const std::int64_t begin = std::min(frozen.numel, share * buckets_.rank());
        own_S = pool_.zeros(share, dtype, MemoryKind::buffers, Place::device);
        read_values(*source, frozen.tensors, begin, own_S.narrow(0, 0, std::min(frozen.numel - begin, share)));
        all_B = without_memory(padded, dtype);
    } else {
        all_B = pool_.zeros(padded, dtype, MemoryKind::gathered, Place::device);
        if (source == nullptr) {
            std::int64_t at = 0;
            for (const at::Tensor& tensor : frozen.tensors) {
                all_B.narrow(0, at, tensor.numel()).view(tensor.sizes()).copy_(tensor.detach());
                at += tensor.numel();
            }
        } else if (exchange_.rank() == 0) {
            read_values(*source, frozen.tensors, 0, all_B.narrow(0, 0, frozen.numel));
        }
        exchange_.broadcast(all_B);
        own_S = buckets_.own_share(all_B);
    }
    if (source != nullptr) source->values->let_go();
    std::int64_t at = 0;
    for (at::Tensor tensor : frozen.tensors) {
        if (source != nullptr) detail::forbid_use(tensor, false);
        tensor.set_data(all_B.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
    const std::size_t shard = buckets_.shard_numels().size() + unit;
    shards_.fill(shard, own_S);
    detail::drop_memory(all_B);
    frozen_flats_.push_back({all_B, shard, frozen.tensors, true, nullptr});
}

STRATA_INLINE std::map<const void*, std::int32_t> TakeOver::add_units(UnitGathering& gathering) {
    struct Found {
        std::shared_ptr<UnitLink> link;
        std::vector<UnitGathering::Flat> flats;
        std::size_t trained = 0;
        std::vector<std::size_t> buckets;
        std::vector<const void*> tensors;
    };
    std::map<std::int32_t, Found> units;
    for (const std::vector<Parameter>* group : {&trained_, &frozen_}) {
        for (const Parameter& parameter : *group) {
            if (parameter.unit < 0) continue;
            Found& unit = units[parameter.unit];
            unit.link = parameter.link;
            unit.trained += group == &trained_ ? 1 : 0;
            unit.tensors.push_back(parameter.tensor.unsafeGetTensorImpl());
        }
    }
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        const TrainedBucket& b = buckets_[i];
        if (!b.sharded) continue;
        UnitGathering::Flat flat{.all_B = b.weight_B, .shard = b.shard};
        for (std::size_t p = 0; p < b.bucket.parameter_count; ++p)
            flat.parameters.push_back(buckets_.parameter(b.bucket.first_parameter + p).tensor);
        units[b.bucket.unit].buckets.push_back(i);
        units[b.bucket.unit].flats.push_back(std::move(flat));
    }
    for (std::size_t i = 0; i < frozen_flats_.size(); ++i)
        units[frozen_units_[i].unit].flats.push_back(std::move(frozen_flats_[i]));

    std::map<const void*, std::int32_t> numbers;
    std::int32_t number = 0;
    for (auto& [place, unit] : units) {
        for (const std::size_t bucket : unit.buckets) buckets_[bucket].unit_number = number;
        for (const void* tensor : unit.tensors) numbers[tensor] = number;
        gathering.add(unit.link, std::move(unit.flats), unit.trained);
        ++number;
    }
    return numbers;
}

}  // namespace strata::zero
