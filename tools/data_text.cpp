#include <array>
#include <cmath>
#include <cstdio>

#include <strata/core/amounts.hpp>
#include <strata/core/printable.hpp>

#include "data_output.hpp"
#include "table.hpp"

namespace strata::tools {

namespace {

using core::in_megabytes;
using core::printable;

template <class Number>
std::string count(Number number) {
    return core::with_commas(static_cast<std::uint64_t>(number));
}

/// "1 picture", "2 pictures"
template <class Number>
std::string count(Number number, const std::string& what) {
    return count(number) + " " + what + (number == 1 ? "" : what.ends_with("batch") ? "es" : "s");
}

std::string decimals(double number, int digits) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", digits, number);
    return text.data();
}

std::string percent(double part, double whole) { return decimals(whole == 0 ? 0 : 100 * part / whole, 1) + " %"; }

std::string size_text(const pictures::PictureSize& size) {
    return std::to_string(size.width) + " x " + std::to_string(size.height);
}

std::string bucket_text(const datasets::Bucket& bucket) {
    return size_text(bucket.size) +
           (bucket.shapes.size() > 1 ? " and " + count(bucket.shapes.size() - 1, "other") : std::string{});
}

std::string_view words_for(datasets::LatentCaching caching) {
    switch (caching) {
        case datasets::LatentCaching::ahead:
            return "before the first step";
        case datasets::LatentCaching::on_demand:
            return "at first visits";
        case datasets::LatentCaching::each_epoch:
            return "in each epoch, and kept for that epoch";
        case datasets::LatentCaching::none:
            break;
    }
    return "at each visit, and not kept";
}

std::string skipped_text(const SurveyedSet& set, std::int64_t names) {
    std::string text;
    for (int i = 0; i < datasets::skip_reasons; ++i) {
        const auto reason = static_cast<datasets::SkipReason>(i);
        std::int64_t total = 0;
        std::string named;
        for (const datasets::Skipped& one : set.skipped)
            if (one.reason == reason && ++total <= names)
                named += "    " + printable(one.place) +
                         (one.detail.empty() ? "" : " (" + printable(one.detail) + ")") + "\n";
        if (total == 0) continue;
        text += "  skipped, " + std::string{datasets::name_of(reason)} + ": " + count(total) + "\n" + named;
        if (names > 0 && total > names) text += "    and " + count(total - names) + " more\n";
    }
    return text;
}

std::string set_text(const SurveyedSet& set, std::int64_t names) {
    const auto skipped = static_cast<std::int64_t>(set.skipped.size());
    const std::int64_t left_out = set.found - skipped - set.used;
    const config::ImageDataset& settings = set.settings;
    std::string text = (settings.is_eval()           ? "eval data set '"
                        : settings.is_conditioning() ? "conditioning data set '"
                                                     : "data set '") +
                       printable(settings.id) + "': " + printable(set.place) + "\n  " + count(set.found, "picture") +
                       " found: " + count(set.used) + " used, " + count(skipped) + " skipped";
    if (left_out > 0)
        text += ", " + count(left_out) +
                (settings.is_conditioning() ? " of no picture that is used" : " left out by max_num_samples");
    if (!settings.conditioning_data.empty()) {
        text += "\n  each with a conditioning picture of";
        for (const std::string& id : settings.conditioning_data)
            text += (id == settings.conditioning_data.front() ? " '" : ", '") + printable(id) + "'";
    }
    text +=
        "\n  " + count(set.examined) + " examined now, " + count(set.found - set.examined) + " known from the index\n";
    text += skipped_text(set, names);
    for (const std::string& note : set.notes) text += "  note: " + printable(note) + "\n";
    return text;
}

std::string statistics_text(const Survey& survey, std::size_t d, const SetStatistics& statistics) {
    const datasets::PictureStatistics& pictures = statistics.pictures;
    if (pictures.count == 0) return {};
    Table table{{{""}, {"smallest", Align::right}, {"median", Align::right}, {"largest", Align::right}}};
    const auto row = [&](const char* what, const datasets::Spread& spread, const auto& text) {
        table.row({what, text(spread.smallest), text(spread.median), text(spread.largest)});
    };
    table.row(
        {"width x height", size_text(pictures.smallest), size_text(pictures.median), size_text(pictures.largest)});
    row("megapixels", pictures.megapixels, [](double number) { return decimals(number, 3); });
    row("width / height", pictures.aspect_ratio, [](double number) { return decimals(number, 2); });
    row("file", pictures.file_bytes, [](double number) { return in_megabytes(static_cast<std::uint64_t>(number)); });
    row("characters of a caption", statistics.captions.characters,
        [](double number) { return decimals(number, number == std::floor(number) ? 0 : 1); });
    std::string text = table.text("  ");
    text += "  files of these pictures: " + in_megabytes(pictures.bytes) + "\n";
    text += "  captions: " + count(statistics.captions.found) + " found, " +
            count(statistics.captions.different.size()) + " different ones to embed\n";

    Table buckets{{{"bucket"},
                   {"pictures", Align::right},
                   {"share", Align::right},
                   {"latents", Align::right},
                   {"bytes", Align::right}}};
    std::size_t b = 0;
    for (const datasets::Bucket& bucket : survey.collection.buckets()) {
        if (bucket.dataset != d) continue;
        const datasets::CacheCost& cost = statistics.latents[b++];
        buckets.row({bucket_text(bucket), count(bucket.samples.size()),
                     percent(static_cast<double>(bucket.samples.size()), static_cast<double>(pictures.count)),
                     count(cost.entries), in_megabytes(cost.bytes)});
    }
    return text + buckets.text("  ");
}

std::string caches_text(const DataAnswer& answer) {
    const SurveyStatistics& statistics = *answer.statistics;
    const std::string model{answer.model};
    const datasets::EntryShapes& recipe = recipe_of(model);
    const bool is_fp32 = recipe.caption_tensors.back().dtype == storage::Dtype::f32;
    std::string text = "caches for model " + model + ", " + (is_fp32 ? "fp32" : "bf16") + "\n";
    Table table{{{"cache"}, {"entries", Align::right}, {"bytes", Align::right}, {"gzip"}, {"made"}}};
    bool has_gzip = false;
    const auto row = [&](const std::string& what, const datasets::CacheCost& cost, bool gzip, std::string_view made) {
        has_gzip |= gzip;
        table.row({what, count(cost.entries), in_megabytes(cost.bytes), gzip ? "yes" : "no", std::string{made}});
    };
    for (std::size_t d = 0; d < statistics.sets.size(); ++d) {
        const SetStatistics& set = statistics.sets[d];
        row("latents of '" + answer.survey->sets[d].settings.id + "'", set.all_latents, set.gzip,
            words_for(set.caching));
    }
    for (const TextCache& cache : statistics.texts)
        row("captions in '" + cache.id + "'", cache.cost, cache.gzip,
            words_for(cache.on_demand ? datasets::LatentCaching::on_demand : datasets::LatentCaching::ahead));
    table.row({"together", count(statistics.kept.entries), in_megabytes(statistics.kept.bytes), "", ""});
    text += table.text("  ");
    text += recipe.dropped_caption ? "  The empty caption, of caption dropout, is among the captions. "
                                   : "  A dropped caption is zeros, which nothing is kept of. ";
    text += "Bytes are those without gzip: ";
    text += has_gzip ? "with it files are smaller,\n  by an amount that is not foreseen.\n"
                     : "compress_disk_cache makes\n  files smaller, by an amount that is not foreseen.\n";
    if (recipe.picture_id.empty())
        text += "  Every entry names the encoder that made it; that name comes on top, some bytes an entry.\n";
    return text;
}

std::string plan_text(const DataAnswer& answer) {
    const SurveyPlan& plan = *answer.plan;
    const Survey& survey = *answer.survey;
    const std::int64_t accumulation = plan.shape.gradient_accumulation_steps;
    std::string text = "effective batch: " + count(plan.shape.effective(), "sample") + " = train_batch_size " +
                       count(plan.shape.train_batch_size) + " x " + count(plan.shape.ranks, "rank") +
                       " x gradient_accumulation_steps " + count(accumulation) + "\n";
    text +=
        "first epoch: " + count(plan.first_epoch, "optimizer step") + " of " + count(plan.shape.effective(), "sample");
    if (accumulation > 1)
        text += ", each in " + count(accumulation, "micro-batch") + " of " + count(plan.shape.micro(), "sample");
    text += "\n";
    for (std::size_t d = 0; d < plan.sets.size(); ++d)
        if (const std::int64_t own = survey.sets[d].settings.train_batch_size; own > 0)
            text += "  Steps of '" + survey.sets[d].settings.id + "' have " +
                    count(plan.sets[d].shape.effective(), "sample") + ": its train_batch_size is " + count(own) + ".\n";
    if (!plan.dropped.empty())
        text += "  " + count(plan.dropped.size(), "picture") +
                " of buckets that are too small left out (small_buckets drop); the first is " +
                plan.dropped.front().place + ": " + plan.dropped.front().detail + ".\n";
    if (survey.source.config.data_backend_sampling == config::DataBackendSampling::uniform)
        text +=
            "  Data sets are drawn as often as each other, by probability, until one is used up "
            "(data_backend_sampling uniform).\n";
    if (plan.epochs_differ)
        text += "  Other epochs may have another number: a data set has a probability below 1, or joins or leaves.\n";
    if (plan.size) text += "  No data set takes part any more after step " + count(*plan.size) + ".\n";
    text += "turns of a round: " + count(plan.round.turns) + ", and " + count(plan.round.filled) +
            " more that fill up last batches (" +
            percent(static_cast<double>(plan.round.filled), static_cast<double>(plan.round.turns + plan.round.filled)) +
            " of all)\n\n";

    Table buckets{{{"data set"},
                   {"bucket"},
                   {"pictures", Align::right},
                   {"repeats", Align::right},
                   {"turns", Align::right},
                   {"filled up", Align::right},
                   {"batches", Align::right},
                   {""}}};
    for (const datasets::Bucket& bucket : survey.collection.buckets()) {
        const std::size_t first = survey.collection.sets()[bucket.dataset].first_bucket;
        const auto b = static_cast<std::size_t>(&bucket - survey.collection.buckets().data()) - first;
        const datasets::RoundStatistics& round = plan.sets[bucket.dataset].buckets[b];
        buckets.row({bucket.dataset_id, bucket_text(bucket), count(bucket.samples.size()), count(bucket.repeats),
                     count(round.turns), count(round.filled), count(round.batches),
                     bucket.repeats != bucket.repeats_asked
                         ? "repeats raised from " + count(bucket.repeats_asked) + " to hold an effective batch"
                     : bucket.merged > 0 ? count(bucket.merged) + " of the pictures from smaller buckets"
                                         : ""});
    }
    text += buckets.text("  ") + "\n";

    Table sets{{{"data set"},
                {"turns", Align::right},
                {"filled up", Align::right},
                {"batches", Align::right},
                {"probability", Align::right},
                {"in the first epoch", Align::right},
                {"share", Align::right}}};
    for (std::size_t d = 0; d < plan.sets.size(); ++d) {
        const SetPlan& set = plan.sets[d];
        sets.row({survey.sets[d].settings.id, count(set.round.turns), count(set.round.filled), count(set.round.batches),
                  decimals(survey.sets[d].settings.probability, 2), count(set.batches_of_first_epoch),
                  percent(static_cast<double>(set.batches_of_first_epoch), static_cast<double>(plan.first_epoch))});
    }
    text += sets.text("  ");
    for (const PlannedBatch& batch : planned_batches(survey, answer.batches)) {
        text += (batch.step == 1 ? "\nstep " : "step ") + count(batch.step) + ": epoch " + count(batch.epoch) +
                ", data set '" + printable(batch.dataset) + "', " + size_text(batch.size) + "\n";
        for (const std::string& key : batch.keys) text += "    " + printable(key) + "\n";
    }
    return text;
}

}  // namespace

std::string as_text(const DataAnswer& answer) {
    const Survey& survey = *answer.survey;
    std::string text;
    for (std::size_t d = 0; d < survey.sets.size(); ++d) {
        text += set_text(survey.sets[d], answer.names);
        if (answer.statistics != nullptr && d < answer.statistics->sets.size())
            text += statistics_text(survey, d, answer.statistics->sets[d]);
        text += "\n";
    }
    for (const SurveyedSet& set : survey.conditioning) text += set_text(set, answer.names) + "\n";
    if (answer.statistics != nullptr) text += caches_text(answer) + "\n";
    if (answer.plan != nullptr) text += plan_text(answer) + "\n";
    if (survey.traffic) text += "S3: " + s3::summary(*survey.traffic) + "\n";
    text += survey.source.index_folder.empty()
                ? "index: none; --index FOLDER keeps what was found out, for the next time\n"
                : "index: " + printable(survey.source.index_folder.string()) + "\n";
    return text;
}

}  // namespace strata::tools
