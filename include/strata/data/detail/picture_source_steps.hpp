#pragma once
// strata/data/detail/picture_source_steps.hpp - what the nodes of a source's graph do to a sample and to a group.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/random.hpp>
#include <strata/core/text.hpp>
#include <strata/data/detail/picture_source_body.hpp>
#include <strata/datasets/cache_identity.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/picture_fault.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::data::detail {

template <class Store>
std::string PictureSourceBody<Store>::picture_identity(const SampleWork& work) const {
    const bool is_of_epoch = sources_[work.dataset].caching == datasets::LatentCaching::each_epoch;
    return datasets::latent_identity(recipe_->picture_id(), work.content, work.frame,
                                     is_of_epoch ? std::optional{work.epoch} : std::nullopt);
}

template <class Store>
std::string PictureSourceBody<Store>::caption_identity(const SampleWork& work) const {
    return datasets::text_identity(recipe_->caption_id(), *work.caption);
}

template <class Store>
typename PictureSourceBody<Store>::Graph::Steps PictureSourceBody<Store>::graph_steps() {
    typename Graph::Steps steps;
    // A picture whose entry was found when it was read is neither decoded nor framed.
    const auto is_wanted = [](const SampleWork& work) { return work.picture_outcome != CacheOutcome::found; };
    steps.fetch = [this](SampleWork& work) {
        bool goes_on = false;
        named(work, [&] { goes_on = fetch(work); });
        return goes_on;
    };
    steps.bytes = [](const SampleWork& work) { return bytes_taken(work); };
    steps.read = [this](SampleWork& work) { named(work, [&] { as_fault_of_picture(work, [&] { read(work); }); }); };
    steps.decode = [this, is_wanted](SampleWork& work) {
        if (!is_wanted(work)) return;
        const std::string place = "'" + sources_[work.dataset].pictures.where(work.sample->key) + "'";
        named(work, [&] { as_fault_of_picture(work, [&] { detail::decode(work, place); }); });
        // A set that is scanned has its notes from there.
        if (!list_.images[work.dataset].scan_for_errors) notes_.add(work.dataset, work.sample->key, work.decoded.note);
    };
    steps.frame = [this, is_wanted](SampleWork& work) {
        if (is_wanted(work)) named(work, [&] { detail::frame(work); });
    };
    steps.encode = [this](Group& group) { encode(group); };
    steps.keep = [this](Group& group) { keep(group); };
    steps.collate = [this](Group& group) { collate(group); };
    return steps;
}

/// True where the picture must be encoded.
template <class Store>
bool PictureSourceBody<Store>::fetch(SampleWork& work) {
    if (!work.is_looked_up) {
        if (work.sample != nullptr) look_up_picture(work);
        if (work.wants_caption) {
            if (!work.caption) {
                const datasets::PictureSet& set = collection_.sets()[work.dataset];
                work.caption =
                    sources_[work.dataset].captions.caption(datasets::found_captions(*work.sample, set.settings),
                                                            core::combine({work.random, SourcePurpose::caption}));
            }
            look_up_caption(work);
        }
    }
    return work.sample != nullptr && work.picture_outcome != CacheOutcome::found;
}

template <class Store>
void PictureSourceBody<Store>::look_up_picture(SampleWork& work) const {
    const Sources& source = sources_[work.dataset];
    if (source.caching == datasets::LatentCaching::none) {
        work.picture_outcome = CacheOutcome::made;
        return;
    }
    work.content = contents_->of(*work.sample);
    if (work.content)
        look_up_content(work);
    else
        work.picture_outcome = CacheOutcome::made;  // unless it turns out to be there when the file is read
}

/// Under what the file holds.
template <class Store>
void PictureSourceBody<Store>::look_up_content(SampleWork& work) const {
    work.picture_outcome = look_up(sources_[work.dataset].latents, picture_identity(work),
                                   recipe_->picture_tensors(work.frame.target), work.picture_tensors);
}

template <class Store>
void PictureSourceBody<Store>::look_up_caption(SampleWork& work) const {
    work.caption_outcome =
        look_up(texts_[work.texts], caption_identity(work), recipe_->caption_tensors(), work.caption_tensors);
}

/// The entry's tensors, if it has those that are wanted.
template <class Store>
CacheOutcome PictureSourceBody<Store>::look_up(const TensorCache<Store>& cache, const std::string& identity,
                                               const std::vector<TensorSpec>& specs, NamedTensors& tensors) {
    auto found = cache.find(identity, [&](const NamedTensors& those) { return mismatch(those, specs).empty(); });
    if (found.tensors) tensors = std::move(*found.tensors);
    return found.outcome;
}

template <class Store>
void PictureSourceBody<Store>::read(SampleWork& work) const {
    const Sources& source = sources_[work.dataset];
    const std::string place = "'" + source.pictures.where(work.sample->key) + "'";
    pictures::require_file_within({}, work.sample->bytes, place);
    if (source.caching == datasets::LatentCaching::none) {
        work.file = source.pictures.get(work.sample->key);
    } else {
        storage::VersionedBytes file = storage::get_versioned(source.pictures, work.sample->key);
        const storage::ContentHash content = contents_->learn(work.dataset, *work.sample, file);
        if (content != work.content) {  // nobody knew it, or the file was replaced: its entry may be there
            work.content = content;
            look_up_content(work);
            if (work.picture_outcome == CacheOutcome::found) return;
        }
        work.file = std::move(file.bytes);
    }
    work.header = pictures::image_header(work.file, place);
    pictures::require_within({}, work.header->stored, place);
}

/// An error about a picture, that names the entry which should have been there.
template <class Store>
Error PictureSourceBody<Store>::picture_failure(const SampleWork& work, Errc code, const std::string& problem,
                                                const std::string& fix) const {
    const Sources& source = sources_[work.dataset];
    const bool has_entry = source.caching != datasets::LatentCaching::none;
    return {code,
            (has_entry ? cannot_remake(work.picture_outcome, source.latents.where(picture_identity(work)))
                       : std::string{}) +
                problem,
            fix};
}

template <class Store>
template <class Call>
void PictureSourceBody<Store>::as_fault_of_picture(const SampleWork& work, const Call& call) const {
    try {
        call();
    } catch (const Error& error) {
        if (pictures::is_picture_fault(error.code()) || error.code() == Errc::not_found)
            throw PictureFailure{picture_failure(work, error.code(), error.problem(), error.fix()), work.dataset,
                                 *work.sample};
        throw;
    }
}

/// While training: what fails names the sample.
template <class Store>
template <class Call>
void PictureSourceBody<Store>::named(const SampleWork& work, const Call& call) const {
    if (!prepared_ || work.sample == nullptr) return call();
    try {
        call();
    } catch (const PictureFailure&) {
        throw;  // next_batch() says what becomes of it
    } catch (const Error& error) {
        if (error.code() == Errc::interrupted) throw;
        throw Error{error.code(), name_of(work.dataset, *work.sample) + ": " + error.problem(), error.fix()};
    } catch (const std::exception& failure) {
        throw Error{
            Errc::sample_failed,
            name_of(work.dataset, *work.sample) + " cannot be made: " + std::string{core::first_line(failure.what())},
            "mend what the message names, or take the sample out of the data set"};
    }
}

/// All that is missing, in batches. A group may show a picture or a caption twice, or two pictures that hold the same:
/// they are encoded once.
template <class Store>
void PictureSourceBody<Store>::encode(Group& group) {
    // All of one size. By what they hold, where their tensors are cached under it, else by their names.
    std::map<std::pair<const datasets::Sample*, std::string>, std::vector<std::size_t>> pictures;
    std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>> captions;
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
        const SampleWork& work = group.samples[i];
        if (group.failures[i]) continue;
        if (work.pixels_3HW.defined())
            pictures[work.content ? std::pair<const datasets::Sample*, std::string>{nullptr, picture_identity(work)}
                                  : std::pair{work.sample, std::string{}}]
                .push_back(i);
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
    PictureBatch batch;
    std::vector<at::Tensor> rows;
    for (const std::vector<std::size_t>& indices : part) {
        const SampleWork& work = group.samples[indices[0]];
        rows.push_back(work.pixels_3HW);
        batch.geometry.push_back({work.sample->size, work.frame});
    }
    batch.pixels_B3HW = rows.size() == 1 ? rows.front().unsqueeze(0) : stack_rows(rows);
    try {
        const std::vector<NamedTensors> made = recipe_->encode_pictures(std::move(batch));
        for (std::size_t k = 0; k < part.size(); ++k)
            for (const std::size_t i : part[k]) {
                group.samples[i].picture_tensors = made[k];
                group.samples[i].pixels_3HW.reset();
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

/// What was made goes into the caches, and while training is noted.
template <class Store>
void PictureSourceBody<Store>::keep(Group& group) {
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
        SampleWork& work = group.samples[i];
        if (group.failures[i]) continue;
        if (work.sample != nullptr && work.picture_outcome != CacheOutcome::found) {
            const Sources& source = sources_[work.dataset];
            if (source.caching != datasets::LatentCaching::none) {
                std::string identity = picture_identity(work);
                source.latents.put(identity, work.picture_tensors);
                const std::lock_guard lock{mutex_};
                if (prepared_ && work.picture_outcome != CacheOutcome::made)
                    remade_latents_[work.picture_outcome].insert(source.latents.where(identity));
                if (source.caching == datasets::LatentCaching::each_epoch)
                    of_epoch_[work.epoch].push_back({work.dataset, std::move(identity)});
            }
        }
        if (work.wants_caption && work.caption_outcome != CacheOutcome::found) {
            const std::string identity = caption_identity(work);
            texts_[work.texts].put(identity, work.caption_tensors);
            if (!prepared_ || work.caption_outcome == CacheOutcome::made) continue;
            const std::lock_guard lock{mutex_};
            remade_texts_[work.caption_outcome].insert(texts_[work.texts].where(identity));
        }
    }
}

template <class Store>
void PictureSourceBody<Store>::collate(Group& group) {
    if (ends_epochs_) remove_some_stale();
    std::vector<Example> examples;
    examples.reserve(group.samples.size());
    for (const SampleWork& work : group.samples) {
        if (work.replaced != nullptr) broken_.count_turn(*work.replaced);
        examples.push_back({work.picture_tensors, work.caption_tensors, Geometry{work.sample->size, work.frame},
                            *work.caption, work.is_dropped, sources_[work.dataset].pictures.where(work.sample->key),
                            work.random, collection_.sets()[work.dataset].settings.is_regularisation_data});
    }
    group.made = recipe_->collate(examples);
    examples.clear();
    group.samples.clear();
}

}  // namespace strata::data::detail
