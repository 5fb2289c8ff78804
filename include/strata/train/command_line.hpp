#pragma once
// strata/train/command_line.hpp - the words behind a program's name: the session's flags, and keys of its settings.

#include <concepts>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/schema.hpp>
#include <strata/core/inline.hpp>

namespace strata::train {

/// Settings that are read from the file that --config names, else from `default_file`. Others have only a command line.
template <class S>
concept FileSettings = config::Settings<S> &&
    requires(const std::filesystem::path& file, const config::Overrides& overrides) {
    { S::default_file } -> std::convertible_to<std::string_view>;
    { S::load(file, overrides) } -> std::same_as<S>;
};

/// The keys of one Settings: each is a flag of the program.
struct SettingsKeys {
    std::span<const config::KeyInfo> known;
    std::span<const config::UnsupportedKey> unsupported;
    std::span<const config::IdleKey> idle;
    std::span<const config::KeyFamily> families;
    std::string_view default_file;  ///< empty: these are not in a file

    template <config::Settings S>
    [[nodiscard]] static SettingsKeys of() {
        const config::Schema<S>& schema = config::schema_of<S>();
        SettingsKeys keys{schema.keys(), schema.unsupported(), schema.idle(), schema.families(), {}};
        if constexpr (FileSettings<S>) keys.default_file = S::default_file;
        return keys;
    }
};

/// What a command line says. Words are `--key value` or `--key=value`; true and false ones may stand alone, those of a
/// list come once for each element.
struct CommandLine {
    std::optional<std::filesystem::path> config;  ///< --config FILE
    std::optional<std::filesystem::path> output;  ///< --output DIR
    bool fresh = false;                           ///< --fresh
    config::Overrides overrides;                  ///< the keys; their values are checked by who reads them

    /// --config, else `otherwise`. Local. Throws Errc::unreadable_config where neither is there.
    [[nodiscard]] std::filesystem::path config_file(std::string_view otherwise) const;

    /// Local. Throws Errc::bad_argument for a word that is not known (with the nearest that is), stands twice or lacks
    /// its value; unsupported_key.
    [[nodiscard]] static CommandLine parse(int argc, const char* const* argv, std::span<const SettingsKeys> keys = {});
};

/// --help and --version: prints the answer, on rank 0 of those that were launched, and returns the exit status. Nothing
/// if neither was asked. Local, before ranks start.
[[nodiscard]] std::optional<int> answer_question(int argc, const char* const* argv, std::span<const SettingsKeys> keys);

/// What --help prints: 80 columns at most, but for words that are longer.
///
///   program  as it is typed, without folders
[[nodiscard]] std::string help_text(std::string_view program, std::span<const SettingsKeys> keys);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/command_line.ipp>
#endif
