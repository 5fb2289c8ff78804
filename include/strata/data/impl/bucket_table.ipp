#pragma once
// strata/data/impl/bucket_table.ipp - filling buckets, and what to say when one is too small.

#include <algorithm>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/data/bucket_table.hpp>

namespace strata::data {

STRATA_INLINE std::vector<Bucket> fill_buckets(std::size_t dataset, const config::ImageDataset& settings,
                                               std::int64_t alignment, const std::vector<PictureSize>& pictures) {
    const std::vector<PictureSize> sizes = bucket_list(bucket_rule(settings, alignment));
    std::vector<Bucket> buckets;
    for (const PictureSize& size : sizes)
        buckets.push_back({dataset, settings.id, size, {}, settings.repeats, settings.repeats});
    for (std::size_t i = 0; i < pictures.size(); ++i) buckets[nearest_bucket(sizes, pictures[i])].samples.push_back(i);
    std::erase_if(buckets, [](const Bucket& bucket) { return bucket.samples.empty(); });
    return buckets;
}

STRATA_INLINE void require_effective_batch(std::vector<Bucket>& buckets, const BatchShape& shape,
                                           bool allow_oversubscription) {
    const std::int64_t effective = shape.effective();
    std::string list;
    std::int64_t most_needed = 0;
    std::int64_t fewest_turns = effective;
    for (Bucket& bucket : buckets) {
        const auto count = static_cast<std::int64_t>(bucket.samples.size());
        if (count * (bucket.repeats + 1) >= effective) continue;
        const std::int64_t needed = (effective + count - 1) / count - 1;
        if (allow_oversubscription) {
            bucket.repeats = needed;
            continue;
        }
        most_needed = std::max(most_needed, needed);
        fewest_turns = std::min(fewest_turns, count * (bucket.repeats + 1));
        list += (list.empty() ? "" : "; ") + std::string{"bucket "} + std::to_string(bucket.size.width) + " x " +
                std::to_string(bucket.size.height) + " of data set '" + bucket.dataset_id + "' holds " +
                std::to_string(count) + " samples x " + std::to_string(bucket.repeats + 1) + " visits = " +
                std::to_string(count * (bucket.repeats + 1)) + ", needs repeats >= " + std::to_string(needed);
    }
    if (list.empty()) return;
    throw Error{Errc::small_bucket,
                "an effective batch is " + std::to_string(effective) + " samples (train_batch_size " +
                    std::to_string(shape.train_batch_size) + " x " + std::to_string(shape.ranks) +
                    " ranks x gradient_accumulation_steps " + std::to_string(shape.gradient_accumulation_steps) +
                    "), and not every bucket has as many an epoch: " + list,
                "set repeats to " + std::to_string(most_needed) + " or more, or lower the effective batch to " +
                    std::to_string(fewest_turns) +
                    " or less, or add pictures, or set allow_dataset_oversubscription to true so that repeats of "
                    "these buckets are raised for you"};
}

}  // namespace strata::data
