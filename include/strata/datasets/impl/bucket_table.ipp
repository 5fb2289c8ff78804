#pragma once
// strata/datasets/impl/bucket_table.ipp - filling buckets, and what to say when one is too small.

#include <algorithm>
#include <map>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/datasets/bucket_table.hpp>

namespace strata::datasets {

namespace detail {

/// Narrowest first; of equally narrow first shapes that with fewer others.
struct ShapesOrder {
    bool operator()(const std::vector<pictures::Shape>& a, const std::vector<pictures::Shape>& b) const noexcept {
        return std::lexicographical_compare(
            a.begin(), a.end(), b.begin(), b.end(), [](const pictures::Shape& x, const pictures::Shape& y) {
                return x.size == y.size ? x.weight < y.weight : pictures::is_narrower(x.size, y.size);
            });
    }
};

}  // namespace detail

STRATA_INLINE std::vector<Bucket> fill_buckets(std::size_t dataset, const config::ImageDataset& settings,
                                               const pictures::Framer& framer,
                                               const std::vector<pictures::PictureSize>& pictures) {
    std::map<std::vector<pictures::Shape>, std::vector<std::size_t>, detail::ShapesOrder> filled;
    for (std::size_t i = 0; i < pictures.size(); ++i) filled[framer.shapes_of(pictures[i])].push_back(i);
    std::vector<Bucket> buckets;
    for (auto& [shapes, samples] : filled)
        buckets.push_back({dataset, settings.id, shapes.front().size, shapes, std::move(samples), settings.repeats,
                           settings.repeats});
    return buckets;
}

STRATA_INLINE void require_effective_batch(std::vector<Bucket>& buckets, const BatchShape& shape,
                                           bool allow_oversubscription) {
    const std::int64_t effective = shape.effective();
    std::string list;
    std::string set_by_hand;
    std::int64_t most_needed = 0;
    std::int64_t fewest_turns = effective;
    for (Bucket& bucket : buckets) {
        const auto count = static_cast<std::int64_t>(bucket.samples.size());
        if (count * (bucket.repeats + 1) >= effective) continue;
        const std::int64_t needed = (effective + count - 1) / count - 1;
        if (allow_oversubscription && bucket.repeats_asked == 0) {
            bucket.repeats = needed;
            continue;
        }
        most_needed = std::max(most_needed, needed);
        fewest_turns = std::min(fewest_turns, count * (bucket.repeats + 1));
        if (const std::string id = "'" + bucket.dataset_id + "'";
            allow_oversubscription && set_by_hand.find(id) == std::string::npos)
            set_by_hand += (set_by_hand.empty() ? "" : ", ") + id;
        list +=
            (list.empty() ? "" : "; ") + std::string{"bucket "} + std::to_string(bucket.size.width) + " x " +
            std::to_string(bucket.size.height) +
            (bucket.shapes.size() > 1 ? " (and " + std::to_string(bucket.shapes.size() - 1) + " other sizes)" : "") +
            " of data set '" + bucket.dataset_id + "' holds " + std::to_string(count) + " samples x " +
            std::to_string(bucket.repeats + 1) + " visits = " + std::to_string(count * (bucket.repeats + 1)) +
            ", needs repeats >= " + std::to_string(needed);
    }
    if (list.empty()) return;
    throw Error{
        Errc::small_bucket,
        "an effective batch is " + std::to_string(effective) + " samples (train_batch_size " +
            std::to_string(shape.train_batch_size) + " x " + std::to_string(shape.ranks) +
            " ranks x gradient_accumulation_steps " + std::to_string(shape.gradient_accumulation_steps) +
            "), and not every bucket has as many an epoch: " + list,
        "set repeats to " + std::to_string(most_needed) + " or more, or lower the effective batch to " +
            std::to_string(fewest_turns) + " or less, or add pictures, or " +
            (allow_oversubscription ? "remove repeats of data set " + set_by_hand +
                                          ": allow_dataset_oversubscription raises only repeats that are not set"
                                    : "set allow_dataset_oversubscription to true so that repeats are "
                                      "raised for you where they are not set")};
}

}  // namespace strata::datasets
