#pragma once
// tools/wrapped_text.hpp - text on lines as wide as the terminal that it is for.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace strata::tools {

/// Columns of a line: what COLUMNS says, else the terminal that standard output is; nothing where it is a file or a pipe.
/// At least 40.
[[nodiscard]] std::optional<std::size_t> terminal_columns();

/// Words on lines of at most `columns` characters, the first behind `first`, the others behind `indent`; a longer word has a
/// line for itself. Each line has its end.
///
///   words  UTF-8, printable
[[nodiscard]] std::string wrapped(std::string_view words, std::string_view first, std::string_view indent,
                                  std::size_t columns);

}  // namespace strata::tools
