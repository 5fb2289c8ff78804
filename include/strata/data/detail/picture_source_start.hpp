#pragma once
// strata/data/detail/picture_source_start.hpp - how a source begins: its settings, its stores, and their report.

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/data/detail/picture_source_body.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/folder_place.hpp>
#include <strata/datasets/for_all.hpp>
#include <strata/datasets/ranks_on_machine.hpp>

namespace strata::data::detail {

template <class Store>
PictureSourceBody<Store>::PictureSourceBody(std::shared_ptr<comm::AnyComm> comm, config::DatasetList datasets,
                                            std::unique_ptr<LoadedRecipe> recipe, SourceOptions options)
    : comm_{std::move(comm)},
      options_{std::move(options)},
      list_{std::move(datasets)},
      machine_{datasets::ranks_on_machine(*comm_)},
      stores_{list_, options_.retry, {.say = machine_.is_first() ? options_.note : nullptr}},
      recipe_{std::move(recipe)},
      shape_{options_.train_batch_size, comm_->world(), options_.gradient_accumulation_steps, options_.each_once},
      rank_{comm_->rank()},
      collection_{options_.buckets()},
      dropped_{recipe_->dropped_caption()} {
    require_same_settings();
    require_settings_that_fit();
    require_conditioning_that_fits();
    share_the_cores();
    open_stores();
}

template <class Store>
void PictureSourceBody<Store>::require_same_settings() {
    datasets::FieldWriter settings;
    settings << settings_text(options_, list_) << static_cast<int>(options_.on_broken_sample)
             << static_cast<int>(options_.each_once) << recipe_->picture_id() << recipe_->caption_id();
    const std::vector<std::string> all =
        comm_->all_gather_varied(std::to_string(datasets::fingerprint({settings.bytes()})));
    for (std::size_t r = 1; r < all.size(); ++r)
        if (all[r] != all[0])
            throw Error{Errc::rank_mismatch, "rank " + std::to_string(r) + " has other data settings than rank 0",
                        "start every rank with the same configuration files"};
}

template <class Store>
void PictureSourceBody<Store>::require_settings_that_fit() const {
    const std::int64_t multiple = recipe_->alignment();
    if (multiple < 1 || options_.aspect_bucket_alignment % multiple != 0)
        throw Error{Errc::bad_value,
                    "aspect_bucket_alignment is " + std::to_string(options_.aspect_bucket_alignment) +
                        ", and the model takes pictures whose edges are multiples of " + std::to_string(multiple) +
                        " pixels",
                    "use a multiple of " + std::to_string(multiple)};
    for (const config::ImageDataset& settings : list_.images)
        if (settings.is_regularisation_data && !options_.trains_adapter)
            throw Error{
                Errc::bad_value,
                "is_regularisation_data of data set '" + settings.id +
                    "' is true: its pictures teach what the model predicts without its adapter, and this one has none",
                "set it to false, or disable the data set, or train an adapter (SourceOptions::trains_adapter)"};
}

template <class Store>
void PictureSourceBody<Store>::require_conditioning_that_fits() const {
    const std::vector<pictures::ConditioningKind> wanted = recipe_->conditioning();
    for (const config::ImageDataset& settings : list_.images) {
        std::vector<pictures::ConditioningKind> given;
        for (const std::size_t c : list_.conditioning_of(settings))
            given.push_back(datasets::kind_of(list_.conditioning[c].conditioning_type));
        if (given != wanted) refuse_conditioning(settings, given, wanted);
    }
}

/// The ranks of a host divide its cores among themselves.
template <class Store>
void PictureSourceBody<Store>::share_the_cores() {
    threads_ =
        options_.threads > 0 ? datasets::threads_for(options_.threads) : machine_.share_of(datasets::threads_for(0));
    const auto decoding = static_cast<int>(
        options_.decode_threads > 0 ? std::min<std::int64_t>(options_.decode_threads, threads_) : threads_);
    bounds_ = StepBounds::of(threads_, decoding, options_.decode_memory_bytes);
}

template <class Store>
void PictureSourceBody<Store>::open_stores() {
    const auto memory = std::make_shared<CacheMemory>(options_.cache_memory_bytes);
    const auto no_memory = std::make_shared<CacheMemory>(0);  // of entries that are soon of no use
    std::vector<datasets::Contents::Place> places;
    stores_.keep_indexes_in(options_.index_folder);  // those of tar shards, which are read when they are opened
    std::vector<datasets::Contents::Place> partner_places;
    conditioning_.resize(list_.conditioning.size());
    const auto place_of = [](const config::ImageDataset& settings, const Store& pictures) {
        return settings.type == config::StoreType::local ? datasets::folder_place(settings.instance_data_dir)
                                                         : pictures.where("");
    };
    const auto open = [&](const config::ImageDataset& settings) {
        const config::TextEmbeds& embeds = list_.text_embeds_of(settings);
        Store pictures = stores_.pictures(settings);
        const config::CachePlace cache = list_.latent_cache_of(settings);
        Store latents = stores_.cache(cache, "the latents of data set '" + settings.id + "'");
        places.push_back({settings.id, place_of(settings, pictures)});
        const datasets::LatentCaching caching = datasets::latent_caching(settings);
        const bool is_for_epochs = caching == datasets::LatentCaching::each_epoch;
        ends_epochs_ |= is_for_epochs;
        encodes_pictures_later_ |= caching != datasets::LatentCaching::ahead;
        encodes_captions_later_ |= settings.skip_file_discovery.text;
        largest_batch_ =
            std::max(largest_batch_, datasets::batch_shape(shape_, settings.train_batch_size).train_batch_size);
        sources_.push_back(
            {std::move(pictures),
             TensorCache<Store>{std::move(latents), cache.compress_disk_cache.value_or(options_.compress_disk_cache),
                                is_for_epochs ? no_memory : memory, is_for_epochs ? epoch_folder(settings.id) : ""},
             static_cast<std::size_t>(&embeds - list_.text_embeds.data()),
             datasets::CaptionRule{settings, options_.seed}, caching});
    };
    comm::agree(*comm_, [&] {  // credentials may be there on one host and not on another
        for (const config::TextEmbeds& embeds : list_.text_embeds) {
            const config::CachePlace place = config::text_cache_of(embeds);
            texts_.emplace_back(stores_.cache(place, "text embeds '" + embeds.id + "'"),
                                place.compress_disk_cache.value_or(options_.compress_disk_cache), memory);
        }
        for (const config::ImageDataset& settings : list_.images) open(settings);
        for (const config::ImageDataset& settings : list_.images)
            for (const std::size_t c : list_.conditioning_of(settings))
                if (!conditioning_[c]) conditioning_[c].emplace(stores_.pictures(list_.conditioning[c]));
        for (std::size_t c = 0; c < conditioning_.size(); ++c) {
            const config::ImageDataset& settings = list_.conditioning[c];
            partner_places.push_back({settings.id, conditioning_[c] ? place_of(settings, *conditioning_[c]) : ""});
        }
    });
    contents_ =
        std::make_unique<datasets::Contents>(options_.index_folder, std::move(places), std::move(partner_places));
}

template <class Store>
void PictureSourceBody<Store>::require_writable_caches() {
    comm::agree(*comm_, [&] {
        const auto require = [](const auto& cache, const std::string& what) {
            try {
                cache.require_writable();
            } catch (const Error& error) {
                if (error.code() != Errc::not_found && error.code() != Errc::io_failed) throw;
                throw Error{Errc::bad_reference,
                            what + " is '" + cache.where() + "', which cannot be written: " + error.problem(),
                            "name a folder that every rank can write, or change its permissions"};
            }
        };
        for (std::size_t d = 0; d < sources_.size(); ++d)
            if (sources_[d].caching != datasets::LatentCaching::none)
                require(sources_[d].latents, "'cache_dir_vae' of data set '" + list_.images[d].id + "'");
        for (std::size_t i = 0; i < texts_.size(); ++i)
            require(texts_[i], "'cache_dir' of text embeds '" + list_.text_embeds[i].id + "'");
    });
}

/// A folder of caches may be each host's own.
template <class Store>
void PictureSourceBody<Store>::find_cache_keepers() {
    struct Marks {
        std::vector<const TensorCache<Store>*> caches;
        std::string token;
        [[nodiscard]] std::string name(int rank) const { return ".rank-" + std::to_string(rank) + "-" + token; }
        void leave(int rank) const {
            for (const TensorCache<Store>* cache : caches) cache->leave_mark(name(rank));
        }
        [[nodiscard]] bool sees(int rank) const {
            return std::all_of(caches.begin(), caches.end(),
                               [&](const TensorCache<Store>* cache) { return cache->has_mark(name(rank)); });
        }
        void remove(int rank) const {
            for (const TensorCache<Store>* cache : caches) cache->remove_mark(name(rank));
        }
    };
    Marks marks;
    for (const Sources& source : sources_)
        if (source.caching != datasets::LatentCaching::none) marks.caches.push_back(&source.latents);
    for (const TensorCache<Store>& cache : texts_) marks.caches.push_back(&cache);
    marks.token = comm_->all_gather_varied(std::to_string(std::random_device{}())).front();
    cache_keepers_ = comm::find_keepers(*comm_, marks);
}

template <class Store>
void PictureSourceBody<Store>::clear_epochs() {
    if (!ends_epochs_) return;
    for (std::int64_t turn = 0; turn < comm_->world(); ++turn)  // a folder may be every node's own, or one for all
        comm::agree(*comm_, [&] {
            if (rank_ != turn) return;
            for (const Sources& source : sources_)
                if (source.caching == datasets::LatentCaching::each_epoch) source.latents.clear();
        });
}

/// One rank a machine looks through the folders, which may be the machine's own or one for all.
template <class Store>
void PictureSourceBody<Store>::remove_leftovers() {
    std::int64_t removed = 0;
    comm::agree(*comm_, [&] {
        if (!machine_.is_first()) return;
        std::set<std::string> seen;  // data sets may share a folder
        for (const Sources& source : sources_)
            if (source.caching != datasets::LatentCaching::none && seen.insert(source.latents.root()).second)
                removed += source.latents.remove_leftovers();
        for (const TensorCache<Store>& cache : texts_)
            if (seen.insert(cache.root()).second) removed += cache.remove_leftovers();
    });
    leftovers_ = 0;
    for (const std::string& one : comm_->all_gather_varied(std::to_string(removed))) leftovers_ += std::stoll(one);
}

/// What decoders noted since the last call, on all ranks. Collective.
template <class Store>
template <class Comm>
std::vector<std::string> PictureSourceBody<Store>::shared_notes(Comm& comm) {
    std::vector<std::string> ids;
    for (const config::ImageDataset& settings : list_.images) ids.push_back(settings.id);
    return datasets::PictureNotes::lines(comm.all_gather_varied(notes_.pack()), ids);
}

template <class Store>
datasets::Report PictureSourceBody<Store>::report() const {
    datasets::Report report = collection_.report();
    if (leftovers_ > 0)
        report.notes.push_back("removed " + std::to_string(leftovers_) + " temporary file" +
                               (leftovers_ == 1 ? "" : "s") + " that killed runs left in the caches");
    report.notes.insert(report.notes.end(), notes_of_start_.begin(), notes_of_start_.end());
    const std::lock_guard lock{mutex_};
    report.broken = broken_.known();
    report.latents = latents_report_;
    report.texts = texts_report_;
    add(report.latents, remade_latents_);
    add(report.texts, remade_texts_);
    return report;
}

template <class Store>
template <comm::Communicator Comm>
std::vector<std::string> PictureSourceBody<Store>::closing_lines(Comm& comm) {
    remember(comm);
    std::vector<std::string> lines = datasets::traffic_lines(comm, stores_.traffic());
    std::string mine;
    {
        const std::lock_guard lock{mutex_};
        mine = pack({remade_latents_, remade_texts_});
    }
    for (std::string& line : remade_while_training(comm.all_gather_varied(mine))) lines.push_back(std::move(line));
    for (std::string& line : shared_notes(comm)) lines.push_back(std::move(line));
    for (std::string& line : datasets::BrokenSamples::lines(comm.all_gather_varied(broken_.pack())))
        lines.push_back(std::move(line));
    return lines;
}

}  // namespace strata::data::detail
