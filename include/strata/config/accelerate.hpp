#pragma once
// strata/config/accelerate.hpp - the front door for Accelerate's YAML, its environment variables and its flags.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// Accelerate's whole schema, of 1.x with the names of older versions.
[[nodiscard]] const FormatTable& accelerate_table();

/// What a document does not know.
struct AccelerateContext {
    std::filesystem::path
        folder{};  ///< where a relative deepspeed_config_file is looked for, after the working directory
    /// A file that is named and not there is a problem; otherwise a warning, and a name in Intent::missing_files.
    bool wants_all_files = false;
    bool is_part = false;  ///< another file, which is not there, may say the distributed_type
};

/// What an Accelerate configuration asks for, with what its deepspeed_config_file says. Throws nothing: what is wrong is
/// in `findings`, all of it.
[[nodiscard]] Intent read_accelerate(const Node& root, Findings& findings, const AccelerateContext& context = {});

/// Where Accelerate looks for its configuration without a name: $HF_HOME/accelerate, else
/// ${XDG_CACHE_HOME:-~/.cache}/huggingface/accelerate; there default_config.yaml, and default_config.json where only
/// that is. Nothing where neither is.
[[nodiscard]] std::optional<std::filesystem::path> find_accelerate_config(const Environment& environment);

/// What ACCELERATE_... variables say, at the keys that they go before.
[[nodiscard]] Document accelerate_variables(const Environment& environment);

/// A command line of `accelerate launch`, without the two words.
struct AccelerateArguments {
    Document document;  ///< at the keys that flags go before
    std::optional<std::filesystem::path> config_file{};
    std::size_t taken = 0;  ///< words up to the program, which has the others
};
/// Flags that Accelerate does not have are refused in `findings`, with the nearest.
[[nodiscard]] AccelerateArguments accelerate_arguments(const std::vector<std::string>& words, Findings& findings);

/// All of it, as Accelerate has it: a file (--config_file, else the one that is found), the environment over it, the
/// command line over both. Without a file and a type, distributed_type is what Accelerate makes of the number of ranks.
/// Throws Errc::unreadable_config.
[[nodiscard]] Intent load_accelerate(const std::vector<std::string>& words, const Environment& environment,
                                     Findings& findings, bool wants_all_files = false);
/// A file alone.
[[nodiscard]] Intent load_accelerate(const std::filesystem::path& file, Findings& findings,
                                     bool wants_all_files = false);

/// What Accelerate would have to be given: a YAML that is read as the same intent, as far as it has keys for it: stage,
/// tiers, precision, recomputation (of FSDP), accumulation, clipping, and where ranks run. The rest goes into a DeepSpeed
/// JSON.
[[nodiscard]] std::string write_accelerate(const Intent& intent);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/accelerate.ipp>
#include <strata/config/impl/accelerate_arguments.ipp>
#include <strata/config/impl/accelerate_sources.ipp>
#include <strata/config/impl/accelerate_writer.ipp>
#endif
