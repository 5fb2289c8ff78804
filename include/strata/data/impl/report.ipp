#pragma once
// strata/data/impl/report.ipp - the report in words.

#include <algorithm>

#include <strata/core/inline.hpp>
#include <strata/data/report.hpp>

namespace strata::data {

STRATA_INLINE std::string_view name_of(SkipReason reason) noexcept {
    switch (reason) {
        case SkipReason::no_caption: return "no caption";
        case SkipReason::below_minimum_size: return "below the minimum size";
        case SkipReason::outside_aspect_ratio: return "outside the aspect ratios";
        case SkipReason::unreadable: return "unreadable";
        case SkipReason::unsupported_format: return "not a supported format";
        case SkipReason::not_in_table: return "not in the table";
    }
    return "skipped";
}

STRATA_INLINE std::int64_t Report::count(SkipReason reason) const noexcept {
    return std::count_if(skipped.begin(), skipped.end(), [&](const Skipped& s) { return s.reason == reason; });
}

STRATA_INLINE std::vector<std::string> Report::lines(std::int64_t most_names) const {
    std::vector<std::string> all;
    all.push_back(std::to_string(found) + " pictures found, " + std::to_string(used) + " used, " +
                  std::to_string(skipped.size()) + " skipped");
    for (int i = 0; i < skip_reasons; ++i) {
        const auto reason = static_cast<SkipReason>(i);
        const std::int64_t total = count(reason);
        if (total == 0) continue;
        all.push_back("  " + std::to_string(total) + " skipped, " + std::string{name_of(reason)} + ":");
        std::int64_t named = 0;
        for (const Skipped& one : skipped) {
            if (one.reason != reason || named >= most_names) continue;
            all.push_back("    " + one.place + (one.detail.empty() ? "" : " (" + one.detail + ")"));
            ++named;
        }
        if (total > named) all.push_back("    and " + std::to_string(total - named) + " more");
    }
    for (const std::string& note : notes) all.push_back("  " + note);
    for (const BucketReport& bucket : buckets) {
        std::string line = "  bucket " + std::to_string(bucket.width) + " x " + std::to_string(bucket.height) +
                           (bucket.shapes > 1 ? " and " + std::to_string(bucket.shapes - 1) + " other sizes" : "") +
                           " of '" + bucket.dataset + "': " + std::to_string(bucket.count) + " samples, " +
                           std::to_string(bucket.repeats) + " repeats";
        if (bucket.repeats != bucket.repeats_asked)
            line += " (raised from " + std::to_string(bucket.repeats_asked) + " to hold an effective batch of " +
                    std::to_string(effective_batch) + ")";
        all.push_back(line);
    }
    const auto cache = [&all](const char* name, const CacheReport& report) {
        all.push_back("  " + std::string{name} + ": " + std::to_string(report.entries) + " cached, " +
                      std::to_string(report.made) + " of them made now");
        for (const std::string& place : report.rebuilt) all.push_back("    damaged and made again: " + place);
    };
    cache("latents", latents);
    cache("captions", texts);
    all.push_back("  " + std::to_string(steps_per_epoch) + " steps an epoch, each of an effective batch of " +
                  std::to_string(effective_batch) + " samples");
    return all;
}

}  // namespace strata::data
