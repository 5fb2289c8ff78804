#pragma once
// strata/config/simpletuner.hpp - what SimpleTuner's configurations say that strata's own keys do not: its keys, its files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What becomes of a key of SimpleTuner's that is none of strata's own.
enum class ForeignEffect : std::uint8_t {
    mapped,   ///< it is read, and becomes something of strata's
    instead,  ///< no result depends on it
    refused,  ///< the result would be another one than was asked for, but for values that are fine
};

/// A key that SimpleTuner documents.
struct ForeignKey {
    std::string_view key;  ///< without dashes; one that ends in '*' is all that begin so and have no row of their own
    ForeignEffect effect;
    std::string_view instead;  ///< what strata does, without full stop
    std::string_view fine;     ///< values that ask for that anyway, '|' between: "false|0|none"; null always is one
    /// True for those values, and for an empty text, list or object.
    [[nodiscard]] bool is_fine(const Node& value) const;
};

/// Every key that SimpleTuner documents and a trainer's configuration (trainer_schema()) does not have, families last.
[[nodiscard]] const std::vector<ForeignKey>& simpletuner_keys();

/// The row of a key, or of the family that it is of; nullptr where SimpleTuner has no such key.
[[nodiscard]] const ForeignKey* find_simpletuner_key(std::string_view key);

/// A name that SimpleTuner's config.env gives a key.
struct EnvName {
    std::string_view name;  ///< "TRAINING_SEED"
    std::string_view key;   ///< "seed"; empty: a variable that is none of its settings
};
[[nodiscard]] const std::vector<EnvName>& simpletuner_env_names();

/// The settings of a shell file (config/env_file.hpp) as an object with SimpleTuner's keys. What is no setting is a remark.
[[nodiscard]] Document parse_env(std::string_view text, std::string source,
                                 const Environment& environment = process_environment);

/// A trainer's configuration by its name: .toml is TOML; .env, .sh, and what begins as a shell's file does is a shell's;
/// others are JSON, comments and commas too many allowed. Throws Errc::unreadable_config.
[[nodiscard]] Document load_trainer_document(const std::filesystem::path& file);

/// What SimpleTuner's `optimizer` names, in strata's words.
struct SimpleTunerOptimizer {
    std::optional<RuleName> rule;        ///< nullopt: strata has no such rule
    RuleName nearest = RuleName::adamw;  ///< of one that strata does not have
    bool pure_bf16 = false;              ///< weights and states in bf16 alone
    std::string_view words;              ///< what is not quite the same; without full stop
    std::string_view defaults;           ///< numbers that SimpleTuner gives it and strata does not: "epsilon=1e-6"
};
/// nullopt: a name that SimpleTuner does not have either.
[[nodiscard]] std::optional<SimpleTunerOptimizer> simpletuner_optimizer(std::string_view name);
[[nodiscard]] const std::vector<std::string_view>& simpletuner_optimizer_names();

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/simpletuner.ipp>
#endif
