#pragma once
// strata/config/convert.hpp - which format a configuration is in, and an intent in another one.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>
#include <strata/config/document.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

enum class ConfigFormat : std::uint8_t {
    deepspeed,
    accelerate,
    trainer,   ///< config.json: config/trainer_config.hpp
    datasets,  ///< multidatabackend.json: config/dataset_list.hpp
    launch,    ///< a script that calls a launcher, or a hostfile: config/launch_script.hpp; read, never written
};
/// "deepspeed", "accelerate", "trainer", "datasets", "launch": what a command line calls it.
[[nodiscard]] std::string_view name_of(ConfigFormat format) noexcept;
[[nodiscard]] std::optional<ConfigFormat> format_named(std::string_view name) noexcept;

/// The format whose keys a document has; nothing where they are nobody's.
[[nodiscard]] std::optional<ConfigFormat> format_of(const Node& root);

/// What a DeepSpeed or Accelerate file asks for, by the format that its keys are of; a file that it names and that is not
/// there is refused in `findings`. Throws Errc::unreadable_config, and Errc::bad_value for a file of neither.
[[nodiscard]] Intent load_intent(const std::filesystem::path& file, Findings& findings);

/// An intent as a text of that format. What the format has no key for is not in it. Throws Errc::bad_argument for
/// datasets and launch.
///
///   trainer  options by their keys in config.json, and the composition in an object `deepspeed_config`
[[nodiscard]] std::string convert(const Intent& intent, ConfigFormat to);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/convert.ipp>
#endif
