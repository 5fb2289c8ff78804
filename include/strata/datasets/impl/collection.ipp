#pragma once
// strata/datasets/impl/collection.ipp - discovered pictures become buckets, a plan and a report.

#include <algorithm>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/datasets/impl/bucket_table.ipp>
#include <strata/datasets/impl/small_buckets.ipp>

namespace strata::datasets {

namespace detail {

/// A picture as a person would look for it.
inline std::string shown_place(const config::ImageDataset& dataset, const std::string& key) {
    if (dataset.type == config::StoreType::local) return (dataset.instance_data_dir / key).string();
    const std::string& prefix = dataset.s3.data_prefix;
    return "s3://" + dataset.s3.bucket + "/" + prefix + (prefix.empty() || prefix.ends_with('/') ? "" : "/") + key;
}

}  // namespace detail

STRATA_INLINE void Collection::add(const config::ImageDataset& dataset, Discovered found) {
    report_.found += found.found;
    for (std::string& note : found.notes) report_.notes.push_back(std::move(note));
    for (Skipped& one : found.skipped) report_.skipped.push_back(std::move(one));

    sets_.push_back({dataset, std::move(found.samples), pictures::Framer{dataset, settings_}});
    add_buckets_of(sets_.size() - 1);
}

STRATA_INLINE void Collection::add_line(const config::ImageDataset& dataset, const Discovered& found) {
    std::string line = std::string{dataset.is_conditioning() ? "conditioning" : "eval"} + " data set '" + dataset.id +
                       "': " + std::to_string(found.found) + " pictures found, " +
                       std::to_string(found.samples.size()) + " can be used";
    constexpr std::size_t most_names = 5;
    for (std::size_t i = 0; i < std::min(found.skipped.size(), most_names); ++i)
        line += (i == 0 ? "; skipped: " : ", ") + found.skipped[i].place + " (" +
                std::string{name_of(found.skipped[i].reason)} + ")";
    if (found.skipped.size() > most_names)
        line += " and " + std::to_string(found.skipped.size() - most_names) + " more";
    report_.notes.push_back(std::move(line));
    report_.notes.insert(report_.notes.end(), found.notes.begin(), found.notes.end());
}

STRATA_INLINE void Collection::add_buckets_of(std::size_t set) {
    plan_.reset();
    PictureSet& one = sets_[set];
    one.first_bucket = buckets_.size();
    std::vector<pictures::PictureSize> sizes;
    sizes.reserve(one.samples.size());
    for (const Sample& sample : one.samples) sizes.push_back(sample.size);
    for (Bucket& bucket : fill_buckets(set, one.settings, one.framer, sizes)) buckets_.push_back(std::move(bucket));
}

STRATA_INLINE void Collection::require_buckets() const {
    if (!buckets_.empty()) return;
    std::string reasons;
    for (int i = 0; i < skip_reasons; ++i) {
        const auto reason = static_cast<SkipReason>(i);
        if (const std::int64_t count = report_.count(reason); count > 0)
            reasons += (reasons.empty() ? "" : ", ") + std::to_string(count) + " " + std::string{name_of(reason)};
    }
    throw Error{Errc::no_samples,
                "none of the " + std::to_string(report_.found) + " pictures can be trained on: " + reasons +
                    "; the first is '" + report_.skipped.front().place + "'",
                report_.count(SkipReason::small_bucket) > 0
                    ? "lower the effective batch, or set small_buckets to merge or repeat"
                    : "put captions beside the pictures, or relax minimum_image_size and the aspect ratios"};
}

STRATA_INLINE void Collection::drop_small_buckets(const BatchShape& shape) {
    const std::vector<std::size_t> indices = buckets_to_drop(buckets_, shape);
    if (indices.empty()) return;
    std::vector<std::set<std::size_t>> dropped(sets_.size());
    std::vector<Skipped> why;
    for (const std::size_t b : indices) {
        const Bucket& bucket = buckets_[b];
        const PictureSet& set = sets_[bucket.dataset];
        const std::string shortage = "bucket " + std::to_string(bucket.size.width) + " x " +
                                     std::to_string(bucket.size.height) + " has " +
                                     detail::counted(static_cast<std::int64_t>(bucket.samples.size()), "sample") +
                                     " for an effective batch of " + std::to_string(effective_batch(bucket, shape));
        for (const std::size_t i : bucket.samples) {
            why.push_back({bucket.dataset_id, detail::shown_place(set.settings, set.samples[i].key),
                           SkipReason::small_bucket, shortage});
            dropped[bucket.dataset].insert(i);
        }
    }
    leave_out(dropped, std::move(why));
}

STRATA_INLINE std::vector<PlanDataset> Collection::plan_datasets(const BatchShape& shape,
                                                                 config::DataBackendSampling sampling) const {
    std::vector<PlanDataset> datasets;
    for (const PictureSet& set : sets_) {
        PlanDataset& one = datasets.emplace_back();
        one.batch = batch_shape(shape, set.settings.train_batch_size).effective();
        if (shape.each_once) continue;
        one.probability = set.settings.probability;
        one.start_epoch = set.settings.start_epoch;
        one.end_epoch = set.settings.end_epoch;
        one.start_step = set.settings.start_step;
        one.end_step = set.settings.end_step;
        if (sampling == config::DataBackendSampling::uniform) one.weight = set.settings.probability;
        one.last_step_of_epoch = set.settings.disable_after_epoch_step;
    }
    for (const Bucket& bucket : buckets_)
        datasets[bucket.dataset].buckets.push_back(
            {static_cast<std::int64_t>(bucket.samples.size()), shape.each_once ? 1 : bucket.repeats + 1});
    return datasets;
}

STRATA_INLINE void Collection::arrange(const BatchShape& shape, std::uint64_t seed, bool allow_oversubscription,
                                       config::DataBackendSampling sampling) {
    require_buckets();
    drop_small_buckets(shape);
    require_buckets();
    merge_small_buckets(buckets_, shape);
    for (std::size_t b = buckets_.size(); b > 0; --b) sets_[buckets_[b - 1].dataset].first_bucket = b - 1;
    require_effective_batch(buckets_, shape, allow_oversubscription);
    auto plan = std::make_unique<const SamplePlan>(plan_datasets(shape, sampling), seed, shape.effective());
    if (plan->size() == 0)
        throw Error{Errc::no_samples,
                    "none of the data sets with pictures that can be used takes part from the first step on",
                    "give one of them start_epoch 1 and start_step 0"};
    shape_ = shape;
    plan_ = std::move(plan);
}

STRATA_INLINE void Collection::leave_out(const std::vector<std::set<std::size_t>>& broken, std::vector<Skipped> why) {
    for (Skipped& one : why) report_.skipped.push_back(std::move(one));
    buckets_.clear();
    for (std::size_t d = 0; d < sets_.size(); ++d) {
        std::vector<Sample> kept;
        for (std::size_t i = 0; i < sets_[d].samples.size(); ++i)
            if (!broken[d].contains(i)) kept.push_back(std::move(sets_[d].samples[i]));
        sets_[d].samples = std::move(kept);
        add_buckets_of(d);
    }
}

STRATA_INLINE Report Collection::report() const {
    Report report = report_;
    for (const Bucket& bucket : buckets_) {
        const auto count = static_cast<std::int64_t>(bucket.samples.size());
        report.buckets.push_back({bucket.dataset_id, bucket.size.width, bucket.size.height,
                                  static_cast<std::int64_t>(bucket.shapes.size()), count, bucket.repeats,
                                  bucket.repeats_asked, bucket.merged, plan_ ? effective_batch(bucket, shape_) : 0});
        report.used += count;
    }
    if (!plan_) return report;
    report.effective_batch = shape_.effective();
    report.steps_per_epoch = plan_->batches_in(0);
    if (plan_->size())
        report.notes.push_back("no data set takes part any more after step " + std::to_string(*plan_->size()));
    return report;
}

}  // namespace strata::datasets
