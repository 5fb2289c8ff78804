#pragma once
// strata/data/detail/image_text_source.hpp - the bodies of ImageTextSource.
// B one rank's samples of a micro-batch, C latent channels, T tokens, E width of a token, H and W of the bucket.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include <ATen/core/grad_mode.h>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/random.hpp>
#include <strata/data/image_text_source.hpp>
#include <strata/datasets/cache_identity.hpp>
#include <strata/datasets/first_on_machine.hpp>
#include <strata/storage/atomic_file.hpp>

namespace strata::data {

namespace detail {

[[nodiscard]] at::Tensor picture_tensor(std::span<const std::byte> file, const pictures::Frame& frame,
                                        std::string_view source,
                                        datasets::ByteBudget& decoding);   // (3, H, W)
[[nodiscard]] at::Tensor stack_rows(const std::vector<at::Tensor>& rows);  // B of one shape -> (B, ...)
/// All settings that decide what is trained on, as text. Folders may be others on another node, and are left out.
[[nodiscard]] std::string settings_text(const ImageTextOptions& options, const config::DatasetList& list);
[[nodiscard]] std::string epoch_folder(std::string_view dataset);  // of entries kept for one epoch

/// What a seeded number is for, beside those of the sample plan.
enum SourcePurpose : std::uint64_t { crop = 101, caption_dropout = 102, caption = 103 };

/// The picture is at fault and not the cache: filling goes on without it.
class PictureFailure : public Error {
public:
    explicit PictureFailure(const Error& error) : Error{error} {}
};

/// What a failure to make a tensor says first where an entry is there and cannot be used; else nothing.
[[nodiscard]] std::string cannot_remake(CacheOutcome why, const std::string& place);
void add(datasets::CacheReport& report, const Remade& remade);
/// Of latents and of captions.
[[nodiscard]] std::string pack(const std::array<Remade, 2>& remade);
/// Lines for the end of a run, from pack() of all ranks, which may have met the same entry.
[[nodiscard]] std::vector<std::string> remade_while_training(const std::vector<std::string>& packed);

inline bool has_shape(const NamedTensors& tensors, const std::string& name, std::int64_t dimensions) {
    const auto found = tensors.find(name);
    return found != tensors.end() && found->second.scalar_type() == at::kFloat && found->second.dim() == dimensions &&
           found->second.numel() > 0;
}

}  // namespace detail

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <comm::Communicator Comm>
ImageTextSource<A, T, Store>::ImageTextSource(Comm& comm, config::DatasetList datasets,
                                              std::shared_ptr<const A> autoencoder,
                                              std::shared_ptr<const T> text_encoder, ImageTextOptions options)
    : options_{std::move(options)},
      list_{std::move(datasets)},
      stores_{list_, options_.retry, {.say = datasets::is_first_on_machine(comm) ? options_.note : nullptr}},
      autoencoder_{std::move(autoencoder)},
      text_encoder_{std::move(text_encoder)},
      shape_{options_.train_batch_size, comm.world(), options_.gradient_accumulation_steps},
      rank_{comm.rank()},
      decoding_{std::make_unique<datasets::DecodeMemory>(options_.decode_memory_bytes)},
      collection_{options_.buckets()} {
    require_same_settings(comm);
    const std::int64_t pixels = autoencoder_->pixels_per_latent();
    const std::int64_t multiple = pixels * options_.latents_multiple;
    if (multiple < 1 || options_.aspect_bucket_alignment % multiple != 0)
        throw Error{Errc::bad_value,
                    "aspect_bucket_alignment is " + std::to_string(options_.aspect_bucket_alignment) +
                        ", the autoencoder makes one latent of " + std::to_string(pixels) +
                        " pixels and the model takes multiples of " + std::to_string(options_.latents_multiple) +
                        " latents",
                    "use a multiple of " + std::to_string(multiple)};
    for (const config::ImageDataset& settings : list_.images)
        if (settings.is_regularisation_data && !options_.trains_adapter)
            throw Error{
                Errc::bad_value,
                "is_regularisation_data of data set '" + settings.id +
                    "' is true: its pictures teach what the model predicts without its adapter, and this one has none",
                "set it to false, or disable the data set, or train an adapter (ImageTextOptions::trains_adapter)"};
    open_stores(comm);
    collection_ = datasets::discover_all(comm, list_, stores_, options_.buckets(), options_.discovery());
    arrange();  // first without the pixels: a bucket that is too small shows before hours of encoding
    require_writable_caches(comm);  // makes the folders, so only when there is something to put into them
    remove_leftovers(comm);
    clear_epochs(comm);
    fill_latents(comm);
    fill_texts(comm);
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::open_stores(Comm& comm) {
    const auto memory = std::make_shared<CacheMemory>(options_.cache_memory_bytes);
    const auto no_memory = std::make_shared<CacheMemory>(0);  // of entries that are soon of no use
    datasets::FieldWriter places;
    const auto open = [&](const config::ImageDataset& settings) {
        const config::TextEmbeds& embeds = list_.text_embeds_of(settings);
        Store pictures = stores_.pictures(settings);
        const config::CachePlace cache = list_.latent_cache_of(settings);
        Store latents = stores_.cache(cache, "the latents of data set '" + settings.id + "'");
        places << (settings.type == config::StoreType::local ? datasets::folder_place(settings.instance_data_dir)
                                                             : pictures.where(""));
        const datasets::LatentCaching caching = datasets::latent_caching(settings);
        const bool is_for_epochs = caching == datasets::LatentCaching::each_epoch;
        ends_epochs_ |= is_for_epochs;
        sources_.push_back(
            {std::move(pictures),
             TensorCache<Store>{std::move(latents), cache.compress_disk_cache.value_or(options_.compress_disk_cache),
                                is_for_epochs ? no_memory : memory,
                                is_for_epochs ? detail::epoch_folder(settings.id) : ""},
             {},
             static_cast<std::size_t>(&embeds - list_.text_embeds.data()),
             datasets::CaptionRule{settings, options_.seed},
             caching});
    };
    comm::agree(comm, [&] {  // credentials may be there on one host and not on another
        for (const config::TextEmbeds& embeds : list_.text_embeds) {
            const config::CachePlace place = config::text_cache_of(embeds);
            texts_.emplace_back(stores_.cache(place, "text embeds '" + embeds.id + "'"),
                                place.compress_disk_cache.value_or(options_.compress_disk_cache), memory);
        }
        for (const config::ImageDataset& settings : list_.images) open(settings);
    });
    const std::string of_first = comm.all_gather_varied(places.bytes())[0];
    datasets::FieldReader fields{of_first};
    for (Sources& source : sources_) source.place = fields.text();
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::require_writable_caches(Comm& comm) const {
    comm::agree(comm, [&] {
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

/// Calls work(i) for this rank's i of [0, count) on all threads; a failure anywhere, or being asked to stop, is thrown
/// on all ranks. They meet every few seconds, so that none waits for long: whoever is late is not taken for lost, and all
/// hear of a failure soon.
template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm, class Work>
void ImageTextSource<A, T, Store>::fill_share(Comm& comm, std::string_view what, std::size_t count, const Work& work) {
    const auto world = static_cast<std::size_t>(comm.world());
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::size_t share = count / world + (count % world > rank ? 1 : 0);
    const std::size_t most = count / world + (count % world != 0 ? 1 : 0);
    std::size_t part = 64;  // items of a rank between two meetings
    for (std::size_t begin = 0; begin < most;) {
        const std::size_t end = std::min(begin + part, most);
        const std::size_t mine = std::min(end, share) - std::min(begin, share);
        const auto start = std::chrono::steady_clock::now();
        std::atomic<bool> stop{options_.stopped && options_.stopped()};
        comm::agree(comm, [&] {
            datasets::for_all(
                static_cast<std::int64_t>(mine), datasets::threads_for(options_.threads),
                [&](std::int64_t i) {
                    if (!stop) work((begin + static_cast<std::size_t>(i)) * world + rank);
                },
                [&](std::int64_t done) {
                    if (stop) return;
                    if (options_.progress)
                        options_.progress(what, static_cast<std::int64_t>(begin) + done,
                                          static_cast<std::int64_t>(share));
                    if (options_.stopped && options_.stopped()) stop = true;
                });
        });
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        double slowest = 0;
        for (const std::string& said : comm.all_gather_varied(stop ? "stop" : std::to_string(taken.count()))) {
            if (said == "stop")
                throw Error{Errc::interrupted, "stopped before training began; what was cached is kept",
                            "run the same command again to go on"};
            slowest = std::max(slowest, std::stod(said));
        }
        begin = end;
        constexpr std::size_t least = 16;
        if (slowest < 2)
            part *= 2;
        else if (slowest > 20)
            part = std::max(least, part / 2);
    }
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::clear_epochs(Comm& comm) const {
    if (!ends_epochs_) return;
    for (std::int64_t turn = 0; turn < comm.world(); ++turn)  // a folder may be every node's own, or one for all
        comm::agree(comm, [&] {
            if (rank_ != turn) return;
            for (const Sources& source : sources_)
                if (source.caching == datasets::LatentCaching::each_epoch) source.latents.clear();
        });
}

/// One rank a machine looks through the folders, which may be the machine's own or one for all.
template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::remove_leftovers(Comm& comm) {
    const bool is_first = datasets::is_first_on_machine(comm);
    std::int64_t removed = 0;
    comm::agree(comm, [&] {
        if (!is_first) return;
        std::set<std::string> seen;  // data sets may share a folder
        for (const Sources& source : sources_)
            if (source.caching != datasets::LatentCaching::none && seen.insert(source.latents.root()).second)
                removed += source.latents.remove_leftovers();
        for (const TensorCache<Store>& cache : texts_)
            if (seen.insert(cache.root()).second) removed += cache.remove_leftovers();
    });
    for (const std::string& one : comm.all_gather_varied(std::to_string(removed))) leftovers_ += std::stoll(one);
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::fill_latents(Comm& comm) {
    std::vector<View> tasks;
    std::vector<std::size_t> indices;  // of the samples
    for (const datasets::Bucket& bucket : collection_.buckets()) {
        if (sources_[bucket.dataset].caching != datasets::LatentCaching::ahead) continue;
        const datasets::PictureSet& set = collection_.sets()[bucket.dataset];
        for (const std::size_t i : bucket.samples) {
            tasks.push_back({bucket.dataset, &set.samples[i], set.framer.frame(set.samples[i].size, bucket.size), 0});
            indices.push_back(i);
        }
    }

    datasets::FieldWriter news;  // what this rank tells the others: kind, task, text
    std::mutex mutex;
    const auto tell = [&](int kind, std::size_t task, std::string_view text) {
        const std::lock_guard lock{mutex};
        news << kind << task << text;
    };
    enum Kind : int { made, rebuilt, replaced, failed };
    std::atomic<bool> met_old{false};
    fill_share(comm, "latents", tasks.size(), [&](std::size_t i) {
        const TensorCache<Store>& cache = sources_[tasks[i].dataset].latents;
        const std::string identity = identity_of(tasks[i]);
        // Beyond what fits into memory an entry is not read before it is needed, and damage shows then. Where one is of an
        // earlier version the others will be, too: they are made again now and not while training.
        if (!met_old && cache.memory().is_full() && cache.contains(identity)) return;
        try {
            const CacheOutcome outcome = latents_of(tasks[i]).second;
            if (outcome == CacheOutcome::made) tell(made, i, "");
            if (outcome == CacheOutcome::rebuilt) tell(rebuilt, i, cache.where(identity));
            if (outcome == CacheOutcome::replaced) {
                met_old = true;
                tell(replaced, i, cache.where(identity));
            }
        } catch (const detail::PictureFailure& failure) {
            tell(failed, i, failure.problem());
        }
    });

    datasets::CacheReport report;
    std::vector<std::pair<std::size_t, std::string>> failures;
    for (const std::string& bytes : comm.all_gather_varied(news.bytes())) {
        for (datasets::FieldReader fields{bytes}; !fields.empty();) {
            const std::int64_t kind = fields.integer();
            const auto task = static_cast<std::size_t>(fields.integer());
            std::string text = fields.text();
            if (kind == failed)
                failures.emplace_back(task, std::move(text));
            else
                ++report.made;
            if (kind == rebuilt)
                report.rebuilt.push_back(std::move(text));
            else if (kind == replaced)
                report.replaced.push_back(std::move(text));
        }
    }
    std::sort(report.rebuilt.begin(), report.rebuilt.end());
    std::sort(report.replaced.begin(), report.replaced.end());
    report.entries = static_cast<std::int64_t>(tasks.size() - failures.size());
    latents_report_ = std::move(report);
    if (failures.empty()) return;
    std::sort(failures.begin(), failures.end());
    std::vector<std::set<std::size_t>> broken(sources_.size());
    std::vector<datasets::Skipped> why;
    for (auto& [task, text] : failures) {
        const std::size_t d = tasks[task].dataset;
        why.push_back({list_.images[d].id, sources_[d].pictures.where(tasks[task].sample->key),
                       datasets::SkipReason::unreadable, std::move(text)});
        broken[d].insert(indices[task]);
    }
    collection_.leave_out(broken, std::move(why));
    arrange();
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::fill_texts(Comm& comm) {
    std::set<std::pair<std::size_t, std::string>> unique;  // the empty caption is for caption dropout
    for (std::size_t d = 0; d < sources_.size(); ++d) {
        const datasets::PictureSet& set = collection_.sets()[d];
        if (set.settings.skip_file_discovery.text) continue;
        const Sources& source = sources_[d];
        unique.emplace(source.texts, "");
        for (const datasets::Sample& sample : set.samples)
            for (std::string& caption : source.captions.all(datasets::found_captions(sample, set.settings)))
                unique.emplace(source.texts, std::move(caption));
    }
    const std::vector<std::pair<std::size_t, std::string>> tasks(unique.begin(), unique.end());

    datasets::FieldWriter news;  // of entries that were made: why, and the place if there was one before
    std::mutex mutex;
    std::atomic<bool> met_old{false};  // as for latents
    fill_share(comm, "captions", tasks.size(), [&](std::size_t i) {
        const auto& [texts, caption] = tasks[i];
        const std::string identity = datasets::text_identity(text_encoder_->id(), caption);
        if (!met_old && texts_[texts].memory().is_full() && texts_[texts].contains(identity)) return;
        const CacheOutcome outcome = text_of(texts, caption).second;
        if (outcome == CacheOutcome::found) return;
        if (outcome == CacheOutcome::replaced) met_old = true;
        const std::lock_guard lock{mutex};
        news << static_cast<int>(outcome)
             << (outcome == CacheOutcome::made ? std::string{} : texts_[texts].where(identity));
    });

    texts_report_.entries = static_cast<std::int64_t>(tasks.size());
    for (const std::string& bytes : comm.all_gather_varied(news.bytes())) {
        for (datasets::FieldReader fields{bytes}; !fields.empty();) {
            ++texts_report_.made;
            const auto outcome = static_cast<CacheOutcome>(fields.integer());
            std::string place = fields.text();
            if (outcome == CacheOutcome::rebuilt)
                texts_report_.rebuilt.push_back(std::move(place));
            else if (outcome == CacheOutcome::replaced)
                texts_report_.replaced.push_back(std::move(place));
        }
    }
    std::sort(texts_report_.rebuilt.begin(), texts_report_.rebuilt.end());
    std::sort(texts_report_.replaced.begin(), texts_report_.replaced.end());
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <class Comm>
void ImageTextSource<A, T, Store>::require_same_settings(Comm& comm) const {
    datasets::FieldWriter settings;
    settings << detail::settings_text(options_, list_) << std::string{autoencoder_->id()}
             << std::string{text_encoder_->id()};
    const std::vector<std::string> all =
        comm.all_gather_varied(std::to_string(datasets::fingerprint({settings.bytes()})));
    for (std::size_t r = 1; r < all.size(); ++r)
        if (all[r] != all[0])
            throw Error{Errc::rank_mismatch, "rank " + std::to_string(r) + " has other data settings than rank 0",
                        "start every rank with the same configuration files"};
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
std::string ImageTextSource<A, T, Store>::identity_of(const View& view) const {
    const Sources& source = sources_[view.dataset];
    const bool is_of_epoch = source.caching == datasets::LatentCaching::each_epoch;
    return datasets::latent_identity(autoencoder_->id(), source.place, *view.sample, view.frame,
                                     is_of_epoch ? std::optional{view.epoch} : std::nullopt);
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
NamedTensors ImageTextSource<A, T, Store>::make_latents(const View& view) const {
    const Store& pictures = sources_[view.dataset].pictures;
    const std::string& key = view.sample->key;
    const std::string place = pictures.where(key);
    const at::Tensor image_3HW = [&] {
        try {
            pictures::require_file_within({}, view.sample->bytes, "'" + place + "'");
            const auto file_memory = decoding_->files.take(static_cast<std::int64_t>(view.sample->bytes));
            return detail::picture_tensor(pictures.get(key), view.frame, "'" + place + "'", decoding_->pixels);
        } catch (const Error& error) {
            if (pictures::is_picture_fault(error.code()) || error.code() == Errc::not_found)
                throw detail::PictureFailure{error};
            throw;
        }
    }();
    const at::NoGradGuard no_gradients;
    try {
        return {{"latents", autoencoder_->encode(image_3HW).contiguous()}};
    } catch (const Error&) {
        throw;
    } catch (const std::exception& failure) {
        const std::string text = failure.what();
        throw detail::PictureFailure{Error{Errc::bad_picture,
                                           "'" + place + "' cannot be encoded: " + text.substr(0, text.find('\n')),
                                           "mend or remove the file, or the autoencoder"}};
    }
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
std::pair<NamedTensors, CacheOutcome> ImageTextSource<A, T, Store>::latents_of(const View& view) const {
    const Sources& source = sources_[view.dataset];
    if (source.caching == datasets::LatentCaching::none) return {make_latents(view), CacheOutcome::made};
    const std::int64_t pixels = autoencoder_->pixels_per_latent();
    const std::vector<std::int64_t> shape_Chw{autoencoder_->latent_channels(), view.frame.target.height / pixels,
                                              view.frame.target.width / pixels};
    const std::string identity = identity_of(view);
    return source.latents.get(
        identity,
        [&](CacheOutcome why) {
            try {
                return make_latents(view);
            } catch (const detail::PictureFailure& failure) {
                throw detail::PictureFailure{Error{
                    failure.code(), detail::cannot_remake(why, source.latents.where(identity)) + failure.problem(),
                    failure.fix()}};
            }
        },
        [&](const NamedTensors& tensors) {
            return detail::has_shape(tensors, "latents", 3) && tensors.at("latents").sizes() == shape_Chw;
        });
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
std::pair<NamedTensors, CacheOutcome> ImageTextSource<A, T, Store>::text_of(std::size_t texts,
                                                                            const std::string& caption) const {
    const std::string identity = datasets::text_identity(text_encoder_->id(), caption);
    return texts_[texts].get(
        identity,
        [&](CacheOutcome why) -> NamedTensors {
            const at::NoGradGuard no_gradients;
            try {
                const TextEmbedding embedding = text_encoder_->encode(caption);
                return {{"tokens", embedding.tokens.contiguous()}, {"pooled", embedding.pooled.contiguous()}};
            } catch (const std::exception& failure) {
                if (why == CacheOutcome::made) throw;
                const std::string text = failure.what();
                throw Error{Errc::bad_cache_entry,
                            detail::cannot_remake(why, texts_[texts].where(identity)) + "the text encoder fails at '" +
                                caption + "': " + text.substr(0, text.find('\n')),
                            "mend the text encoder, or remove the caption"};
            }
        },
        [](const NamedTensors& tensors) {
            return detail::has_shape(tensors, "tokens", 2) && detail::has_shape(tensors, "pooled", 1);
        });
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
datasets::Report ImageTextSource<A, T, Store>::report() const {
    datasets::Report report = collection_.report();
    if (leftovers_ > 0)
        report.notes.push_back("removed " + std::to_string(leftovers_) + " temporary file" +
                               (leftovers_ == 1 ? "" : "s") + " that killed runs left in the caches");
    const std::lock_guard lock{mutex_};
    report.latents = latents_report_;
    report.texts = texts_report_;
    detail::add(report.latents, remade_latents_);
    detail::add(report.texts, remade_texts_);
    return report;
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
template <comm::Communicator Comm>
std::vector<std::string> ImageTextSource<A, T, Store>::closing_lines(Comm& comm) const {
    std::vector<std::string> lines = datasets::traffic_lines(comm, stores_.traffic());
    std::string mine;
    {
        const std::lock_guard lock{mutex_};
        mine = detail::pack({remade_latents_, remade_texts_});
    }
    for (std::string& line : detail::remade_while_training(comm.all_gather_varied(mine)))
        lines.push_back(std::move(line));
    return lines;
}

/// After an epoch its entries are of no use; they are removed a few at a time by those who make batches.
template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
void ImageTextSource<A, T, Store>::end_epochs_before(std::int64_t epoch) {
    const std::lock_guard lock{mutex_};
    while (!of_epoch_.empty() && of_epoch_.begin()->first < epoch) {
        std::vector<Stale>& entries = of_epoch_.begin()->second;
        stale_.insert(stale_.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
        of_epoch_.erase(of_epoch_.begin());
    }
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
void ImageTextSource<A, T, Store>::remove_some_stale() {
    std::int64_t largest = options_.train_batch_size;
    for (const config::ImageDataset& settings : list_.images) largest = std::max(largest, settings.train_batch_size);
    for (std::int64_t left = 2 * largest; left > 0; --left) {  // more than a batch makes
        Stale entry;
        {
            const std::lock_guard lock{mutex_};
            if (stale_.empty()) return;
            entry = std::move(stale_.back());
            stale_.pop_back();
        }
        sources_[entry.dataset].latents.remove(entry.identity);
    }
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
void ImageTextSource<A, T, Store>::note_latents(const View& view, CacheOutcome outcome) {
    if (outcome == CacheOutcome::found) return;
    const Sources& source = sources_[view.dataset];
    if (source.caching == datasets::LatentCaching::none) return;
    std::string identity = identity_of(view);
    const std::lock_guard lock{mutex_};
    if (outcome != CacheOutcome::made) remade_latents_[outcome].insert(source.latents.where(identity));
    if (source.caching == datasets::LatentCaching::each_epoch)
        of_epoch_[view.epoch].push_back({view.dataset, std::move(identity)});
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
ImageTextBatch ImageTextSource<A, T, Store>::next() {
    if (!stream_)
        stream_ = std::make_unique<OrderedStream<ImageTextBatch>>(
            [this](std::int64_t position, const std::atomic<bool>& stop) { return make_batch(position, stop); },
            position_, options_.prefetch_batches, datasets::threads_for(options_.threads));
    if (ends_epochs_)
        end_epochs_before(collection_.plan().batch(position_ / options_.gradient_accumulation_steps, 0, 0).epoch);
    ++position_;
    return stream_->next();
}

template <Autoencoder A, TextEncoder T, datasets::FolderStore Store>
ImageTextBatch ImageTextSource<A, T, Store>::make_batch(std::int64_t position, const std::atomic<bool>& stop) {
    const std::int64_t accumulation = options_.gradient_accumulation_steps;
    const datasets::GlobalBatch global = collection_.plan().part(
        position / accumulation, position % accumulation * shape_.ranks + rank_, shape_.ranks * accumulation);
    const auto dataset = static_cast<std::size_t>(global.dataset);
    const datasets::PictureSet& set = collection_.sets()[dataset];
    const Sources& source = sources_[dataset];
    const datasets::Bucket& bucket = collection_.buckets()[set.first_bucket + static_cast<std::size_t>(global.bucket)];
    const pictures::PictureSize size = pictures::drawn(bucket.shapes, global.random);
    ImageTextBatch batch;
    batch.is_regularisation_data = set.settings.is_regularisation_data;
    std::vector<at::Tensor> latents;
    std::vector<at::Tensor> tokens;
    std::vector<at::Tensor> pooled;
    if (ends_epochs_) remove_some_stale();
    for (const datasets::Visit& visit : global.visits) {
        if (stop) return {};
        const datasets::Sample& sample = set.samples[bucket.samples[static_cast<std::size_t>(visit.sample)]];
        const std::uint64_t crop =
            core::combine({options_.seed, detail::crop, core::number_of(set.settings.id), core::number_of(sample.key),
                           static_cast<std::uint64_t>(global.epoch)});
        const View view{dataset, &sample, set.framer.frame(sample.size, size, crop), global.epoch};
        auto [picture, picture_outcome] = latents_of(view);
        note_latents(view, picture_outcome);
        const bool dropped = core::unit_interval(core::combine({visit.random, detail::caption_dropout})) <
                             options_.caption_dropout_probability;
        const std::string caption = dropped ? std::string{}
                                            : source.captions.caption(datasets::found_captions(sample, set.settings),
                                                                      core::combine({visit.random, detail::caption}));
        auto [text, text_outcome] = text_of(source.texts, caption);
        if (text_outcome == CacheOutcome::rebuilt || text_outcome == CacheOutcome::replaced) {
            const std::lock_guard lock{mutex_};
            remade_texts_[text_outcome].insert(
                texts_[source.texts].where(datasets::text_identity(text_encoder_->id(), caption)));
        }
        latents.push_back(picture.at("latents"));
        tokens.push_back(text.at("tokens"));
        pooled.push_back(text.at("pooled"));
        batch.captions.push_back(caption);
        batch.samples.push_back(source.pictures.where(sample.key));
    }
    batch.latents_BCHW = detail::stack_rows(latents);
    batch.text_BTE = detail::stack_rows(tokens);
    batch.pooled_BE = detail::stack_rows(pooled);
    return batch;
}

}  // namespace strata::data
