#pragma once
// strata/datasets/impl/captions.ipp - lines, tags, orders.

#include <algorithm>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/core/random.hpp>
#include <strata/core/text.hpp>
#include <strata/datasets/captions.hpp>
#include <strata/datasets/impl/caption_filter.ipp>

namespace strata::datasets {

namespace detail {

/// Calls take(part) for what stands between the separators, trimmed, if anything is left.
template <class Take>
void for_each_part(std::string_view text, char separator, const Take& take) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        if (const std::string_view part = core::trimmed(text.substr(0, end)); !part.empty()) take(part);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

}  // namespace detail

STRATA_INLINE std::vector<std::string> captions_in_text(std::string_view text, bool split) {
    std::vector<std::string> captions;
    detail::for_each_part(core::without_byte_order_mark(text), '\n', [&](std::string_view line) {
        if (split || captions.empty())
            captions.emplace_back(line);
        else
            (captions.front() += '\n') += line;
    });
    return captions;
}

STRATA_INLINE std::vector<std::string> found_captions(const Sample& sample, const config::ImageDataset& dataset) {
    if (dataset.caption_strategy == config::CaptionStrategy::textfile)
        return captions_in_text(sample.caption, !dataset.disable_multiline_split);
    std::vector<std::string> captions{sample.caption};
    captions.insert(captions.end(), sample.other_captions.begin(), sample.other_captions.end());
    return captions;
}

STRATA_INLINE ShuffledCaption::ShuffledCaption(std::string_view caption, const config::CaptionShuffle& shuffle,
                                               std::uint64_t seed)
    : caption_{caption} {
    if (!shuffle.enable) return;
    char separator = ',';
    separator_ = ", ";
    if (shuffle.split_on == config::CaptionSeparator::space) {
        separator = ' ';
        separator_ = " ";
    } else if (shuffle.split_on == config::CaptionSeparator::period) {
        separator = '.';
        separator_ = ". ";
        has_last_period_ = core::trimmed(caption).ends_with('.');
    }
    detail::for_each_part(caption, separator, [&](std::string_view tag) { tags_.emplace_back(tag); });
    fixed_ = static_cast<std::size_t>(shuffle.position_start);
    if (tags_.size() < fixed_ + 2) return;
    seed_ = core::combine({seed, core::number_of(caption)});
    originals_ = shuffle.include_original ? 1 : 0;
    orders_ = shuffle.count;
}

STRATA_INLINE std::string ShuffledCaption::at(std::int64_t number) const {
    if (number < originals_) return caption_;
    std::vector<std::string_view> tags(tags_.begin(), tags_.end());
    core::shuffle(tags.begin() + static_cast<std::ptrdiff_t>(fixed_), tags.end(),
                  core::Random{core::combine({seed_, static_cast<std::uint64_t>(number - originals_)})});
    std::string order;
    for (const std::string_view tag : tags) (order += order.empty() ? "" : separator_) += tag;
    if (has_last_period_) order += '.';
    return order;
}

STRATA_INLINE CaptionRule::CaptionRule(const config::ImageDataset& dataset, std::uint64_t seed) : seed_{seed} {
    if (dataset.only_instance_prompt) {
        only_ = dataset.instance_prompt;
        return;
    }
    if (dataset.prepend_instance_prompt && dataset.caption_strategy != config::CaptionStrategy::instanceprompt)
        prefix_ = dataset.instance_prompt + " ";
    if (dataset.caption_shuffle) shuffle_ = *dataset.caption_shuffle;
    if (shuffle_.seed) seed_ = static_cast<std::uint64_t>(*shuffle_.seed);
    filter_ = CaptionFilter{dataset.caption_filter_list, dataset.id};
}

STRATA_INLINE std::string CaptionRule::drawn(const std::vector<std::string>& left, std::uint64_t random) const {
    core::Random numbers{random};
    const std::string& one = left[numbers.below(left.size())];
    if (!shuffle_.enable) return prefix_ + one;
    const ShuffledCaption orders{one, shuffle_, seed_};
    return prefix_ + orders.at(static_cast<std::int64_t>(numbers.below(static_cast<std::uint64_t>(orders.count()))));
}

STRATA_INLINE std::string CaptionRule::caption(const std::vector<std::string>& found, std::uint64_t random) const {
    if (!only_.empty()) return only_;
    return drawn(filter_.empty() ? found : filter_.filtered(found), random);
}

STRATA_INLINE std::vector<std::string> CaptionRule::all(const std::vector<std::string>& found) const {
    if (!only_.empty()) return {only_};
    std::vector<std::string> captions;
    for (const std::string& one : filter_.empty() ? found : filter_.filtered(found)) {
        const ShuffledCaption orders{one, shuffle_, seed_};
        for (std::int64_t i = 0; i < orders.count(); ++i) captions.push_back(prefix_ + orders.at(i));
    }
    std::sort(captions.begin(), captions.end());
    captions.erase(std::unique(captions.begin(), captions.end()), captions.end());
    return captions;
}

}  // namespace strata::datasets
