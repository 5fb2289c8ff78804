#include <array>
#include <cstddef>

#include <nlohmann/json.hpp>

#include "data_output.hpp"

namespace strata::tools {

namespace {

using Json = nlohmann::ordered_json;

Json size_json(const pictures::PictureSize& size) { return {{"width", size.width}, {"height", size.height}}; }

Json spread_json(const datasets::Spread& spread) {
    return {{"smallest", spread.smallest}, {"median", spread.median}, {"largest", spread.largest}};
}

Json cost_json(const datasets::CacheCost& cost) { return {{"entries", cost.entries}, {"bytes", cost.bytes}}; }

Json round_json(const datasets::RoundStatistics& round) {
    return {{"turns", round.turns}, {"filled_up", round.filled}, {"batches", round.batches}};
}

const char* name_of(datasets::LatentCaching caching) {
    constexpr std::array names{"ahead", "on_demand", "each_epoch", "none"};
    return names[static_cast<std::size_t>(caching)];
}

Json set_json(const SurveyedSet& set, std::int64_t names) {
    Json skipped = Json::array();
    for (int i = 0; i < datasets::skip_reasons; ++i) {
        const auto reason = static_cast<datasets::SkipReason>(i);
        std::int64_t total = 0;
        Json named = Json::array();
        for (const datasets::Skipped& one : set.skipped)
            if (one.reason == reason && ++total <= names)
                named.push_back({{"place", one.place}, {"detail", one.detail}});
        if (total > 0) skipped.push_back({{"reason", datasets::name_of(reason)}, {"count", total}, {"named", named}});
    }
    const config::ImageDataset& settings = set.settings;
    return {{"id", settings.id},
            {"dataset_type", settings.is_eval()           ? "eval"
                             : settings.is_conditioning() ? "conditioning"
                                                          : "image"},
            {"conditioning_data", settings.conditioning_data},
            {"place", set.place},
            {"found", set.found},
            {"used", set.used},
            {"examined", set.examined},
            {"skipped", std::move(skipped)},
            {"notes", set.notes}};
}

Json statistics_json(const SetStatistics& statistics) {
    const datasets::PictureStatistics& pictures = statistics.pictures;
    return {{"pictures",
             {{"count", pictures.count},
              {"bytes", pictures.bytes},
              {"smallest", size_json(pictures.smallest)},
              {"median", size_json(pictures.median)},
              {"largest", size_json(pictures.largest)},
              {"megapixels", spread_json(pictures.megapixels)},
              {"aspect_ratio", spread_json(pictures.aspect_ratio)},
              {"file_bytes", spread_json(pictures.file_bytes)}}},
            {"captions",
             {{"found", statistics.captions.found},
              {"different", statistics.captions.different.size()},
              {"characters", spread_json(statistics.captions.characters)}}}};
}

Json bucket_json(const DataAnswer& answer, const datasets::Bucket& bucket, std::size_t number) {
    const auto pictures = bucket.samples.size();
    Json json = size_json(bucket.size);
    json["shapes"] = bucket.shapes.size();
    json["pictures"] = pictures;
    json["share"] = static_cast<double>(pictures) / static_cast<double>(answer.survey->sets[bucket.dataset].used);
    json["repeats"] = bucket.repeats;
    json["repeats_asked"] = bucket.repeats_asked;
    json["merged"] = bucket.merged;
    if (answer.statistics != nullptr)
        json["latents"] = cost_json(answer.statistics->sets[bucket.dataset].latents[number]);
    if (answer.plan != nullptr) json["round"] = round_json(answer.plan->sets[bucket.dataset].buckets[number]);
    return json;
}

Json caches_json(const DataAnswer& answer) {
    const SurveyStatistics& statistics = *answer.statistics;
    Json latents = Json::array();
    for (std::size_t d = 0; d < statistics.sets.size(); ++d) {
        Json one{{"data_set", answer.survey->sets[d].settings.id},
                 {"made", name_of(statistics.sets[d].caching)},
                 {"gzip", statistics.sets[d].gzip}};
        one.update(cost_json(statistics.sets[d].all_latents));
        latents.push_back(std::move(one));
    }
    Json texts = Json::array();
    for (const TextCache& cache : statistics.texts) {
        Json one{{"text_embeds", cache.id}, {"gzip", cache.gzip}};
        one.update(cost_json(cache.cost));
        texts.push_back(std::move(one));
    }
    return {{"model", answer.model},
            {"latents", std::move(latents)},
            {"captions", std::move(texts)},
            {"together", cost_json(statistics.kept)}};
}

Json plan_json(const DataAnswer& answer) {
    const SurveyPlan& plan = *answer.plan;
    const std::int64_t accumulation = plan.shape.gradient_accumulation_steps;
    Json sets = Json::array();
    for (std::size_t d = 0; d < plan.sets.size(); ++d)
        sets.push_back({{"data_set", answer.survey->sets[d].settings.id},
                        {"probability", answer.survey->sets[d].settings.probability},
                        {"effective_batch", plan.sets[d].shape.effective()},
                        {"round", round_json(plan.sets[d].round)},
                        {"steps_of_first_epoch", plan.sets[d].batches_of_first_epoch}});
    Json batches = Json::array();
    for (const PlannedBatch& batch : planned_batches(*answer.survey, answer.batches))
        batches.push_back({{"step", batch.step},
                           {"epoch", batch.epoch},
                           {"data_set", batch.dataset},
                           {"width", batch.size.width},
                           {"height", batch.size.height},
                           {"samples", batch.keys}});
    Json dropped = Json::array();
    for (const datasets::Skipped& one : plan.dropped)
        dropped.push_back({{"data_set", one.dataset}, {"place", one.place}, {"detail", one.detail}});
    return {
        {"dropped", std::move(dropped)},
        {"train_batch_size", plan.shape.train_batch_size},
        {"ranks", plan.shape.ranks},
        {"gradient_accumulation_steps", accumulation},
        {"effective_batch", plan.shape.effective()},
        {"seed", answer.survey->source.config.options.seed},
        {"first_epoch", {{"optimizer_steps", plan.first_epoch}, {"micro_batches", plan.first_epoch * accumulation}}},
        {"epochs_differ", plan.epochs_differ},
        {"steps_in_all", plan.size ? Json(*plan.size) : Json(nullptr)},
        {"round", round_json(plan.round)},
        {"data_sets", std::move(sets)},
        {"batches", std::move(batches)}};
}

Json traffic_json(const s3::S3Traffic& traffic) {
    return {{"list", traffic.list},         {"head", traffic.head},          {"get", traffic.get},
            {"put", traffic.put},           {"delete", traffic.remove},      {"retries", traffic.retries},
            {"bytes_in", traffic.bytes_in}, {"bytes_out", traffic.bytes_out}};
}

}  // namespace

std::string as_json(const DataAnswer& answer) {
    const Survey& survey = *answer.survey;
    Json all{{"command", answer.command},
             {"dataset_list", survey.source.list_file.string()},
             {"index", survey.source.index_folder.string()}};
    Json sets = Json::array();
    for (std::size_t d = 0; d < survey.sets.size(); ++d) {
        Json set = set_json(survey.sets[d], answer.names);
        if (answer.statistics != nullptr && d < answer.statistics->sets.size())
            set.update(statistics_json(answer.statistics->sets[d]));
        if (d < survey.collection.sets().size()) {
            Json buckets = Json::array();
            for (const datasets::Bucket& bucket : survey.collection.buckets())
                if (bucket.dataset == d) buckets.push_back(bucket_json(answer, bucket, buckets.size()));
            set["buckets"] = std::move(buckets);
        }
        sets.push_back(std::move(set));
    }
    all["data_sets"] = std::move(sets);
    all["conditioning"] = Json::array();
    for (const SurveyedSet& set : survey.conditioning) all["conditioning"].push_back(set_json(set, answer.names));
    if (answer.statistics != nullptr) all["caches"] = caches_json(answer);
    if (answer.plan != nullptr) all["plan"] = plan_json(answer);
    all["s3"] = survey.traffic ? traffic_json(*survey.traffic) : Json(nullptr);
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata::tools
