#pragma once
// strata/config/env_file.hpp - read_env_file(): the assignments of a shell file such as config.env, without running it.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/environment.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// `NAME=value` of a shell file, as a shell would have it.
struct EnvAssignment {
    std::string name;
    std::string value;
    std::size_t line = 0;      ///< of the name, from 1
    std::size_t column = 0;    ///< of the value, from 1, in characters
    bool is_computed = false;  ///< `$(command)` is in it: nobody ran the command, and its words stand in the value
    bool is_variable = false;  ///< another line refers to it
};

/// A line that is no assignment, or not one that can be read without a shell.
struct EnvProblem {
    std::size_t line = 0;    ///< from 1
    std::size_t column = 0;  ///< from 1
    std::string what;        ///< "a command": without full stop
    std::string fix;
    bool is_error = false;  ///< what follows it cannot be relied on
};

/// What a shell file sets.
struct EnvFile {
    std::vector<EnvAssignment> assignments;  ///< in order; of a name that is set again, the last one
    std::vector<EnvProblem> problems;
};

/// The assignments of `text`: with and without `export`, '...' and "...", `$NAME` and `${NAME}` of lines above (else of
/// `environment`), `$((1 + NAME))`, `NAME+=more` (with a space between, as SimpleTuner reads it), lines that end in a
/// backslash, comments, and `if [[ ... ]]; then ... elif ... else ... fi`. Commands are named and not run.
///
///   text  UTF-8
[[nodiscard]] EnvFile read_env_file(std::string_view text, const Environment& environment = process_environment);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/env_file.ipp>
#endif
