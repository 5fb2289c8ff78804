#pragma once
// tools/train/train_settings.hpp - TrainSettings: what `strata train` is told, by files of any format and by flags.

#include <filesystem>
#include <string>
#include <string_view>

#include <strata/config/dataset_list.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/schema.hpp>
#include <strata/config/trainer_config.hpp>

namespace strata::tools {

/// A trainer's configuration, and what other files say over it: one of Accelerate's by the flag --accelerate_config, one of
/// DeepSpeed's by --deepspeed_config, a dataset list by --data_backend_config. Every key of a trainer's configuration is a
/// flag, SimpleTuner's own included; flags go before files, DeepSpeed's before Accelerate's, and both before the trainer's.
struct TrainSettings : config::TrainerConfig {
    config::DatasetList datasets;  ///< of `data_backend_config`
    config::Findings findings;     ///< of every key of every file; no problems
    std::string model_words;       ///< what is trained, and from which weights
    std::string model_type;        ///< the same as the model of a trainer's type

    [[nodiscard]] static const config::Schema<TrainSettings>& schema();

    ///   file  a trainer's configuration, or the first of the others where there is none
    /// Throws everything that is wrong with all files as one Error; unreadable_config for what cannot be parsed.
    [[nodiscard]] static TrainSettings load(const std::filesystem::path& file, const config::Overrides& overrides);
};

/// "8 samples a step: 2 ranks x 4 samples x 1 micro-batch".
///
///   ranks  that train
/// Throws Errc::bad_value where the files say how many samples a step has, and so many ranks cannot have them.
[[nodiscard]] std::string batch_line(const TrainSettings& settings, int ranks);

}  // namespace strata::tools
