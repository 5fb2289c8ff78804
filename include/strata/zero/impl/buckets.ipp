#pragma once
// strata/zero/impl/buckets.ipp - the table of parameters and buckets.

#include <algorithm>
#include <cstdint>
#include <limits>

#include <strata/core/error.hpp>
#include <strata/zero/parts/buckets.hpp>

namespace strata::zero {

STRATA_INLINE std::vector<ParameterInfo> layout_of(const std::vector<Parameter>& parameters) {
    std::vector<ParameterInfo> layout;
    std::int64_t begin = 0;
    for (const Parameter& parameter : parameters) {
        layout.push_back({parameter.name, parameter.tensor.sizes().vec(), begin});
        begin += parameter.tensor.numel();
    }
    return layout;
}

STRATA_INLINE Buckets::Buckets(const std::vector<Parameter>& trained, const std::vector<std::size_t>& group_of,
                               const Options& options)
    : options_{options}, layout_{layout_of(trained)} {
    std::vector<ParameterExtent> extents;
    for (std::size_t i = 0; i < trained.size(); ++i) {
        const at::Tensor& tensor = trained[i].tensor;
        parameters_.push_back({tensor, 0, 0, group_of[i]});
        extents.push_back({tensor.numel(), trained[i].unit, trained[i].excepted});
        numel_ += tensor.numel();
    }
    std::size_t shards = 0;
    for (const Bucket& bucket : make_buckets(extents, options.bucket_numel)) {
        TrainedBucket& b = buckets_.emplace_back();
        b.bucket = bucket;
        b.sharded = options.shards_units && bucket.unit >= 0;
        if (b.sharded) b.shard = shards++;
        for (std::size_t i = bucket.first_parameter; i < bucket.first_parameter + bucket.parameter_count; ++i) {
            parameters_[i].bucket = buckets_.size() - 1;
            parameters_[i].offset = layout_[i].begin - bucket.begin;
            b.offsets.push_back(parameters_[i].offset);
        }
        b.offsets.push_back(bucket.numel);
    }
}

STRATA_INLINE std::vector<std::int64_t> Buckets::share_numels() const {
    std::vector<std::int64_t> numels;
    for (std::size_t i = 0; i < buckets_.size(); ++i) numels.push_back(share_of(i));
    return numels;
}

STRATA_INLINE std::vector<std::int64_t> Buckets::part_numels() const {
    std::vector<std::int64_t> numels;
    for (std::size_t i = 0; i < buckets_.size(); ++i) numels.push_back(part_of(i));
    return numels;
}

STRATA_INLINE std::vector<std::int64_t> Buckets::shard_numels() const {
    std::vector<std::int64_t> numels;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        if (buckets_[i].sharded) numels.push_back(share_of(i));
    }
    return numels;
}

STRATA_INLINE std::vector<Buckets::GroupPiece> Buckets::group_pieces(std::size_t bucket, std::int64_t begin,
                                                                     std::int64_t numel) const {
    const TrainedBucket& b = buckets_[bucket];
    const std::size_t count = b.bucket.parameter_count;
    const std::int64_t place = place_in_bucket(bucket, begin);
    const std::int64_t end = place + numel;
    const auto stop_of = [&](std::size_t i) {  // of the bucket's parameter i
        return i + 1 == count ? std::max(end, b.offsets[i + 1]) : b.offsets[i + 1];
    };
    const auto group_of = [&](std::size_t i) { return parameters_[b.bucket.first_parameter + i].group; };
    std::vector<GroupPiece> pieces;
    std::size_t i = 0;
    for (std::int64_t at = place; at < end;) {
        while (stop_of(i) <= at) ++i;
        const std::size_t group = group_of(i);
        while (i + 1 < count && stop_of(i) < end && group_of(i + 1) == group) ++i;
        const std::int64_t stop = std::min(end, stop_of(i));
        pieces.push_back({group, at - place, stop - at});
        at = stop;
    }
    return pieces;
}

STRATA_INLINE void Buckets::check_parameters_stayed() const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const TrainedParameter& p = parameters_[i];
        if (!p.tensor.requires_grad()) {
            throw Error{Errc::bad_parameter,
                        "the parameter " + layout_[i].name + " was frozen after the engine had taken it",
                        "call set_trainable() between two steps instead; after a requires_grad_(false) for a while, "
                        "requires_grad_(true) before backward()"};
        }
        if (!p.tensor.storage().is_alias_of(buckets_[p.bucket].weight_B.storage()) ||
            p.tensor.storage_offset() != p.offset) {
            throw Error{Errc::bad_parameter,
                        "the parameter " + layout_[i].name + " was converted or moved after the engine had taken it",
                        "call model->to(...) before the trainer is made"};
        }
    }
}

STRATA_INLINE void Buckets::bump_versions(std::size_t bucket) noexcept {
    const Bucket& b = buckets_[bucket].bucket;
    for (std::size_t i = b.first_parameter; i < b.first_parameter + b.parameter_count; ++i)
        parameters_[i].tensor.unsafeGetTensorImpl()->bump_version();
}

STRATA_INLINE void Buckets::number_versions() {
    const std::int64_t all = std::numeric_limits<std::uint32_t>::max() - first_version;
    const std::int64_t each = all / static_cast<std::int64_t>(parameters_.size() + 1);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const at::Tensor& tensor = parameters_[i].tensor;
        if (tensor._version() >= first_version) continue;  // done, by the engine before: numbers never fall
        tensor.unsafeGetTensorImpl()->set_version_counter(
            c10::VariableVersion{static_cast<std::uint32_t>(first_version + each * static_cast<std::int64_t>(i))});
    }
}

STRATA_INLINE std::optional<std::size_t> Buckets::parameter_at(std::int64_t version) const noexcept {
    const auto found = std::find_if(parameters_.begin(), parameters_.end(), [&](const TrainedParameter& parameter) {
        return static_cast<std::int64_t>(parameter.tensor._version()) == version;
    });
    if (version < first_version || found == parameters_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - parameters_.begin());
}

STRATA_INLINE void Buckets::bump_versions() {
    ++bumps_;
    for (const TrainedParameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

STRATA_INLINE std::vector<StateOutline> outline_of(const std::vector<std::string_view>& kinds, const Buckets& buckets) {
    std::vector<StateOutline> runs;
    for (const std::string_view kind : kinds) {
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            const ElementRun own = buckets.own(i);
            if (own.numel > 0) runs.push_back({kind, own.begin, own.numel});
        }
    }
    return runs;
}

}  // namespace strata::zero
