#pragma once
// strata/config/impl/dataset_parts.ipp - names of values of data sets, and the keys of their parts: buckets, Parquet, captions.

#include <algorithm>
#include <array>
#include <cmath>

#include <strata/config/dataset.hpp>
#include <strata/config/impl/dataset_foreign_keys.ipp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/load_json.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/core/text.hpp>

namespace strata::config {

namespace detail {

inline std::vector<Choice<StoreType>> store_types() {
    return {{"local", StoreType::local},
            {"aws", StoreType::aws},
            {"memory", StoreType::local, no_memory_store},
            {"csv", StoreType::local, "a cache is a folder or a bucket"},
            {"huggingface", StoreType::local, no_hub},
            {"webshart", StoreType::local, no_webshart}};
}

inline std::vector<Choice<StoreType>> picture_store_types() {
    return {{"local", StoreType::local},
            {"aws", StoreType::aws},
            {"csv", StoreType::csv},
            {"memory", StoreType::local, no_memory_store},
            {"huggingface", StoreType::local, no_hub},
            {"webshart", StoreType::local, no_webshart}};
}

inline std::vector<Choice<DatasetType>> dataset_types() {
    return {{"image", DatasetType::image},
            {"eval", DatasetType::eval},
            {"text_embeds", DatasetType::text_embeds},
            {"image_embeds", DatasetType::image_embeds},
            {"video", DatasetType::image, no_media},
            {"audio", DatasetType::image, no_media},
            {"conditioning", DatasetType::conditioning},
            {"conditioning_image_embeds", DatasetType::image, no_conditioning_embeds},
            {"caption", DatasetType::image, "captions come with their pictures"}};
}

inline std::vector<Choice<ConditioningType>> conditioning_types() {
    return {{"controlnet", ConditioningType::controlnet},
            {"mask", ConditioningType::mask},
            {"reference_strict", ConditioningType::reference_strict},
            {"reference_loose", ConditioningType::controlnet,
             "a conditioning picture shows what the picture it belongs to shows, and is framed alike"},
            {"segmentation", ConditioningType::mask, "white counts and black does not, which is a mask"}};
}

inline std::vector<Choice<ResolutionType>> resolution_types() {
    return {
        {"pixel", ResolutionType::pixel}, {"area", ResolutionType::area}, {"pixel_area", ResolutionType::pixel_area}};
}

inline std::vector<Choice<CaptionStrategy>> caption_strategies() {
    return {{"textfile", CaptionStrategy::textfile},
            {"filename", CaptionStrategy::filename},
            {"instanceprompt", CaptionStrategy::instanceprompt},
            {"parquet", CaptionStrategy::parquet},
            {"json", CaptionStrategy::json},
            {"csv", CaptionStrategy::csv},
            {"huggingface", CaptionStrategy::textfile, no_hub},
            {"webshart", CaptionStrategy::textfile, no_webshart}};
}

/// [1.0, 0.75] or [{"aspect": 1.0, "weight": 0.6}, ...]; weights are all given or none.
inline std::vector<CropAspectBucket> read_crop_aspect_buckets(const Value& value) {
    static const Schema<CropAspectBucket> keys = [] {
        Schema<CropAspectBucket> s;
        s.number("aspect", &CropAspectBucket::aspect, {0.01, 100}, "Width / height").required();
        s.number("weight", &CropAspectBucket::weight, {0, 1}, "Probability of being drawn").required();
        return s;
    }();
    std::vector<CropAspectBucket> buckets;
    const std::vector<Value> elements = value.elements();
    double sum = 0;
    for (const Value& element : elements) {
        if (element.is_object() != elements.front().is_object())
            value.refuse(Errc::bad_value, "has both plain numbers and objects with a weight",
                         "give all buckets a weight, or none");
        if (element.is_object()) {
            buckets.push_back(keys.read(element.json(), element.source(), element.key() + "."));
        } else {
            check_range(element, element.number(), {0.01, 100});
            buckets.push_back({element.number(), 1 / static_cast<double>(elements.size())});
        }
        sum += buckets.back().weight;
    }
    if (!buckets.empty() && std::abs(sum - 1) > 1e-6)
        value.refuse(Errc::bad_value, "has weights whose sum is " + shown(sum), "use weights whose sum is 1");
    return buckets;
}

/// A list of entries; or the name of a file, as it stands or beside the dataset list: of one whose name ends in .json its
/// list, of any other its lines. Entries of white space alone are left out.
inline std::vector<std::string> read_caption_filters(const Value& value) {
    std::vector<std::string> entries;
    if (value.json().is_array()) {
        entries = value.texts();
    } else {
        const std::string named = value.text();
        if (named.empty()) return {};
        const std::filesystem::path file = found_from(named, value.file());
        if (file.empty())
            value.refuse(Errc::bad_reference, "names the file " + value.shown() + ", which is not there",
                         "correct the path, or write a list there: [\"a term\", \"s/search/replace/\"]");
        if (file.extension() == ".json") {
            const nlohmann::json json = load_json(file);
            entries = Value{json, file.string(), "caption_filter_list"}.texts();
        } else {
            const std::string text = read_text(file);
            if (first_non_utf8(text))
                value.refuse(Errc::bad_value, "names the file " + value.shown() + ", which is no UTF-8 text",
                             "save it as UTF-8");
            std::string_view left = core::without_byte_order_mark(text);
            while (!left.empty()) {
                const std::size_t end = std::min(left.find('\n'), left.size());
                std::string_view line = left.substr(0, end);
                if (line.ends_with('\r')) line.remove_suffix(1);
                entries.emplace_back(line);
                left.remove_prefix(std::min(end + 1, left.size()));
            }
        }
    }
    std::erase_if(entries, [](const std::string& entry) { return core::trimmed(entry).empty(); });
    return entries;
}

template <class Settings>
void add_caption_filters(Schema<Settings>& s) {
    s.custom(
        "caption_filter_list", "list of text, or the name of a file", "[]",
        "What is taken out of captions: terms and regular expressions, and `s/search/replace/`; "
        "[rules](data.md#captions)",
        [](Settings& settings, const Value& value) { settings.caption_filter_list = read_caption_filters(value); });
}

/// "vae aspect", "vae,aspect", ["vae", "aspect"] or "".
inline SkipDiscovery read_skip_discovery(const Value& value) {
    constexpr std::array<std::pair<std::string_view, bool SkipDiscovery::*>, 4> steps{
        {{"vae", &SkipDiscovery::vae},
         {"aspect", &SkipDiscovery::aspect},
         {"metadata", &SkipDiscovery::metadata},
         {"text", &SkipDiscovery::text}}};
    SkipDiscovery skip;
    const auto take = [&](std::string_view word) {
        for (const auto& [name, member] : steps) {
            if (name != word) continue;
            skip.*member = true;
            return;
        }
        value.refuse(Errc::bad_value, "is " + value.shown() + ", and not all of that are steps of a start",
                     "use any of `vae`, `aspect`, `metadata`, `text`, with blanks between");
    };
    if (value.json().is_boolean() && !value.flag()) return skip;  // as if it were empty
    constexpr std::string_view between = " ,\t\n";
    for (const std::string& text : value.texts())
        for (std::size_t begin = text.find_first_not_of(between); begin != std::string::npos;) {
            const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
            take(std::string_view{text}.substr(begin, end - begin));
            begin = text.find_first_not_of(between, end);
        }
    return skip;
}

}  // namespace detail

STRATA_INLINE const Schema<S3Settings>& s3_schema() {
    using S = S3Settings;
    static const Schema<S> schema = [] {
        Schema<S> s;
        s.text("aws_bucket_name", &S::bucket, "Of `aws`: the bucket's name alone; required there");
        s.text("aws_region_name", &S::region,
               "Of `aws`: as in `eu-central-1`; without it `AWS_REGION`, `AWS_DEFAULT_REGION`, `us-east-1`");
        s.text("aws_endpoint_url", &S::endpoint_url,
               "Of `aws`: the server; without it `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, Amazon's");
        s.secret("aws_access_key_id", &S::access_key_id,
                 "Of `aws`: best `{env:NAME}`; without the keys [the places of storage.md](storage.md#s3)");
        s.secret("aws_secret_access_key", &S::secret_access_key, "Of `aws`: best `{env:NAME}`; goes with the key's id");
        s.secret("aws_session_token", &S::session_token, "Of `aws`: of keys that expire");
        s.text("aws_data_prefix", &S::data_prefix, "Of `aws`: the folder, what all names have in front");
        s.integer("aws_max_pool_connections", &S::max_pool_connections, {1, 10000}, "Of `aws`: requests at once");
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<UrlList>& url_list_schema() {
    using U = UrlList;
    static const Schema<U> schema = [] {
        Schema<U> s;
        s.text("csv_file", &U::file,
               "Of `csv`: the list, `.csv`, `.tsv`, `.jsonl` or `.parquet`, with a row a picture; required there");
        s.text("csv_url_column", &U::url_column, "Of `csv`: its column with `http` and `https` addresses");
        s.text("csv_caption_column", &U::caption_column,
               "Of `csv`: its column with captions; required by `caption_strategy` `csv`");
        s.text("csv_cache_dir", &U::cache_dir,
               "Of `csv`: folder where pictures are kept once they were fetched; required there");
        s.integer("csv_max_pool_connections", &U::max_pool_connections, {1, 1000}, "Of `csv`: requests at once");
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<ParquetColumns>& parquet_schema() {
    using P = ParquetColumns;
    static const Schema<P> schema = [] {
        Schema<P> s;
        s.text(
             "path", &P::path,
             "The table, `.parquet`, `.jsonl`, `.csv` or `.tsv`: a file, with `aws` an object below `aws_data_prefix`")
            .required();
        s.text("filename_column", &P::filename_column, "Names of pictures as they are below the data set's folder")
            .required();
        s.texts(
            "caption_column", &P::caption_column,
            "Captions; of several columns with text, and of the entries of lists, one is drawn for each visit; required "
            "by `caption_strategy` `parquet`");
        s.texts("fallback_caption_column", &P::fallback_caption_column, "Captions where `caption_column` is empty");
        s.text("width_column", &P::width_column, "Widths in pixels, for `metadata_backend` `parquet`");
        s.text("height_column", &P::height_column, "Heights in pixels, for `metadata_backend` `parquet`");
        s.flag("identifier_includes_extension", &P::identifier_includes_extension,
               "The names have their extension; `false` adds `.png`");
        s.unsupported(detail::parquet_unsupported_keys());
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<CaptionShuffle>& caption_shuffle_schema() {
    using C = CaptionShuffle;
    static const Schema<C> schema = [] {
        Schema<C> s;
        s.flag("enable", &C::enable, "Shuffle");
        s.integer("count", &C::count, {1, 1000}, "Orders made of each caption; one is drawn for each visit");
        s.integer("seed", &C::seed, {0, 9e15}, "Start of the orders; null is the trainer's `seed`");
        s.choice<CaptionSeparator>("split_on", &C::split_on,
                                   {{"comma", CaptionSeparator::comma},
                                    {"space", CaptionSeparator::space},
                                    {"period", CaptionSeparator::period}},
                                   "What stands between tags");
        s.integer("position_start", &C::position_start, {0, 1000},
                  "Tags in front that stay; captions with fewer than this + 2 tags are not shuffled");
        s.flag("include_original", &C::include_original, "The caption as it is counts as one more order");
        return s;
    }();
    return schema;
}

}  // namespace strata::config
