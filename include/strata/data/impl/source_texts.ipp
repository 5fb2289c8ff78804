#pragma once
// strata/data/impl/source_texts.ipp - settings as text, and what was made again as lines.

#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/random.hpp>
#include <strata/core/text.hpp>
#include <strata/data/detail/source_texts.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/cache_identity.hpp>

namespace strata::data {

namespace detail {

[[nodiscard]] STRATA_INLINE std::string settings_text(const SourceOptions& options, const config::DatasetList& list) {
    datasets::FieldWriter fields;
    const auto number = [&](double value) { fields << core::shortest_text(value); };
    const auto flag = [&](bool value) { fields << (value ? 1 : 0); };
    const auto word = [&](auto value) { fields << static_cast<int>(value); };
    const auto bucket = [&](config::StoreType type, const config::S3Settings& s3) {
        word(type);
        fields << s3.bucket << s3.endpoint_url << s3.data_prefix;
    };
    fields << options.seed << options.train_batch_size << options.gradient_accumulation_steps
           << options.aspect_bucket_alignment << options.aspect_bucket_rounding;
    word(options.bucket_mode);
    flag(options.trains_adapter);
    number(options.caption_dropout_probability);
    flag(options.allow_dataset_oversubscription);
    flag(options.compress_disk_cache);
    if (options.data_backend_sampling != config::DataBackendSampling::auto_weighting) {
        fields << "data_backend_sampling";
        word(options.data_backend_sampling);
    }
    const auto add = [&](const config::ImageDataset& set) {
        fields << set.id << set.text_embeds << set.image_embeds;
        bucket(set.type, set.s3);
        for (const double value : {set.resolution, set.minimum_image_size, set.maximum_image_size,
                                   set.target_downsample_size, set.minimum_aspect_ratio, set.maximum_aspect_ratio,
                                   set.max_upscale_threshold.value_or(-1), set.probability})
            number(value);
        word(set.resolution_type);
        word(set.crop_style);
        word(set.crop_aspect);
        for (const config::CropAspectBucket& one : set.crop_aspect_buckets) {
            number(one.aspect);
            number(one.weight);
        }
        for (const std::int64_t value :
             {set.repeats, set.max_num_samples, set.start_epoch, set.end_epoch, set.start_step, set.end_step})
            fields << value;
        word(set.caption_strategy);
        fields << set.instance_prompt;
        if (set.caption_shuffle) {
            const config::CaptionShuffle& shuffle = *set.caption_shuffle;
            fields << shuffle.count << shuffle.seed.value_or(-1) << shuffle.position_start;
            word(shuffle.split_on);
            flag(shuffle.enable);
            flag(shuffle.include_original);
        }
        // Only where they say something, so that checkpoints from before there were such keys are of the same data.
        if (set.train_batch_size > 0) fields << "train_batch_size" << set.train_batch_size;
        if (set.disable_after_epoch_step > 0) fields << "disable_after_epoch_step" << set.disable_after_epoch_step;
        if (set.small_buckets) {
            fields << "small_buckets";
            word(*set.small_buckets);
        }
        for (const std::string& entry : set.caption_filter_list) fields << "caption_filter_list" << entry;
        for (const std::string& id : set.conditioning_data) fields << "conditioning_data" << id;
        word(set.metadata_backend);
        if (set.parquet) {
            fields << set.parquet->filename_column << set.parquet->width_column << set.parquet->height_column;
            for (const auto* const names : {&set.parquet->caption_column, &set.parquet->fallback_caption_column})
                for (const std::string& name : *names) fields << name;
            flag(set.parquet->identifier_includes_extension);
        }
        for (const bool value :
             {set.crop, set.is_regularisation_data, set.prepend_instance_prompt, set.only_instance_prompt,
              set.disable_multiline_split, set.preserve_data_backend_cache, set.skip_file_discovery.vae,
              set.skip_file_discovery.metadata, set.skip_file_discovery.text, set.vae_cache_ondemand,
              set.vae_cache_disable, set.vae_cache_clear_each_epoch, set.scan_for_errors, set.delete_problematic_images,
              set.compress_disk_cache.value_or(false), set.compress_disk_cache.has_value()})
            flag(value);
    };
    for (const config::ImageDataset& set : list.images) add(set);
    fields << "eval";
    for (const config::ImageDataset& set : list.eval) add(set);
    for (const config::ImageDataset& set : list.conditioning) {
        fields << "conditioning" << set.id;
        bucket(set.type, set.s3);
        word(set.conditioning_type);
        flag(set.preserve_data_backend_cache);
        flag(set.scan_for_errors);
    }
    for (const auto& embeds : list.text_embeds) {
        fields << embeds.id;
        bucket(embeds.type, embeds.s3);
    }
    for (const auto& embeds : list.image_embeds) {
        fields << embeds.id;
        bucket(embeds.type, embeds.s3);
    }
    return fields.bytes();
}

/// "a picture and a mask"
inline std::string in_words(const std::vector<pictures::ConditioningKind>& kinds) {
    std::string text;
    for (std::size_t i = 0; i < kinds.size(); ++i)
        text += std::string{i == 0                  ? ""
                            : i + 1 == kinds.size() ? " and "
                                                    : ", "} +
                "a " + std::string{pictures::name_of(kinds[i])};
    return text;
}

STRATA_INLINE void refuse_conditioning(const config::ImageDataset& settings,
                                       const std::vector<pictures::ConditioningKind>& given,
                                       const std::vector<pictures::ConditioningKind>& wanted) {
    std::string names;
    for (const std::string& id : settings.conditioning_data) names += (names.empty() ? "'" : ", '") + id + "'";
    const std::string has =
        given.empty() ? "has no conditioning_data"
                      : "has conditioning_data " + names + ", which is " + in_words(given) + " for each picture";
    if (wanted.empty())
        throw Error{Errc::bad_conditioning,
                    "data set '" + settings.id + "' " + has + ", and the model takes no conditioning pictures",
                    "remove conditioning_data, or train a model whose recipe takes them"};
    throw Error{
        Errc::bad_conditioning,
        "data set '" + settings.id + "' " + has + ", and the model takes " + in_words(wanted) + " with each picture",
        "name " + (wanted.size() == 1 ? std::string{"a data set"} : std::to_string(wanted.size()) + " data sets") +
            " with dataset_type conditioning there, in the order of the model's, with conditioning_type mask "
            "where that is a mask and only there"};
}

[[nodiscard]] STRATA_INLINE std::string epoch_folder(std::string_view dataset) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), core::number_of(dataset), 16).ptr;
    return "each_epoch/" + std::string{digits.data(), end} + "/";
}

[[nodiscard]] STRATA_INLINE std::string cannot_remake(CacheOutcome why, const std::string& place) {
    if (why == CacheOutcome::made) return {};
    return "cache entry '" + place + "' " + (why == CacheOutcome::rebuilt ? "is damaged" : "has no check sum") +
           " and cannot be made again: ";
}

STRATA_INLINE void add(datasets::CacheReport& report, const Remade& remade) {
    for (const auto& [outcome, places] : remade) {
        std::vector<std::string>& list = outcome == CacheOutcome::rebuilt ? report.rebuilt : report.replaced;
        list.insert(list.end(), places.begin(), places.end());
    }
}

[[nodiscard]] STRATA_INLINE std::string pack(const std::array<Remade, 2>& remade) {
    datasets::FieldWriter fields;
    for (std::size_t cache = 0; cache < remade.size(); ++cache)
        for (const auto& [outcome, places] : remade[cache])
            for (const std::string& place : places) fields << cache << static_cast<int>(outcome) << place;
    return fields.bytes();
}

[[nodiscard]] STRATA_INLINE std::vector<std::string> remade_while_training(const std::vector<std::string>& packed) {
    std::array<Remade, 2> all;
    for (const std::string& bytes : packed)
        for (datasets::FieldReader fields{bytes}; !fields.empty();) {
            Remade& cache = all.at(static_cast<std::size_t>(fields.integer()));
            const auto outcome = static_cast<CacheOutcome>(fields.integer());
            cache[outcome].insert(fields.text());
        }
    std::vector<std::string> lines;
    for (std::size_t cache = 0; cache < all.size(); ++cache) {
        datasets::CacheReport report;
        add(report, all[cache]);
        for (std::string& line :
             datasets::remade_lines(cache == 0 ? "latents, while training" : "captions, while training", report))
            lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace detail

}  // namespace strata::data
