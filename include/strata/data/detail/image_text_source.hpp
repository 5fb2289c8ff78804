#pragma once
// strata/data/detail/image_text_source.hpp - the bodies of ImageTextSource.
// B one rank's samples of a micro-batch, C latent channels, T tokens, E width of a token, H and W of the bucket.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>

#include <ATen/core/grad_mode.h>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/data/image_text_source.hpp>
#include <strata/data/random.hpp>
#include <strata/data/sample_choice.hpp>

namespace strata::data {

namespace detail {

[[nodiscard]] at::Tensor picture_tensor(std::span<const std::byte> file, const Frame& frame, std::string_view source,
                                        ByteBudget& decoding);            // (3, H, W)
[[nodiscard]] std::string exact(double number);                            // another text for another number
[[nodiscard]] at::Tensor stack_rows(const std::vector<at::Tensor>& rows);  // B of one shape -> (B, ...)
[[nodiscard]] std::string place_of(const std::filesystem::path& folder);   // the same from every working directory

/// What a seeded number is for, beside those of the sample plan.
enum SourcePurpose : std::uint64_t { crop = 101, caption_dropout = 102, caption = 103 };

inline std::vector<std::string> found_captions(const Sample& sample, const config::ImageDataset& dataset) {
    if (dataset.caption_strategy == config::CaptionStrategy::textfile)
        return captions_in_text(sample.caption, !dataset.disable_multiline_split);
    std::vector<std::string> captions{sample.caption};
    captions.insert(captions.end(), sample.other_captions.begin(), sample.other_captions.end());
    return captions;
}

/// The picture is at fault and not the cache: filling goes on without it.
class PictureFailure : public Error {
public:
    explicit PictureFailure(const Error& error) : Error{error} {}
};

inline bool has_shape(const NamedTensors& tensors, const std::string& name, std::int64_t dimensions) {
    const auto found = tensors.find(name);
    return found != tensors.end() && found->second.scalar_type() == at::kFloat && found->second.dim() == dimensions &&
           found->second.numel() > 0;
}

}  // namespace detail

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <comm::Communicator Comm>
ImageTextSource<A, T, Store>::ImageTextSource(Comm& comm, config::DatasetList datasets,
                                              std::shared_ptr<const A> autoencoder,
                                              std::shared_ptr<const T> text_encoder, ImageTextOptions options)
    : options_{std::move(options)},
      list_{std::move(datasets)},
      stores_{list_},
      autoencoder_{std::move(autoencoder)},
      text_encoder_{std::move(text_encoder)},
      shape_{options_.train_batch_size, comm.world(), options_.gradient_accumulation_steps},
      rank_{comm.rank()},
      decoding_{std::make_unique<ByteBudget>(options_.decode_memory_bytes)} {
    const std::int64_t pixels = autoencoder_->pixels_per_latent();
    const std::int64_t multiple = pixels * options_.latents_multiple;
    if (multiple < 1 || options_.aspect_bucket_alignment % multiple != 0)
        throw Error{Errc::bad_value,
                    "aspect_bucket_alignment is " + std::to_string(options_.aspect_bucket_alignment) +
                        ", the autoencoder makes one latent of " + std::to_string(pixels) +
                        " pixels and the model takes multiples of " + std::to_string(options_.latents_multiple) + " latents",
                    "use a multiple of " + std::to_string(multiple)};
    const auto memory = std::make_shared<CacheMemory>(options_.cache_memory_bytes);
    for (const config::TextEmbeds& embeds : list_.text_embeds)
        texts_.emplace_back(stores_.cache(config::text_cache_of(embeds), "text embeds '" + embeds.id + "'"),
                            options_.compress_disk_cache, memory);
    for (const config::ImageDataset& settings : list_.images) {
        const config::TextEmbeds& embeds = list_.text_embeds_of(settings);
        Store pictures = stores_.pictures(settings);
        Store latents = stores_.cache(list_.latent_cache_of(settings), "the latents of data set '" + settings.id + "'");
        const bool is_folder = settings.type == config::StoreType::local;
        std::string place = is_folder ? detail::place_of(settings.instance_data_dir) : pictures.where("");
        datasets_.push_back({settings, std::move(pictures),
                             TensorCache<Store>{std::move(latents), options_.compress_disk_cache, memory},
                             comm.all_gather_varied(place)[0],
                             static_cast<std::size_t>(&embeds - list_.text_embeds.data()),
                             {},
                             Framer{settings, {options_.aspect_bucket_alignment, options_.bucket_mode,
                                               options_.aspect_bucket_rounding}},
                             CaptionRule{settings, options_.seed}});
    }
    discover_all(comm);
    choose_samples();
    sort_into_buckets();  // first without the pixels: a bucket that is too small shows before hours of encoding
    require_writable_caches(comm);  // makes the folders, so only when there is something to put into them
    fill_latents(comm);
    sort_into_buckets();
    fill_texts(comm);

    make_plan();
    require_same_plan(comm);
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
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
        for (const Dataset& dataset : datasets_)
            if (dataset.keeps_latents()) require(dataset.latents, "'cache_dir_vae' of data set '" + dataset.settings.id + "'");
        for (std::size_t i = 0; i < texts_.size(); ++i)
            require(texts_[i], "'cache_dir' of text embeds '" + list_.text_embeds[i].id + "'");
    });
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <class Comm>
void ImageTextSource<A, T, Store>::end_if_stopped(Comm& comm, bool asked) const {
    for (const std::string& said : comm.all_gather_varied(asked ? "stop" : ""))
        if (!said.empty())
            throw Error{Errc::interrupted, "stopped before training began; what was cached is kept",
                        "run the same command again to go on"};
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <class Comm>
void ImageTextSource<A, T, Store>::discover_all(Comm& comm) {
    const DiscoverOptions how{options_.index_folder, options_.threads, options_.decode_memory_bytes, options_.progress,
                              options_.stopped};
    for (Dataset& dataset : datasets_) {
        end_if_stopped(comm, options_.stopped && options_.stopped());
        Discovered found = discover(comm, dataset.pictures, dataset.settings, how);
        report_.found += found.found;
        report_.notes.insert(report_.notes.end(), found.notes.begin(), found.notes.end());
        report_.skipped.insert(report_.skipped.end(), found.skipped.begin(), found.skipped.end());
        dataset.samples = std::move(found.samples);
    }
    for (const config::ImageDataset& settings : list_.eval) {  // what is wrong with them is worth knowing now
        const Discovered found = discover(comm, stores_.pictures(settings), settings, how);
        std::string line = "eval data set '" + settings.id + "': " + std::to_string(found.found) + " pictures found, " +
                           std::to_string(found.samples.size()) + " can be used";
        constexpr std::size_t most_names = 5;
        for (std::size_t i = 0; i < std::min(found.skipped.size(), most_names); ++i)
            line += (i == 0 ? "; skipped: " : ", ") + found.skipped[i].place + " (" +
                    std::string{name_of(found.skipped[i].reason)} + ")";
        if (found.skipped.size() > most_names) line += " and " + std::to_string(found.skipped.size() - most_names) + " more";
        report_.notes.push_back(std::move(line));
        report_.notes.insert(report_.notes.end(), found.notes.begin(), found.notes.end());
    }
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
void ImageTextSource<A, T, Store>::choose_samples() {
    for (Dataset& dataset : datasets_) {
        const std::size_t all = dataset.samples.size();
        std::vector<std::string_view> keys;
        for (const Sample& sample : dataset.samples) keys.push_back(sample.key);
        std::vector<Sample> chosen;
        for (const std::size_t i : chosen_samples(keys, dataset.settings.id, dataset.settings.max_num_samples))
            chosen.push_back(std::move(dataset.samples[i]));
        dataset.samples = std::move(chosen);
        if (dataset.samples.size() < all)
            report_.notes.push_back("data set '" + dataset.settings.id + "': " + std::to_string(dataset.samples.size()) +
                                    " of " + std::to_string(all) + " pictures are used (max_num_samples)");
    }
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
void ImageTextSource<A, T, Store>::sort_into_buckets() {
    buckets_.clear();
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
        datasets_[d].first_bucket = buckets_.size();
        std::vector<PictureSize> sizes;
        for (const Sample& sample : datasets_[d].samples) sizes.push_back(sample.size);
        for (Bucket& bucket : fill_buckets(d, datasets_[d].settings, datasets_[d].framer, sizes))
            buckets_.push_back(std::move(bucket));
    }
    if (buckets_.empty()) {
        std::string reasons;
        for (int i = 0; i < skip_reasons; ++i) {
            const auto reason = static_cast<SkipReason>(i);
            if (const std::int64_t count = report_.count(reason); count > 0)
                reasons += (reasons.empty() ? "" : ", ") + std::to_string(count) + " " + std::string{name_of(reason)};
        }
        throw Error{Errc::no_samples,
                    "none of the " + std::to_string(report_.found) + " pictures can be trained on: " + reasons +
                        "; the first is '" + report_.skipped.front().place + "'",
                    "put captions beside the pictures, or relax minimum_image_size and the aspect ratios"};
    }
    require_effective_batch(buckets_, shape_, options_.allow_dataset_oversubscription);
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
void ImageTextSource<A, T, Store>::make_plan() {
    std::vector<PlanDataset> plan;
    for (const Dataset& dataset : datasets_)
        plan.push_back({{},
                        dataset.settings.probability,
                        dataset.settings.start_epoch,
                        dataset.settings.end_epoch,
                        dataset.settings.start_step,
                        dataset.settings.end_step});
    for (const Bucket& bucket : buckets_) {
        const auto count = static_cast<std::int64_t>(bucket.samples.size());
        plan[bucket.dataset].buckets.push_back({count, bucket.repeats + 1});
        report_.buckets.push_back({bucket.dataset_id, bucket.size.width, bucket.size.height,
                                   static_cast<std::int64_t>(bucket.shapes.size()), count, bucket.repeats,
                                   bucket.repeats_asked});
        report_.used += count;
    }
    plan_ = std::make_unique<const SamplePlan>(std::move(plan), options_.seed, shape_.micro(),
                                               shape_.gradient_accumulation_steps);
    if (plan_->size() == 0)
        throw Error{Errc::no_samples, "none of the data sets with pictures that can be used takes part from the first step on",
                    "give one of them start_epoch 1 and start_step 0"};
    report_.effective_batch = shape_.effective();
    report_.micro_batches_per_epoch = micro_batches_per_epoch();
    if (plan_->size())
        report_.notes.push_back("no data set takes part any more after micro-batch " + std::to_string(*plan_->size()) +
                                ", step " + std::to_string(*plan_->size() / shape_.gradient_accumulation_steps));
}

/// Calls work(i) for this rank's i of [0, count) on all threads; a failure anywhere, or being asked to stop, is thrown
/// on all ranks.
template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <class Comm, class Work>
void ImageTextSource<A, T, Store>::fill_share(Comm& comm, std::string_view what, std::size_t count, const Work& work) {
    const auto world = static_cast<std::size_t>(comm.world());
    const auto rank = static_cast<std::size_t>(comm.rank());
    const std::size_t share = count / world + (count % world > rank ? 1 : 0);
    std::atomic<bool> stop{options_.stopped && options_.stopped()};
    comm::agree(comm, [&] {
        for_all(
            static_cast<std::int64_t>(share), threads_for(options_.threads),
            [&](std::int64_t i) {
                if (!stop) work(static_cast<std::size_t>(i) * world + rank);
            },
            [&](std::int64_t done) {
                if (stop) return;
                if (options_.progress) options_.progress(what, done, static_cast<std::int64_t>(share));
                if (options_.stopped && options_.stopped()) stop = true;
            });
    });
    end_if_stopped(comm, stop);
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <class Comm>
void ImageTextSource<A, T, Store>::fill_latents(Comm& comm) {
    std::vector<LatentTask> tasks;
    for (const Bucket& bucket : buckets_) {
        if (!datasets_[bucket.dataset].keeps_latents()) continue;
        for (const std::size_t sample : bucket.samples) tasks.push_back({bucket.dataset, sample, bucket.size});
    }

    FieldWriter news;  // what this rank tells the others: kind, task, text
    std::mutex mutex;
    const auto tell = [&](int kind, std::size_t task, std::string_view text) {
        const std::lock_guard lock{mutex};
        news << kind << task << text;
    };
    enum Kind : int { made, rebuilt, failed };
    fill_share(comm, "latents", tasks.size(), [&](std::size_t i) {
        const LatentTask& task = tasks[i];
        const Dataset& dataset = datasets_[task.dataset];
        const Sample& sample = dataset.samples[task.sample];
        const Frame frame = dataset.framer.frame(sample.size, task.size);
        const std::string identity = latent_identity(dataset, sample, frame);
        // Beyond what fits into memory an entry is not read before it is needed; damage then shows later.
        if (dataset.latents.memory().is_full() && dataset.latents.contains(identity)) return;
        try {
            const CacheOutcome outcome = latents_of(dataset, sample, frame).second;
            if (outcome == CacheOutcome::made) tell(made, i, "");
            if (outcome == CacheOutcome::rebuilt) tell(rebuilt, i, dataset.latents.where(identity));
        } catch (const detail::PictureFailure& failure) {
            tell(failed, i, failure.problem());
        }
    });

    report_.latents.entries = static_cast<std::int64_t>(tasks.size());
    std::vector<std::pair<std::size_t, std::string>> failures;
    for (const std::string& bytes : comm.all_gather_varied(news.bytes())) {
        for (FieldReader fields{bytes}; !fields.empty();) {
            const std::int64_t kind = fields.integer();
            const auto task = static_cast<std::size_t>(fields.integer());
            std::string text = fields.text();
            if (kind == failed) failures.emplace_back(task, std::move(text));
            else ++report_.latents.made;
            if (kind == rebuilt) report_.latents.rebuilt.push_back(std::move(text));
        }
    }
    std::sort(report_.latents.rebuilt.begin(), report_.latents.rebuilt.end());
    std::sort(failures.begin(), failures.end());
    std::vector<std::set<std::size_t>> broken(datasets_.size());
    for (auto& [task, text] : failures) {
        const LatentTask& one = tasks[task];
        const Dataset& dataset = datasets_[one.dataset];
        report_.skipped.push_back({dataset.settings.id, dataset.pictures.where(dataset.samples[one.sample].key),
                                   SkipReason::unreadable, std::move(text)});
        broken[one.dataset].insert(one.sample);
    }
    for (std::size_t d = 0; d < datasets_.size(); ++d) {
        std::vector<Sample> kept;
        for (std::size_t i = 0; i < datasets_[d].samples.size(); ++i)
            if (!broken[d].contains(i)) kept.push_back(std::move(datasets_[d].samples[i]));
        datasets_[d].samples = std::move(kept);
    }
    report_.latents.entries -= static_cast<std::int64_t>(failures.size());
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <class Comm>
void ImageTextSource<A, T, Store>::fill_texts(Comm& comm) {
    std::set<std::pair<std::size_t, std::string>> unique;  // the empty caption is for caption dropout
    for (const Dataset& dataset : datasets_) {
        unique.emplace(dataset.texts, "");
        for (const Sample& sample : dataset.samples)
            for (std::string& caption : dataset.captions.all(detail::found_captions(sample, dataset.settings)))
                unique.emplace(dataset.texts, std::move(caption));
    }
    const std::vector<std::pair<std::size_t, std::string>> tasks(unique.begin(), unique.end());

    FieldWriter news;  // of entries that were made: the place if it was damaged before
    std::mutex mutex;
    fill_share(comm, "captions", tasks.size(), [&](std::size_t i) {
        const auto& [texts, caption] = tasks[i];
        const std::string identity = text_identity(caption);
        if (texts_[texts].memory().is_full() && texts_[texts].contains(identity)) return;
        const CacheOutcome outcome = text_of(texts, caption).second;
        if (outcome == CacheOutcome::found) return;
        const std::lock_guard lock{mutex};
        news << (outcome == CacheOutcome::rebuilt ? texts_[texts].where(identity) : std::string{});
    });

    report_.texts.entries = static_cast<std::int64_t>(tasks.size());
    for (const std::string& bytes : comm.all_gather_varied(news.bytes())) {
        for (FieldReader fields{bytes}; !fields.empty();) {
            ++report_.texts.made;
            if (std::string place = fields.text(); !place.empty()) report_.texts.rebuilt.push_back(std::move(place));
        }
    }
    std::sort(report_.texts.rebuilt.begin(), report_.texts.rebuilt.end());
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
template <class Comm>
void ImageTextSource<A, T, Store>::require_same_plan(Comm& comm) const {
    FieldWriter plan;
    plan << options_.seed << options_.train_batch_size << options_.gradient_accumulation_steps
         << std::to_string(options_.caption_dropout_probability) << std::string{autoencoder_->id()}
         << std::string{text_encoder_->id()};
    for (const Bucket& bucket : buckets_)
        plan << bucket.dataset_id << bucket.size.width << bucket.size.height << bucket.samples.size() << bucket.repeats;
    const std::vector<std::string> all = comm.all_gather_varied(plan.bytes());
    for (std::size_t r = 1; r < all.size(); ++r)
        if (all[r] != all[0])
            throw Error{Errc::rank_mismatch, "rank " + std::to_string(r) + " has other data settings than rank 0",
                        "start every rank with the same configuration files"};
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
std::string ImageTextSource<A, T, Store>::latent_identity(const Dataset& dataset, const Sample& sample,
                                                          const Frame& frame) const {
    FieldWriter identity;
    identity << "latents 4: upright, lanczos3, on white" << std::string{autoencoder_->id()} << dataset.place << sample.key
             << sample.bytes << sample.version << frame.target.width << frame.target.height << detail::exact(frame.width)
             << detail::exact(frame.height) << detail::exact(frame.left) << detail::exact(frame.top);
    return identity.bytes();
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
std::string ImageTextSource<A, T, Store>::text_identity(std::string_view caption) const {
    FieldWriter identity;
    identity << "caption 1" << std::string{text_encoder_->id()} << caption;
    return identity.bytes();
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
NamedTensors ImageTextSource<A, T, Store>::make_latents(const Dataset& dataset, const Sample& sample,
                                                        const Frame& frame) const {
    const std::string place = dataset.pictures.where(sample.key);
    const at::Tensor image_3HW = [&] {
        try {
            return detail::picture_tensor(dataset.pictures.get(sample.key), frame, "'" + place + "'", *decoding_);
        } catch (const Error& error) {
            if (error.code() == Errc::bad_picture || error.code() == Errc::unsupported_picture ||
                error.code() == Errc::not_found)
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
        throw detail::PictureFailure{
            Error{Errc::bad_picture, "'" + place + "' cannot be encoded: " + text.substr(0, text.find('\n')),
                  "mend or remove the file, or the autoencoder"}};
    }
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
std::pair<NamedTensors, CacheOutcome> ImageTextSource<A, T, Store>::latents_of(const Dataset& dataset,
                                                                               const Sample& sample,
                                                                               const Frame& frame) const {
    if (!dataset.keeps_latents()) return {make_latents(dataset, sample, frame), CacheOutcome::made};
    const std::int64_t pixels = autoencoder_->pixels_per_latent();
    const std::vector<std::int64_t> shape_Chw{autoencoder_->latent_channels(), frame.target.height / pixels,
                                              frame.target.width / pixels};
    return dataset.latents.get(
        latent_identity(dataset, sample, frame), [&] { return make_latents(dataset, sample, frame); },
        [&](const NamedTensors& tensors) {
            return detail::has_shape(tensors, "latents", 3) && tensors.at("latents").sizes() == shape_Chw;
        });
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
std::pair<NamedTensors, CacheOutcome> ImageTextSource<A, T, Store>::text_of(std::size_t texts,
                                                                            const std::string& caption) const {
    return texts_[texts].get(
        text_identity(caption),
        [&]() -> NamedTensors {
            const at::NoGradGuard no_gradients;
            const TextEmbedding embedding = text_encoder_->encode(caption);
            return {{"tokens", embedding.tokens.contiguous()}, {"pooled", embedding.pooled.contiguous()}};
        },
        [](const NamedTensors& tensors) {
            return detail::has_shape(tensors, "tokens", 2) && detail::has_shape(tensors, "pooled", 1);
        });
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
ImageTextBatch ImageTextSource<A, T, Store>::next() {
    if (!stream_)
        stream_ = std::make_unique<OrderedStream<ImageTextBatch>>(
            [this](std::int64_t position, const std::atomic<bool>& stop) { return make_batch(position, stop); }, position_,
            options_.prefetch_batches, threads_for(options_.threads));
    ++position_;
    return stream_->next();
}

template <Autoencoder A, TextEncoder T, storage::ObjectStore Store>
    requires std::constructible_from<Store, std::filesystem::path>
ImageTextBatch ImageTextSource<A, T, Store>::make_batch(std::int64_t position, const std::atomic<bool>& stop) {
    const GlobalBatch global = plan_->batch(position);
    const Dataset& dataset = datasets_[static_cast<std::size_t>(global.dataset)];
    const Bucket& bucket = buckets_[dataset.first_bucket + static_cast<std::size_t>(global.bucket)];
    const PictureSize size = drawn(bucket.shapes, global.random);
    ImageTextBatch batch;
    std::vector<at::Tensor> latents;
    std::vector<at::Tensor> tokens;
    std::vector<at::Tensor> pooled;
    const auto note = [this](std::vector<std::string>& rebuilt, std::string place) {
        const std::lock_guard lock{report_mutex_};
        rebuilt.push_back(std::move(place));
    };
    for (std::int64_t i = 0; i < options_.train_batch_size; ++i) {
        if (stop) return {};
        const Visit& visit = global.visits[static_cast<std::size_t>(rank_ * options_.train_batch_size + i)];
        const Sample& sample = dataset.samples[bucket.samples[static_cast<std::size_t>(visit.sample)]];
        const Frame frame =
            dataset.framer.frame(sample.size, size,
                                 combine({options_.seed, detail::crop, number_of(dataset.settings.id),
                                          number_of(sample.key), static_cast<std::uint64_t>(global.epoch)}));
        auto [picture, picture_outcome] = latents_of(dataset, sample, frame);
        if (picture_outcome == CacheOutcome::rebuilt)
            note(report_.latents.rebuilt, dataset.latents.where(latent_identity(dataset, sample, frame)));
        const bool dropped = unit_interval(combine({visit.random, detail::caption_dropout})) <
                             options_.caption_dropout_probability;
        const std::string caption =
            dropped ? std::string{}
                    : dataset.captions.caption(detail::found_captions(sample, dataset.settings),
                                               combine({visit.random, detail::caption}));
        auto [text, text_outcome] = text_of(dataset.texts, caption);
        if (text_outcome == CacheOutcome::rebuilt)
            note(report_.texts.rebuilt, texts_[dataset.texts].where(text_identity(caption)));
        latents.push_back(picture.at("latents"));
        tokens.push_back(text.at("tokens"));
        pooled.push_back(text.at("pooled"));
        batch.captions.push_back(caption);
        batch.samples.push_back(dataset.pictures.where(sample.key));
    }
    batch.latents_BCHW = detail::stack_rows(latents);
    batch.text_BTE = detail::stack_rows(tokens);
    batch.pooled_BE = detail::stack_rows(pooled);
    return batch;
}

}  // namespace strata::data
