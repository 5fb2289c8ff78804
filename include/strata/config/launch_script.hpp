#pragma once
// strata/config/launch_script.hpp - the front door for scripts that call `accelerate launch`, `deepspeed` or `torchrun`.

#include <filesystem>
#include <string>
#include <string_view>

#include <strata/config/findings.hpp>
#include <strata/config/format_table.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// The flags of the launcher `deepspeed`, and those of `torchrun`; `accelerate launch` has those of accelerate_table().
[[nodiscard]] const FormatTable& deepspeed_launcher_table();
[[nodiscard]] const FormatTable& torchrun_table();

/// What a script does not know.
struct LaunchContext {
    std::filesystem::path folder{};  ///< where files that it names are looked for, after the working directory
    Environment environment = process_environment;  ///< variables that the script does not set itself
};

/// Whether a shell script calls one of the three launchers, or is a hostfile.
[[nodiscard]] bool has_launch_line(std::string_view text);

/// What a script (sh, sbatch) asks for by its first call of a launcher: flags before the program's name, with the files that
/// they name (`--config_file`, `--hostfile`), and of the program's own words `--deepspeed FILE` and `--deepspeed_config FILE`.
/// The other words of the program are its own. Of a hostfile: how many ranks it has room for.
///
/// Nothing is run: what only a shell knows is said, and absent. Throws nothing: what is wrong is in `findings`, all of it.
[[nodiscard]] Intent read_launch_script(std::string_view text, const std::string& source, Findings& findings,
                                        const LaunchContext& context = {});

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/launch_script.ipp>
#endif
