#pragma once
// strata/config/any_config.hpp - look_at_config(): a configuration of any format, told by what is in it.

#include <filesystem>
#include <optional>
#include <vector>

#include <strata/config/convert.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/intent.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// A file, and all that there is to say about it.
struct AnyConfig {
    std::filesystem::path file;
    ConfigFormat format = ConfigFormat::trainer;
    Findings findings;  ///< of every key; refusals among them
    Intent intent;      ///< nothing of a dataset list; of a script that launches, with the files it names
    std::optional<TrainerConfig> trainer;  ///< of ConfigFormat::trainer
    std::optional<DatasetList> datasets;   ///< of ConfigFormat::datasets, where nothing was refused
};

/// Reads one file. What is wrong with it is among the findings, a file that cannot be parsed included.
///
///   defaults  values of keys that the data sets of a dataset list do not have
///   format    what it is; nullopt: as format_of() says, and a trainer's configuration where that does not know
[[nodiscard]] AnyConfig look_at_config(const std::filesystem::path& file, const ImageDataset& defaults = {},
                                       std::optional<ConfigFormat> format = {});

/// Reads a file and those that it names (a trainer's dataset list, where it is there), or of a folder its config.json,
/// config.toml or config.env with those, and an Accelerate and a DeepSpeed configuration beside them. The later of these goes
/// before the earlier; where they say different things about the same, that is a warning of the earlier.
[[nodiscard]] std::vector<AnyConfig> look_at_configs(const std::filesystem::path& file_or_folder);

/// Whether a trainer's configuration names a file of that format itself: by `deepspeed_config` or `accelerate_config`.
[[nodiscard]] bool names_file(const AnyConfig& trainer, ConfigFormat format);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/any_config.ipp>
#endif
