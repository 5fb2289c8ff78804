#pragma once
// strata/datasets/impl/report.ipp - the report in words.

#include <algorithm>
#include <map>
#include <system_error>

#include <strata/core/inline.hpp>
#include <strata/core/printable.hpp>
#include <strata/datasets/report.hpp>
#include <strata/storage/atomic_file.hpp>

namespace strata::datasets {

STRATA_INLINE std::string_view name_of(SkipReason reason) noexcept {
    switch (reason) {
        case SkipReason::no_caption:
            return "no caption";
        case SkipReason::below_minimum_size:
            return "below the minimum size";
        case SkipReason::outside_aspect_ratio:
            return "outside the aspect ratios";
        case SkipReason::unreadable:
            return "unreadable";
        case SkipReason::unsupported_format:
            return "not a supported format";
        case SkipReason::not_in_table:
            return "not in the table";
        case SkipReason::small_bucket:
            return "in a bucket that is too small";
        case SkipReason::unpaired:
            return "without a conditioning picture";
    }
    return "skipped";
}

STRATA_INLINE std::int64_t Report::count(SkipReason reason) const noexcept {
    return std::count_if(skipped.begin(), skipped.end(), [&](const Skipped& s) { return s.reason == reason; });
}

namespace detail {

/// "a, b, c and 4 more"; `name(i)` for the i-th of `total`.
template <class Name>
std::string first_few(std::int64_t total, std::int64_t most, const Name& name) {
    std::string text;
    for (std::int64_t i = 0; i < std::min(total, most); ++i) text += (i == 0 ? "" : ", ") + name(i);
    return total > most ? text + " and " + std::to_string(total - most) + " more" : text;
}

inline std::string with_detail(const Skipped& one) {
    return one.place + (one.detail.empty() ? "" : " (" + one.detail + ")");
}

}  // namespace detail

STRATA_INLINE std::vector<std::string> remade_lines(std::string_view what, const CacheReport& report) {
    std::vector<std::string> lines;
    constexpr std::int64_t most_names = 3;
    const auto add = [&](const std::vector<std::string>& places, const char* entry, const char* entries) {
        if (places.empty()) return;
        const auto total = static_cast<std::int64_t>(places.size());
        lines.push_back(std::string{what} + ": " + std::to_string(total) + " " + (total == 1 ? entry : entries) +
                        " made again: " + detail::first_few(total, most_names, [&](std::int64_t i) {
                            return places[static_cast<std::size_t>(i)];
                        }));
    };
    add(report.rebuilt, "damaged entry", "damaged entries");
    add(report.replaced, "entry of an earlier version, without check sum,",
        "entries of an earlier version, without check sums,");
    return lines;
}

STRATA_INLINE std::filesystem::path Report::write_skipped(const std::filesystem::path& file) const {
    if (skipped.empty()) {
        std::error_code none;
        std::filesystem::remove(file, none);
        return {};
    }
    std::string text;
    for (int i = 0; i < skip_reasons; ++i)
        for (const Skipped& one : skipped)
            if (one.reason == static_cast<SkipReason>(i))
                text.append(name_of(one.reason))
                    .append("\t" + core::printable(one.dataset))
                    .append("\t" + core::printable(one.place))
                    .append("\t" + core::printable(one.detail) + "\n");
    storage::write_file(file, text);
    return file;
}

STRATA_INLINE std::vector<std::string> Report::lines(const std::filesystem::path& names_file) const {
    std::vector<std::string> all;
    all.push_back(std::to_string(found) + " pictures found, " + std::to_string(used) + " used, " +
                  std::to_string(skipped.size()) + " skipped");
    for (int i = 0; i < skip_reasons; ++i) {
        const auto reason = static_cast<SkipReason>(i);
        std::vector<const Skipped*> those;
        for (const Skipped& one : skipped)
            if (one.reason == reason) those.push_back(&one);
        if (those.empty()) continue;
        // A person will want to mend these.
        const bool is_named = reason == SkipReason::unreadable || reason == SkipReason::unpaired;
        const auto total = static_cast<std::int64_t>(those.size());
        all.push_back("  " + std::to_string(total) + " skipped, " + std::string{name_of(reason)} + ": " +
                      detail::first_few(total, is_named ? 5 : 1, [&](std::int64_t k) {
                          return detail::with_detail(*those[static_cast<std::size_t>(k)]);
                      }));
    }
    if (!names_file.empty() && !skipped.empty())
        all.push_back("  what was skipped is listed in " + names_file.string());
    if (!broken.empty()) {
        const auto total = static_cast<std::int64_t>(broken.size());
        all.push_back("  " + std::to_string(total) + " broken, their turns go to the next of their bucket: " +
                      detail::first_few(total, 5, [&](std::int64_t k) {
                          return detail::with_detail(broken[static_cast<std::size_t>(k)]);
                      }));
    }
    for (const std::string& note : notes) all.push_back("  " + note);
    for (const BucketReport& bucket : buckets) {
        std::string line = "  bucket " + std::to_string(bucket.width) + " x " + std::to_string(bucket.height) +
                           (bucket.shapes > 1 ? " and " + std::to_string(bucket.shapes - 1) + " other sizes" : "") +
                           " of '" + bucket.dataset + "': " + std::to_string(bucket.count) + " samples, " +
                           std::to_string(bucket.repeats) + " repeats";
        if (bucket.repeats != bucket.repeats_asked)
            line += " (raised from " + std::to_string(bucket.repeats_asked) + " to hold an effective batch of " +
                    std::to_string(bucket.effective_batch) + ")";
        if (bucket.merged > 0) line += ", " + std::to_string(bucket.merged) + " of the samples from smaller buckets";
        all.push_back(line);
    }
    const auto cache = [&all](const char* name, const CacheReport& report) {
        all.push_back("  " + std::string{name} + ": " + std::to_string(report.entries) + " cached, " +
                      std::to_string(report.made) + " of them made now");
        for (const std::string& line : remade_lines(name, report)) all.push_back("  " + line);
    };
    cache("latents", latents);
    cache("captions", texts);
    std::map<std::string, std::int64_t> own;  // of data sets
    for (const BucketReport& bucket : buckets)
        if (bucket.effective_batch != effective_batch) own[bucket.dataset] = bucket.effective_batch;
    std::string steps = "  " + std::to_string(steps_per_epoch) + " steps an epoch, each of an effective batch of " +
                        std::to_string(effective_batch) + " samples";
    for (const auto& [dataset, batch] : own) steps += ", of '" + dataset + "' " + std::to_string(batch);
    all.push_back(std::move(steps));
    return all;
}

}  // namespace strata::datasets
