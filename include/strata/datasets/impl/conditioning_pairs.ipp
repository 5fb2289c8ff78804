#pragma once
// strata/datasets/impl/conditioning_pairs.ipp - names to pictures, and samples to pairs.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <strata/core/error.hpp>
#include <strata/datasets/conditioning_pairs.hpp>
#include <strata/datasets/impl/caption_files.ipp>

namespace strata::datasets {

namespace detail {

/// True where no size of whole pixels near `other` has the ratio of `size`.
inline bool is_stretched(const pictures::PictureSize& size, const pictures::PictureSize& other) noexcept {
    const auto ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
    const auto width = static_cast<double>(other.width);
    const auto height = static_cast<double>(other.height);
    return std::abs(width - height * ratio) > 1 && std::abs(height - width / ratio) > 1;
}

inline std::string size_words(const pictures::PictureSize& size) {
    return std::to_string(size.width) + " x " + std::to_string(size.height);
}

}  // namespace detail

STRATA_INLINE Partners::Partners(std::size_t set, const config::ImageDataset& dataset, std::vector<Sample> samples,
                                 std::string place)
    : set_{set},
      id_{dataset.id},
      kind_{kind_of(dataset.conditioning_type)},
      samples_{std::move(samples)},
      place_{std::move(place)},
      is_found_(samples_.size(), 0) {
    names_.reserve(samples_.size());
    for (std::size_t i = 0; i < samples_.size(); ++i)
        names_.emplace_back(detail::without_extension(samples_[i].key), i);
    std::sort(names_.begin(), names_.end());
}

STRATA_INLINE const Sample* Partners::find(std::string_view key) {
    const std::string_view name = detail::without_extension(key);
    const auto first = std::lower_bound(names_.begin(), names_.end(), name,
                                        [](const auto& one, std::string_view n) { return one.first < n; });
    auto found = first;
    const auto has_name = [&](auto at) { return at != names_.end() && at->first == name; };
    while (has_name(found) && samples_[found->second].key != key) ++found;
    if (!has_name(found)) {
        if (!has_name(first)) return nullptr;
        if (has_name(first + 1))
            throw Error{Errc::ambiguous_pair,
                        "picture '" + std::string{key} + "' has two conditioning pictures of its name in data set '" +
                            id_ + "': '" + samples_[first->second].key + "' and '" + samples_[(first + 1)->second].key +
                            "'",
                        "remove one of them from '" + place_ + "', or give one the picture's extension"};
        found = first;
    }
    is_found_[found->second] = 1;
    return &samples_[found->second];
}

STRATA_INLINE ConditioningPicture Partners::part(const Sample& found) const {
    return {set_, kind_, found.key, found.version, found.bytes, found.size, found.content};
}

STRATA_INLINE std::string Partners::place() const {
    return "'" + place_ + "', which " +
           (samples_.empty() ? "has none that can be used" : "has '" + samples_.front().key + "' first");
}

STRATA_INLINE std::vector<std::string> Partners::unused() const {
    const auto count = std::count(is_found_.begin(), is_found_.end(), 0);
    if (count == 0) return {};
    const auto first = static_cast<std::size_t>(std::find(is_found_.begin(), is_found_.end(), 0) - is_found_.begin());
    return {"conditioning data set '" + id_ + "': " + std::to_string(count) + " of " + std::to_string(samples_.size()) +
            " pictures belong to no picture that is used; the first is " + samples_[first].key};
}

STRATA_INLINE void pair_conditioning(Discovered& found, const config::ImageDataset& dataset, Partners& partners,
                                     const std::function<std::string(const std::string& key)>& where) {
    std::vector<Sample> paired;
    paired.reserve(found.samples.size());
    std::int64_t stretched = 0;
    std::string first_stretched;
    std::string first_missing;
    for (Sample& sample : found.samples) {
        const Sample* const partner = partners.find(sample.key);
        if (partner == nullptr) {
            const std::string name{detail::without_extension(sample.key)};
            if (first_missing.empty()) first_missing = name;
            found.skipped.push_back({dataset.id, where(sample.key), SkipReason::unpaired,
                                     "no '" + name + "' in data set '" + partners.id() + "'"});
            continue;
        }
        if (detail::is_stretched(sample.size, partner->size) && ++stretched == 1)
            first_stretched = sample.key + " (" + detail::size_words(sample.size) + ", and " +
                              detail::size_words(partner->size) + ")";
        sample.conditioning.push_back(partners.part(*partner));
        paired.push_back(std::move(sample));
    }
    if (paired.empty() && !found.samples.empty())
        throw Error{Errc::no_pairs,
                    "data set '" + dataset.id + "': none of its " + std::to_string(found.samples.size()) +
                        " pictures has one of its name in conditioning data set '" + partners.id() + "'; '" +
                        first_missing + "' was looked for in " + partners.place(),
                    "give both the same name below their folders, a/b.jpg and a/b.png, or correct the folder of '" +
                        partners.id() + "'"};
    found.samples = std::move(paired);
    if (stretched > 0)
        found.notes.push_back("data set '" + dataset.id + "': conditioning pictures of '" + partners.id() +
                              "' with another aspect ratio than their pictures, to which they are stretched: " +
                              std::to_string(stretched) + "; the first is of " + first_stretched);
}

}  // namespace strata::datasets
