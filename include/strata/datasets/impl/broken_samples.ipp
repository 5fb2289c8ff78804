#pragma once
// strata/datasets/impl/broken_samples.ipp - who was found broken, and how often another took the turn.

#include <algorithm>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/broken_samples.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/impl/report.ipp>
#include <strata/datasets/sample_fields.hpp>

namespace strata::datasets {

STRATA_INLINE bool BrokenSamples::contains(const Sample& sample) const {
    const std::lock_guard lock{mutex_};
    return found_.contains(&sample);
}

STRATA_INLINE void BrokenSamples::add_known(const Sample& sample, Skipped why) {
    const std::lock_guard lock{mutex_};
    if (found_.emplace(&sample, Found{why}).second) known_.push_back(std::move(why));
}

STRATA_INLINE void BrokenSamples::add(const Sample& sample, Skipped why) {
    const std::lock_guard lock{mutex_};
    found_.emplace(&sample, Found{std::move(why)});
}

STRATA_INLINE void BrokenSamples::count_turn(const Sample& sample) {
    const std::lock_guard lock{mutex_};
    ++found_[&sample].turns;
}

STRATA_INLINE std::vector<Skipped> BrokenSamples::known() const {
    const std::lock_guard lock{mutex_};
    return known_;
}

STRATA_INLINE std::string BrokenSamples::pack() const {
    const std::lock_guard lock{mutex_};
    FieldWriter fields;
    for (const auto& [sample, found] : found_)
        if (found.turns > 0) fields << found.why << found.turns;
    return fields.bytes();
}

STRATA_INLINE std::vector<std::string> BrokenSamples::lines(const std::vector<std::string>& packed) {
    std::map<std::string, Skipped> samples;  // by place
    std::int64_t turns = 0;
    for (const std::string& bytes : packed)
        for (FieldReader fields{bytes}; !fields.empty();) {
            Skipped one;
            fields >> one;
            turns += fields.integer();
            samples.emplace(one.place, one);
        }
    if (samples.empty()) return {};
    std::vector<const Skipped*> named;
    for (const auto& [place, one] : samples) named.push_back(&one);
    const auto count = static_cast<std::int64_t>(named.size());
    constexpr std::int64_t most_names = 5;
    return {"broken samples: " + std::to_string(turns) + (turns == 1 ? " turn of " : " turns of ") +
            std::to_string(count) + (count == 1 ? " sample" : " samples") +
            " went to the next of the bucket: " + detail::first_few(count, most_names, [&](std::int64_t i) {
                return detail::with_detail(*named[static_cast<std::size_t>(i)]);
            })};
}

STRATA_INLINE void throw_broken_bucket(const Bucket& bucket, const std::string& first) {
    throw Error{Errc::broken_bucket,
                "none of the " + std::to_string(bucket.samples.size()) + " samples of bucket " +
                    std::to_string(bucket.size.width) + " x " + std::to_string(bucket.size.height) + " of data set '" +
                    bucket.dataset_id + "' can be used; one of them is '" + first + "'",
                "mend or remove the files of that bucket"};
}

}  // namespace strata::datasets
