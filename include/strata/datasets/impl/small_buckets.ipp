#pragma once
// strata/datasets/impl/small_buckets.ipp - where samples of small buckets go, and what to say of those that stay small.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/datasets/bucket_table.hpp>

namespace strata::datasets::detail {

/// log(width / height), of several training sizes the mean by their weights.
inline double log_aspect(const Bucket& bucket) noexcept {
    double sum = 0;
    for (const pictures::Shape& shape : bucket.shapes)
        sum += shape.weight *
               (std::log(static_cast<double>(shape.size.width)) - std::log(static_cast<double>(shape.size.height)));
    return sum;
}

/// merge_small_buckets() of the data sets that merges() says.
template <class Merges>
void merge_small(std::vector<Bucket>& buckets, const BatchShape& shape, const Merges& merges) {
    while (true) {
        std::size_t from = buckets.size();
        std::size_t to = buckets.size();
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            if (!merges(buckets[b]) || !is_small(buckets[b], shape)) continue;
            if (from < buckets.size() && buckets[from].samples.size() <= buckets[b].samples.size()) continue;
            const auto of_set = [&](const Bucket& one) { return one.dataset == buckets[b].dataset; };
            if (std::count_if(buckets.begin(), buckets.end(), of_set) > 1) from = b;
        }
        if (from == buckets.size()) return;
        const double here = log_aspect(buckets[from]);
        const auto distance = [&](std::size_t b) {
            const double there = log_aspect(buckets[b]);
            return std::pair{std::abs(there - here), std::abs(there)};
        };
        for (std::size_t b = 0; b < buckets.size(); ++b)
            if (b != from && buckets[b].dataset == buckets[from].dataset &&
                (to == buckets.size() || distance(b) < distance(to)))
                to = b;
        std::vector<std::size_t> all;
        std::merge(buckets[to].samples.begin(), buckets[to].samples.end(), buckets[from].samples.begin(),
                   buckets[from].samples.end(), std::back_inserter(all));
        buckets[to].samples = std::move(all);
        buckets[to].merged += static_cast<std::int64_t>(buckets[from].samples.size());
        buckets.erase(buckets.begin() + static_cast<std::ptrdiff_t>(from));
    }
}

inline bool is_repeated(const Bucket& bucket, bool allow_oversubscription) noexcept {
    return bucket.if_small.value_or(allow_oversubscription
                                        ? config::SmallBuckets::repeat
                                        : config::SmallBuckets::refuse) == config::SmallBuckets::repeat;
}

/// The smallest repeats with which the bucket is not small.
inline std::int64_t repeats_needed(const Bucket& bucket, const BatchShape& shape) noexcept {
    const auto count = static_cast<std::int64_t>(bucket.samples.size());
    return (effective_batch(bucket, shape) + count - 1) / count - 1;
}

inline std::string counted(std::int64_t number, const std::string& word) {
    return std::to_string(number) + " " + word + (number == 1 ? "" : "s");
}

/// "bucket 192 x 96 of data set 'stamps' holds 3 samples x 1 visits = 3, needs repeats >= 2"
inline std::string shortage(const Bucket& bucket, const BatchShape& shape) {
    const auto count = static_cast<std::int64_t>(bucket.samples.size());
    std::string text =
        "bucket " + std::to_string(bucket.size.width) + " x " + std::to_string(bucket.size.height) +
        (bucket.shapes.size() > 1 ? " (and " + std::to_string(bucket.shapes.size() - 1) + " other sizes)" : "") +
        " of data set '" + bucket.dataset_id + "' holds " + std::to_string(count) + " samples x " +
        std::to_string(bucket.repeats + 1) + " visits = " + std::to_string(count * (bucket.repeats + 1)) +
        ", needs repeats >= " + std::to_string(repeats_needed(bucket, shape));
    if (bucket.train_batch_size > 0)
        text += " for its effective batch of " + std::to_string(effective_batch(bucket, shape)) +
                " (its train_batch_size is " + std::to_string(bucket.train_batch_size) + ")";
    return text;
}

/// What values of `small_buckets` would do to the data sets of these buckets: "merge (3 samples go to other buckets), ...".
inline std::string small_bucket_choices(const std::vector<Bucket>& buckets, const std::vector<std::size_t>& small,
                                        const BatchShape& shape) {
    const auto is_concerned = [&](const Bucket& bucket) {
        return std::any_of(small.begin(), small.end(),
                           [&](std::size_t b) { return buckets[b].dataset == bucket.dataset; });
    };
    std::int64_t all = 0;
    std::int64_t lost = 0;
    std::int64_t most = 0;
    std::int64_t more = 0;
    std::int64_t moved = 0;
    std::int64_t still_small = 0;
    std::vector<Bucket> merged;
    for (const Bucket& bucket : buckets) {
        if (!is_concerned(bucket)) continue;
        merged.push_back(bucket);
        merged.back().merged = 0;
        all += static_cast<std::int64_t>(bucket.samples.size());
    }
    const std::size_t before = merged.size();
    merge_small(merged, shape, [](const Bucket&) { return true; });
    for (const Bucket& bucket : merged) {
        moved += bucket.merged;
        still_small += is_small(bucket, shape) ? 1 : 0;
    }
    for (const std::size_t b : small) {
        const auto count = static_cast<std::int64_t>(buckets[b].samples.size());
        const std::int64_t needed = repeats_needed(buckets[b], shape);
        lost += count;
        most = std::max(most, needed);
        more += count * (needed - buckets[b].repeats);
    }
    std::string merge = "none has another bucket to go to";
    if (merged.size() < before)
        merge = counted(moved, "sample") + " of " +
                counted(static_cast<std::int64_t>(before - merged.size()), "bucket") +
                " would go to the nearest other one" +
                (still_small == 0 ? "" : ", and " + counted(still_small, "bucket") + " would still be too small");
    return "merge (" + merge + "), drop (" + std::to_string(lost) + " of " + counted(all, "sample") +
           " would take no part) or repeat (repeats would be raised to as many as " + std::to_string(most) + ", for " +
           counted(more, "visit") + " more an epoch)";
}

/// Errc::small_bucket.
///
///   small  indices of the buckets that stay small
[[nodiscard]] inline Error small_bucket_error(const std::vector<Bucket>& buckets, const std::vector<std::size_t>& small,
                                              const BatchShape& shape, bool allow_oversubscription) {
    std::string list;
    std::string set_by_hand;
    std::int64_t most_needed = 0;
    std::int64_t fewest_turns = 0;
    for (const std::size_t b : small) {
        const Bucket& bucket = buckets[b];
        const std::int64_t turns = static_cast<std::int64_t>(bucket.samples.size()) * (bucket.repeats + 1);
        most_needed = std::max(most_needed, repeats_needed(bucket, shape));
        fewest_turns = list.empty() ? turns : std::min(fewest_turns, turns);
        if (const std::string id = "'" + bucket.dataset_id + "'";
            is_repeated(bucket, allow_oversubscription) && set_by_hand.find(id) == std::string::npos)
            set_by_hand += (set_by_hand.empty() ? "" : ", ") + id;
        list += (list.empty() ? "" : "; ") + shortage(bucket, shape);
    }
    std::string fix = "set repeats to " + std::to_string(most_needed) + " or more, or lower the effective batch to " +
                      std::to_string(fewest_turns) + " or less, or add pictures, or ";
    if (!set_by_hand.empty())
        fix += "remove repeats of data set " + set_by_hand +
               ": small_buckets repeat (allow_dataset_oversubscription) raises only repeats that are not set; or ";
    return Error{Errc::small_bucket,
                 "an effective batch is " + std::to_string(shape.effective()) + " samples (train_batch_size " +
                     std::to_string(shape.train_batch_size) + " x " + std::to_string(shape.ranks) +
                     " ranks x gradient_accumulation_steps " + std::to_string(shape.gradient_accumulation_steps) +
                     "), and not every bucket has as many an epoch: " + list,
                 fix + "set small_buckets to " + small_bucket_choices(buckets, small, shape) +
                     (set_by_hand.empty() ? "; allow_dataset_oversubscription is repeat for all data sets" : "")};
}

}  // namespace strata::datasets::detail
