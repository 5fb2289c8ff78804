#pragma once
// strata/datasets/impl/catalog_judgement.ipp - which pictures of a data set can be used, and why the others cannot.

#include <utility>

#include <strata/core/inline.hpp>
#include <strata/datasets/caption_files.hpp>
#include <strata/datasets/detail/catalog.hpp>
#include <strata/datasets/picture_notes.hpp>
#include <strata/datasets/sample_choice.hpp>
#include <strata/pictures/buckets.hpp>
#include <strata/pictures/formats.hpp>

namespace strata::datasets::detail {

STRATA_INLINE std::vector<Sample> Catalog::damaged() const {
    std::vector<Sample> samples;
    for (const IndexedPicture& picture : pictures_)
        if (picture.pixel_fault && picture.pixel_fault->damaged) samples.push_back(picture.sample);
    return samples;
}

STRATA_INLINE void Catalog::removed(const std::string& key, const std::string& note) {
    notes_.push_back(note);
    const std::size_t index = find(key);
    gone_.push_back(key);
    IndexedPicture& picture = pictures_[index];
    picture.pixel_fault->detail = "deleted: " + picture.pixel_fault->detail;
}

STRATA_INLINE void Catalog::looked_again(const std::string& key, const std::optional<PictureFault>& fault,
                                         const std::string& failure) {
    const std::size_t index = find(key);
    IndexedPicture& picture = pictures_[index];
    picture.pixel_fault = fault ? std::make_unique<PictureFault>(*fault) : nullptr;
    picture.decoded = failure.empty();
    if (!failure.empty()) failures_[index] = failure;
    touch(index);
}

STRATA_INLINE std::optional<Skipped> Catalog::judge(const IndexedPicture& picture, std::size_t index) const {
    const auto skip = [&](SkipReason reason, std::string detail) {
        return Skipped{dataset_.id, {}, reason, std::move(detail)};
    };
    if (const auto failure = failures_.find(index); failure != failures_.end())
        return skip(SkipReason::unreadable, failure->second);
    if (picture.pixel_fault) return skip(picture.pixel_fault->reason, picture.pixel_fault->detail);
    if (picture.size_fault) return skip(picture.size_fault->reason, picture.size_fault->detail);
    if (dataset_.is_conditioning()) return std::nullopt;  // sizes and captions are those of the pictures it belongs to
    if (picture.sample.caption.empty())
        return skip(SkipReason::no_caption, captions_ == CaptionFile::json    ? "no text 'caption' in its .json"
                                            : captions_ == CaptionFile::table ? "no text in '" + table_place_ + "'"
                                                                              : "");
    const pictures::PictureSize size = picture.sample.size;
    const std::string shown = std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
    if (!pictures::is_large_enough(size, dataset_)) return skip(SkipReason::below_minimum_size, shown);
    const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
    if (ratio < dataset_.minimum_aspect_ratio || ratio > dataset_.maximum_aspect_ratio)
        return skip(SkipReason::outside_aspect_ratio, shown);
    return std::nullopt;
}

STRATA_INLINE Discovered Catalog::finish(const std::function<std::string(const std::string& key)>& where) {
    keep({{"listed", std::string{name_of(captions_)}}, {"decodes", pictures::decoded_formats()}});
    index_.reset();
    Discovered result;
    result.found = found();
    result.examined = to_examine();
    if (noted_ > 0) notes_.push_back(picture_note_line(dataset_.id, first_noted_, first_note_, noted_));
    result.notes = std::move(notes_);
    result.samples.reserve(pictures_.size());
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
        IndexedPicture& picture = pictures_[i];
        if (captions_ == CaptionFile::none) {
            const bool by_name =
                !dataset_.only_instance_prompt && dataset_.caption_strategy == config::CaptionStrategy::filename;
            picture.sample.caption = by_name ? caption_from_name(picture.sample.key) : dataset_.instance_prompt;
            picture.sample.other_captions.clear();
        }
        if (std::optional<Skipped> skipped = judge(picture, i)) {
            skipped->place = where(picture.sample.key);
            result.skipped.push_back(std::move(*skipped));
        } else {
            result.samples.push_back(std::move(picture.sample));
        }
    }
    std::vector<IndexedPicture>{}.swap(pictures_);
    std::vector<std::string_view> keys;
    keys.reserve(result.samples.size());
    for (const Sample& sample : result.samples) keys.push_back(sample.key);
    const std::vector<std::size_t> chosen = chosen_samples(keys, dataset_.id, dataset_.max_num_samples);
    if (chosen.size() == result.samples.size()) return result;
    result.notes.push_back("data set '" + dataset_.id + "': " + std::to_string(chosen.size()) + " of " +
                           std::to_string(result.samples.size()) + " pictures are used (max_num_samples)");
    std::vector<Sample> kept;
    kept.reserve(chosen.size());
    for (const std::size_t i : chosen) kept.push_back(std::move(result.samples[i]));
    result.samples = std::move(kept);
    return result;
}

}  // namespace strata::datasets::detail
