#pragma once
// strata/datasets/impl/statistics.ipp - order statistics and counts.

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include <strata/datasets/captions.hpp>
#include <strata/datasets/statistics.hpp>

namespace strata::datasets {

STRATA_INLINE Spread spread_of(std::vector<double> numbers) {
    if (numbers.empty()) return {};
    const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
    std::nth_element(numbers.begin(), middle, numbers.end());
    Spread spread{*std::min_element(numbers.begin(), std::next(middle)), *middle,
                  *std::max_element(middle, numbers.end())};
    if (numbers.size() % 2 == 0) spread.median = (*std::max_element(numbers.begin(), middle) + *middle) / 2;
    return spread;
}

STRATA_INLINE PictureStatistics picture_statistics(const std::vector<Sample>& samples) {
    PictureStatistics all;
    std::vector<pictures::PictureSize> sizes;
    std::vector<double> megapixels;
    std::vector<double> ratios;
    std::vector<double> bytes;
    for (const Sample& sample : samples) {
        const auto width = static_cast<double>(sample.size.width);
        const auto height = static_cast<double>(sample.size.height);
        sizes.push_back(sample.size);
        megapixels.push_back(width * height / 1e6);
        ratios.push_back(width / height);
        bytes.push_back(static_cast<double>(sample.bytes));
        all.bytes += sample.bytes;
    }
    if (sizes.empty()) return all;
    const auto is_smaller = [](const pictures::PictureSize& a, const pictures::PictureSize& b) {
        return std::tuple{a.width * a.height, a.width} < std::tuple{b.width * b.height, b.width};
    };
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>((sizes.size() - 1) / 2);
    std::nth_element(sizes.begin(), middle, sizes.end(), is_smaller);
    all.count = static_cast<std::int64_t>(sizes.size());
    all.smallest = *std::min_element(sizes.begin(), std::next(middle), is_smaller);
    all.median = *middle;
    all.largest = *std::max_element(middle, sizes.end(), is_smaller);
    all.megapixels = spread_of(std::move(megapixels));
    all.aspect_ratio = spread_of(std::move(ratios));
    all.file_bytes = spread_of(std::move(bytes));
    return all;
}

STRATA_INLINE CaptionStatistics caption_statistics(const PictureSet& set, std::uint64_t seed) {
    const CaptionRule rule{set.settings, seed};
    CaptionStatistics all;
    std::set<std::string> different;
    for (const Sample& sample : set.samples) {
        const std::vector<std::string> found = found_captions(sample, set.settings);
        all.found += static_cast<std::int64_t>(found.size());
        for (std::string& caption : rule.all(found)) different.insert(std::move(caption));
    }
    std::vector<double> characters;
    while (!different.empty()) {
        std::string& caption = all.different.emplace_back(std::move(different.extract(different.begin()).value()));
        characters.push_back(static_cast<double>(std::count_if(
            caption.begin(), caption.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; })));
    }
    all.characters = spread_of(std::move(characters));
    return all;
}

STRATA_INLINE RoundStatistics round_statistics(const Bucket& bucket, std::int64_t global_batch) {
    const std::int64_t turns = static_cast<std::int64_t>(bucket.samples.size()) * (bucket.repeats + 1);
    const std::int64_t batches = (turns + global_batch - 1) / global_batch;
    return {turns, batches, batches * global_batch - turns};
}

STRATA_INLINE std::vector<std::int64_t> batches_by_set(const SamplePlan& plan, std::int64_t epoch, std::size_t sets) {
    std::vector<std::int64_t> counts(sets, 0);
    const std::int64_t end = plan.batches_before(epoch + 1);
    for (std::int64_t position = plan.batches_before(epoch); position < end; ++position)
        ++counts[static_cast<std::size_t>(plan.batch(position, 0, 0).dataset)];
    return counts;
}

}  // namespace strata::datasets
