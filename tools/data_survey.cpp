#include "data_survey.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <strata/comm/self_comm.hpp>
#include <strata/s3/folder_or_bucket.hpp>

#include "arguments.hpp"

namespace strata::tools {

namespace {

/// True if an epoch may show other batches of the data set than the one before.
bool differs_by_epoch(const config::ImageDataset& settings) {
    return settings.probability < 1 || settings.start_epoch > 1 || settings.end_epoch > 0 || settings.start_step > 1 ||
           settings.end_step > 0;
}

/// Latents in fp32, of so many channels, an eighth of the picture's edges.
auto latents_of(std::int64_t channels) {
    return [channels](const pictures::PictureSize& target) {
        return std::vector<storage::TensorOutline>{
            {"latents", storage::Dtype::f32, {channels, target.height / 8, target.width / 8}}};
    };
}
std::vector<storage::TensorOutline> embedding_of(std::int64_t tokens, std::int64_t width, std::int64_t pooled) {
    return {{"pooled", storage::Dtype::f32, {pooled}}, {"tokens", storage::Dtype::f32, {tokens, width}}};
}

}  // namespace

SurveyedFile read_survey_file(const SurveyRequest& request) {
    const config::Document document = config::load_trainer_document(request.file);
    SurveyedFile source;
    source.is_list = document.root.is(config::NodeKind::list);
    if (!source.is_list && !document.root.is(config::NodeKind::object))
        throw Error{Errc::bad_value, request.file.string() + " is neither a dataset list nor a trainer configuration",
                    "write [{\"id\": ...}, ...] or {\"data_backend_config\": ..., ...}"};
    if (!source.is_list) {
        source.config = config::look_at_trainer_config(document);
        source.config.reading.findings.throw_if_refused();
        source.index_folder = source.config.output_dir / "index";
    }
    config::TrainerConfig& config = source.config;
    source.list_file = source.is_list ? request.file : config.data_backend_config;
    config.train_batch_size = request.train_batch_size.value_or(config.train_batch_size);
    config.options.engine.gradient_accumulation_steps = static_cast<int>(
        request.gradient_accumulation_steps.value_or(config.options.engine.gradient_accumulation_steps));
    if (request.seed) config.options.seed = static_cast<std::uint64_t>(*request.seed);
    config.allow_dataset_oversubscription |= request.allow_dataset_oversubscription;
    source.index_folder = request.index_folder.value_or(source.index_folder);
    source.list = config::load_datasets(source.list_file, config.image_defaults());
    return source;
}

Survey survey(SurveyedFile source, const SurveyRequest& request, const SurveyProgress& progress,
              const std::function<void(const std::string&)>& note, const std::function<bool()>& stopped) {
    const config::TrainerConfig& config = source.config;
    http::RetryOptions retry;
    retry.patience = std::chrono::seconds{config.store_retry_seconds};
    datasets::Stores<s3::FolderOrBucket> stores{source.list, retry, {.say = note}};
    comm::SelfComm comm;
    std::vector<SurveyedSet> sets;
    std::vector<SurveyedSet> conditioning;
    SurveyedSet* now = nullptr;
    datasets::DiscoverOptions how;
    how.index_folder = source.index_folder;
    how.threads = request.threads;
    how.stopped = stopped;
    how.deletes = false;
    if (progress)
        how.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
            progress(now->settings.id, what, done, total);
        };
    datasets::DiscoveryWatch watch;
    watch.begins = [&](const config::ImageDataset& dataset) {
        now = &(dataset.is_conditioning() ? conditioning : sets).emplace_back();
        now->settings = dataset;
    };
    watch.found = [&](const config::ImageDataset&, const std::string& place, const datasets::Discovered& found) {
        SurveyedSet& set = *now;
        set.place = place;
        set.found = found.found;
        set.used = static_cast<std::int64_t>(found.samples.size());
        set.examined = found.examined;
        set.skipped = found.skipped;
        set.notes = found.notes;
    };
    watch.paired = [&](const config::ImageDataset& dataset, std::int64_t pictures) {
        for (SurveyedSet& set : conditioning)
            if (set.settings.id == dataset.id) set.used = pictures;
    };
    datasets::Collection collection = datasets::discover_all(
        comm, source.list, stores, {config.aspect_bucket_alignment, config.bucket_mode, config.aspect_bucket_rounding},
        how, watch);
    return {std::move(source), std::move(sets), std::move(conditioning), std::move(collection), stores.traffic()};
}

SurveyStatistics survey_statistics(const Survey& survey, const datasets::EntryShapes& recipe) {
    const datasets::Collection& collection = survey.collection;
    const config::DatasetList& list = survey.source.list;
    const auto is_gzip = [&](const config::CachePlace& place) {
        return place.compress_disk_cache.value_or(survey.source.config.compress_disk_cache);
    };
    const auto seed = survey.source.config.options.seed;
    SurveyStatistics all;
    std::map<std::string, std::set<std::string>> captions;  // by cache
    for (std::size_t d = 0; d < collection.sets().size(); ++d) {
        const datasets::PictureSet& set = collection.sets()[d];
        SetStatistics& one = all.sets.emplace_back();
        one.pictures = datasets::picture_statistics(set.samples);
        one.captions = datasets::caption_statistics(set, seed);
        std::set<std::string>& cache = captions[set.settings.text_embeds];
        if (recipe.dropped_caption) cache.insert(*recipe.dropped_caption);
        cache.insert(one.captions.different.begin(), one.captions.different.end());
        one.caching = datasets::latent_caching(set.settings);
        one.gzip = is_gzip(list.latent_cache_of(set.settings));
        for (const datasets::Bucket& bucket : collection.buckets()) {
            if (bucket.dataset != d) continue;
            one.latents.push_back(datasets::latent_cost(set, bucket, recipe));
            one.all_latents += one.latents.back();
        }
        all.kept += one.all_latents;
    }
    const auto skips_captions = [&](const std::string& embeds) {
        return std::any_of(list.images.begin(), list.images.end(), [&](const config::ImageDataset& set) {
            return set.text_embeds == embeds && set.skip_file_discovery.text;
        });
    };
    for (const config::TextEmbeds& embeds : list.text_embeds) {
        const auto found = captions.find(embeds.id);
        if (found == captions.end()) continue;
        all.texts.push_back({embeds.id, is_gzip(config::text_cache_of(embeds)), skips_captions(embeds.id),
                             datasets::text_cost(found->second, recipe)});
        all.kept += all.texts.back().cost;
    }
    return all;
}

SurveyPlan survey_plan(Survey& survey, std::int64_t ranks) {
    const config::TrainerConfig& config = survey.source.config;
    datasets::Collection& collection = survey.collection;
    SurveyPlan all;
    all.shape = {config.train_batch_size, ranks, config.options.engine.gradient_accumulation_steps};
    collection.arrange(all.shape, config.options.seed, config.allow_dataset_oversubscription,
                       config.data_backend_sampling);
    for (const datasets::Skipped& one : collection.report().skipped)
        if (one.reason == datasets::SkipReason::small_bucket) all.dropped.push_back(one);
    all.first_epoch = collection.plan().batches_in(0);
    all.size = collection.plan().size();
    const std::vector<std::int64_t> shown = datasets::batches_by_set(collection.plan(), 0, collection.sets().size());
    for (std::size_t d = 0; d < collection.sets().size(); ++d) {
        SetPlan& one = all.sets.emplace_back();
        one.shape = datasets::batch_shape(all.shape, collection.sets()[d].settings.train_batch_size);
        for (const datasets::Bucket& bucket : collection.buckets()) {
            if (bucket.dataset != d) continue;
            one.buckets.push_back(datasets::round_statistics(bucket, datasets::effective_batch(bucket, all.shape)));
            one.round += one.buckets.back();
        }
        one.batches_of_first_epoch = shown[d];
        all.round += one.round;
        all.epochs_differ |= differs_by_epoch(collection.sets()[d].settings);
    }
    return all;
}

std::vector<PlannedBatch> planned_batches(const Survey& survey, std::int64_t count) {
    const datasets::SamplePlan& plan = survey.collection.plan();
    std::vector<PlannedBatch> batches;
    for (std::int64_t position = 0; position < std::min(count, plan.size().value_or(count)); ++position) {
        const datasets::GlobalBatch batch = plan.batch(position);
        const datasets::PictureSet& set = survey.collection.sets()[static_cast<std::size_t>(batch.dataset)];
        const datasets::Bucket& bucket =
            survey.collection.buckets()[set.first_bucket + static_cast<std::size_t>(batch.bucket)];
        PlannedBatch& one = batches.emplace_back();
        one.step = position + 1;
        one.epoch = batch.epoch + 1;
        one.dataset = set.settings.id;
        one.size = pictures::drawn(bucket.shapes, batch.random);
        for (const datasets::Visit& visit : batch.visits)
            one.keys.push_back(set.samples[bucket.samples[static_cast<std::size_t>(visit.sample)]].key);
    }
    return batches;
}

const std::vector<KnownModel>& known_models() {
    // Flux.1: an autoencoder of 16 channels, T5 of 512 tokens of 4096, CLIP of 768; SDXL: 4 channels, two CLIPs of 77
    // tokens side by side, 768 + 1280, of which the second gives the pooled vector.
    static const std::vector<KnownModel> models{
        {"small_flux",
         {"linear-codec-lapped-8x16-v2", latents_of(16), "hashed-text-8x128-v1", embedding_of(8, 128, 128), ""}},
        {"flux", {"", latents_of(16), "", embedding_of(512, 4096, 768), ""}},
        {"sdxl", {"", latents_of(4), "", embedding_of(77, 2048, 1280), ""}},
    };
    return models;
}

const datasets::EntryShapes& recipe_of(std::string_view model) {
    std::vector<std::string_view> names;
    std::string list;
    for (const KnownModel& known : known_models()) {
        if (known.name == model) return known.recipe;
        names.push_back(known.name);
        list += (list.empty() ? "" : ", ") + std::string{known.name};
    }
    throw Error{Errc::bad_argument, "the sizes of model '" + std::string{model} + "' are not known",
                did_you_mean(model, names, "use one of " + list)};
}

}  // namespace strata::tools
