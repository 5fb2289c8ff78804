#pragma once
// strata/config/model_record.hpp - model.json: what a run tells of its model, so that others can make it from the run's folder alone.

#include <filesystem>
#include <string>
#include <string_view>

#include <strata/config/model_settings.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// The file in a run's output directory; a trainer with a name has its own in its folder.
inline constexpr std::string_view model_record_name = "model.json";

/// Its text: every key of a model that a trainer's configuration has, under the same names, with what the run took for it. Paths are
/// absolute, so that it means the same from any folder.
[[nodiscard]] std::string model_record_text(const ModelSettings& settings);

/// Reads one. Throws Errc::unreadable_config, and unknown_key, bad_value for what no run has written.
[[nodiscard]] ModelSettings read_model_record(const std::filesystem::path& file);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/model_record.ipp>
#endif
