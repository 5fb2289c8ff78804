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
    std::vector<datasets::ConditioningContent> conditioning;
    for (std::size_t p = 1; p < work.parts.size(); ++p)
        conditioning.push_back({work.parts[p].kind, work.parts[p].content});
    return datasets::latent_identity(recipe_->picture_id(), work.parts.front().content, work.frame,
                                     is_of_epoch ? std::optional{work.epoch} : std::nullopt, conditioning);
}

/// Takes what is known of the files; true where that is all of them.
template <class Store>
bool PictureSourceBody<Store>::know_contents(SampleWork& work) const {
    bool all = true;
    for (std::size_t p = 0; p < work.parts.size(); ++p) {
        work.parts[p].content = contents_->of(*work.sample, p);
        all = all && work.parts[p].content;
    }
    return all;
}

/// Of one of a sample's files.
template <class Store>
typename PictureSourceBody<Store>::File PictureSourceBody<Store>::file_of(const SampleWork& work, std::size_t p) const {
    if (p == 0) return {sources_[work.dataset].pictures, work.sample->key, work.sample->bytes};
    const datasets::ConditioningPicture& one = work.sample->conditioning[p - 1];
    return {*conditioning_[one.set], one.key, one.bytes};
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
        named(work, [&] {
            as_fault_of_picture(work, [&] {
                for (std::size_t p = 0; p < work.parts.size(); ++p)
                    detail::decode(work.parts[p], work.frame, file_of(work, p).shown());
            });
        });
        // A set that is scanned has its notes from there.
        if (!list_.images[work.dataset].scan_for_errors)
            notes_.add(work.dataset, work.sample->key, work.parts.front().decoded.note);
    };
    steps.frame = [this, is_wanted](SampleWork& work) {
        if (!is_wanted(work)) return;
        named(work, [&] {
            for (PictureWork& part : work.parts) detail::frame(part, work.frame);
        });
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
    if (know_contents(work))
        look_up_content(work);
    else
        work.picture_outcome = CacheOutcome::made;  // unless it turns out to be there when the files are read
}

/// Under what the files hold.
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
    const bool is_cached = sources_[work.dataset].caching != datasets::LatentCaching::none;
    bool has_news = false;
    for (std::size_t p = 0; p < work.parts.size(); ++p) {
        PictureWork& part = work.parts[p];
        const File from = file_of(work, p);
        pictures::require_file_within({}, from.bytes, from.shown());
        if (!is_cached) {
            part.file = from.store.get(from.key);
            continue;
        }
        storage::VersionedBytes file = storage::get_versioned(from.store, from.key);
        const storage::ContentHash content = contents_->learn(work.dataset, *work.sample, file, p);
        has_news |= content != part.content;
        part.content = content;
        part.file = std::move(file.bytes);
    }
    if (has_news) {  // nobody knew a file, or it was replaced: the entry may be there
        look_up_content(work);
        if (work.picture_outcome == CacheOutcome::found) {
            for (PictureWork& part : work.parts) std::vector<std::byte>{}.swap(part.file);
            return;
        }
    }
    for (std::size_t p = 0; p < work.parts.size(); ++p) {
        const std::string place = file_of(work, p).shown();
        work.parts[p].header = pictures::image_header(work.parts[p].file, place);
        pictures::require_within({}, work.parts[p].header->stored, place);
    }
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
