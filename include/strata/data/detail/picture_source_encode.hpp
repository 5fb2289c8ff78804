#pragma once
// strata/data/detail/picture_source_encode.hpp - what is missing of a group's samples, encoded in batches.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/data/detail/picture_source_body.hpp>

namespace strata::data::detail {

/// All that is missing, in batches. A group may show a picture or a caption twice, or two pictures that hold the same:
/// they are encoded once.
template <class Store>
void PictureSourceBody<Store>::encode(Group& group) {
    // All of one size. By what they hold, where their tensors are cached under it, else by their names.
    std::map<std::pair<const datasets::Sample*, std::string>, std::vector<std::size_t>> pictures;
    const auto known_by = [this](const SampleWork& work) -> std::pair<const datasets::Sample*, std::string> {
        if (std::all_of(work.parts.begin(), work.parts.end(), [](const PictureWork& part) { return !!part.content; }))
            return {nullptr, picture_identity(work)};
        return {work.sample, {}};
    };
    std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>> captions;
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
        const SampleWork& work = group.samples[i];
        if (group.failures[i]) continue;
        if (work.has_pixels()) pictures[known_by(work)].push_back(i);
        if (work.wants_caption && work.caption_outcome != CacheOutcome::found)
            captions[{work.texts, *work.caption}].push_back(i);
    }
    const auto in_batches = [](const auto& all, std::int64_t together, const auto& encode_these) {
        std::vector<std::vector<std::size_t>> part;
        for (const auto& [what, indices] : all) {
            part.push_back(indices);
            if (static_cast<std::int64_t>(part.size()) >= together) encode_these(std::exchange(part, {}));
        }
        if (!part.empty()) encode_these(part);
    };
    in_batches(pictures, options_.vae_batch_size, [&](const auto& part) { encode_pictures(group, part); });
    in_batches(captions, options_.text_encoder_batch_size, [&](const auto& part) { encode_captions(group, part); });
    if (!prepared_) return;  // a damaged entry is made while training
    if (!pictures.empty() && !encodes_pictures_later_) recipe_->release_picture_encoders();
    if (!captions.empty() && !encodes_captions_later_) recipe_->release_caption_encoders();
}

///   part  samples of the group by picture
template <class Store>
void PictureSourceBody<Store>::encode_pictures(Group& group, std::span<const std::vector<std::size_t>> part) {
    const auto stacked = [&](std::size_t p) {
        std::vector<at::Tensor> rows;
        for (const std::vector<std::size_t>& indices : part) rows.push_back(group.samples[indices[0]].parts[p].pixels);
        return rows.size() == 1 ? rows.front().unsqueeze(0) : stack_rows(rows);
    };
    PictureBatch batch;
    for (const std::vector<std::size_t>& indices : part) {
        const SampleWork& work = group.samples[indices[0]];
        batch.geometry.push_back({work.sample->size, work.frame});
    }
    batch.pixels_B3HW = stacked(0);
    for (std::size_t p = 1; p < group.samples[part[0][0]].parts.size(); ++p) batch.conditioning.push_back(stacked(p));
    try {
        const std::vector<NamedTensors> made = recipe_->encode_pictures(std::move(batch));
        for (std::size_t k = 0; k < part.size(); ++k)
            for (const std::size_t i : part[k]) {
                group.samples[i].picture_tensors = made[k];
                for (PictureWork& one : group.samples[i].parts) one.pixels.reset();
                if (i != part[k][0]) group.samples[i].picture_outcome = CacheOutcome::found;  // kept once
            }
    } catch (const Error&) {
        throw;
    } catch (const std::exception& failure) {
        if (part.size() > 1) {  // one of them may be at fault, and the others not
            for (std::size_t k = 0; k < part.size(); ++k) encode_pictures(group, part.subspan(k, 1));
            return;
        }
        const SampleWork& work = group.samples[part[0][0]];
        const auto failed = std::make_exception_ptr(
            PictureFailure{picture_failure(work, Errc::bad_picture,
                                           "'" + sources_[work.dataset].pictures.where(work.sample->key) +
                                               "' cannot be encoded: " + std::string{core::first_line(failure.what())},
                                           "mend or remove the file, or the encoder"),
                           work.dataset, *work.sample});
        for (const std::size_t i : part[0]) group.failures[i] = failed;
    }
}

///   part  samples of the group by caption
template <class Store>
void PictureSourceBody<Store>::encode_captions(Group& group, std::span<const std::vector<std::size_t>> part) {
    std::vector<std::string> captions;
    for (const std::vector<std::size_t>& indices : part) captions.push_back(*group.samples[indices[0]].caption);
    try {
        const std::vector<NamedTensors> made = recipe_->encode_captions(captions);
        for (std::size_t k = 0; k < part.size(); ++k)
            for (const std::size_t i : part[k]) group.samples[i].caption_tensors = made[k];
    } catch (const std::exception& failure) {
        if (prepared_ && part.size() > 1) {  // which one is it?
            for (std::size_t k = 0; k < part.size(); ++k) encode_captions(group, part.subspan(k, 1));
            return;
        }
        const SampleWork& first = group.samples[part[0][0]];
        if (first.caption_outcome == CacheOutcome::made) {
            named(first, [] { throw; });
            throw;
        }
        throw Error{Errc::bad_cache_entry,
                    cannot_remake(first.caption_outcome, texts_[first.texts].where(caption_identity(first))) +
                        "the text encoder fails at '" + *first.caption +
                        "': " + std::string{core::first_line(failure.what())},
                    "mend the text encoder, or remove the caption"};
    }
}

}  // namespace strata::data::detail
