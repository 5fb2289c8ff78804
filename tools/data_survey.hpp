#pragma once
// tools/data_survey.hpp - what `strata data` finds out: pictures, caches, the plan. It prints nothing.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/trainer_config.hpp>
#include <strata/datasets/cache_cost.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/datasets/latent_caching.hpp>
#include <strata/datasets/report.hpp>
#include <strata/datasets/statistics.hpp>
#include <strata/s3/s3_options.hpp>

namespace strata::tools {

/// What is surveyed, and what the command line says instead of the configuration.
struct SurveyRequest {
    std::filesystem::path file;  ///< a dataset list or a trainer configuration
    std::optional<std::int64_t> train_batch_size;
    std::optional<std::int64_t> gradient_accumulation_steps;
    std::optional<std::int64_t> seed;
    std::optional<std::filesystem::path> index_folder;
    std::int64_t ranks = 1;
    bool allow_dataset_oversubscription = false;  ///< false: as the configuration says
    std::int64_t threads = 0;                     ///< 0: as many as there are cores
};

/// What a file asks for: a configuration, with defaults where the file is a dataset list, and the list.
struct SurveyedFile {
    bool is_list = false;
    std::filesystem::path list_file;
    config::TrainerConfig config;  ///< with the request's numbers in it
    config::DatasetList list;
    std::filesystem::path index_folder;  ///< empty: none is kept
};

/// A data set as it was found; `eval` ones come after the others.
struct SurveyedSet {
    config::ImageDataset settings;
    std::string place;
    std::int64_t found = 0;
    std::int64_t used = 0;  ///< of conditioning: that belong to a picture which is used
    std::int64_t examined = 0;
    std::vector<datasets::Skipped> skipped;
    std::vector<std::string> notes;
};

struct Survey {
    SurveyedFile source;
    std::vector<SurveyedSet> sets;
    std::vector<SurveyedSet> conditioning;  ///< those that conditioning_data of the others names
    datasets::Collection collection;        ///< of the sets that are not for evaluation
    std::optional<s3::S3Traffic> traffic;
};

/// What a data set holds.
struct SetStatistics {
    datasets::PictureStatistics pictures;
    datasets::CaptionStatistics captions;
    datasets::LatentCaching caching = datasets::LatentCaching::ahead;
    bool gzip = false;                         ///< its latents are kept inside gzip
    std::vector<datasets::CacheCost> latents;  ///< by bucket of the data set
    datasets::CacheCost all_latents;
};
/// A cache of embedded captions.
struct TextCache {
    std::string id;  ///< of the text_embeds
    bool gzip = false;
    bool on_demand = false;  ///< a data set leaves its captions to their first visit
    datasets::CacheCost cost;
};
struct SurveyStatistics {
    std::vector<SetStatistics> sets;  ///< as Survey::sets, without eval
    std::vector<TextCache> texts;     ///< those that are used
    datasets::CacheCost kept;         ///< what stays on disk, and one epoch of what does not
};

/// A bucket's and a data set's part of the plan.
struct SetPlan {
    datasets::BatchShape shape;  ///< of its steps
    std::vector<datasets::RoundStatistics> buckets;
    datasets::RoundStatistics round;
    std::int64_t batches_of_first_epoch = 0;
};
struct SurveyPlan {
    datasets::BatchShape shape;  ///< of data sets without their own train_batch_size
    std::vector<SetPlan> sets;
    std::vector<datasets::Skipped> dropped;  ///< samples of buckets that are too small (small_buckets drop)
    datasets::RoundStatistics round;         ///< of all data sets together
    std::int64_t first_epoch = 0;            ///< optimizer steps
    bool epochs_differ = false;              ///< later ones may have another number of them
    std::optional<std::int64_t> size;        ///< optimizer steps until no data set takes part any more
};

/// Reads the configuration. Throws what config::load_trainer_config and config::load_datasets throw.
[[nodiscard]] SurveyedFile read_survey_file(const SurveyRequest& request);

using SurveyProgress =
    std::function<void(std::string_view dataset, std::string_view what, std::int64_t done, std::int64_t total)>;

/// Discovers all data sets by what a training start calls, datasets::discover_all(), but deletes nothing: delete_problematic_images becomes a note.
/// Throws what datasets::discover() throws.
///   note  called with lines that are to be shown: a bucket's server fails, or answers again
[[nodiscard]] Survey survey(SurveyedFile source, const SurveyRequest& request, const SurveyProgress& progress,
                            const std::function<void(const std::string&)>& note, const std::function<bool()>& stopped);

[[nodiscard]] SurveyStatistics survey_statistics(const Survey& survey, const datasets::EntryShapes& recipe);

/// Throws Errc::small_bucket and no_samples as a training start does. Raises repeats of survey.collection, merges and
/// drops as `small_buckets` says.
[[nodiscard]] SurveyPlan survey_plan(Survey& survey, std::int64_t ranks);

/// The batch of an optimizer step as all ranks together see it.
struct PlannedBatch {
    std::int64_t step = 1;   ///< from 1
    std::int64_t epoch = 1;  ///< from 1
    std::string dataset;
    pictures::PictureSize size;     ///< training size
    std::vector<std::string> keys;  ///< micro-batches, and in them ranks, take equal parts in turn
};
/// The first steps after survey_plan(), `count` or as many as there are.
[[nodiscard]] std::vector<PlannedBatch> planned_batches(const Survey& survey, std::int64_t count);

/// Of one of known_models(). Throws Errc::bad_argument.
[[nodiscard]] const datasets::EntryShapes& recipe_of(std::string_view model);

}  // namespace strata::tools
