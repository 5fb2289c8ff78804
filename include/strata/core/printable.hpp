#pragma once
// strata/core/printable.hpp - text of a stranger (a file name, a caption, an id) as it may reach a terminal or a log.

#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::core {

/// `text` without anything that a terminal acts on or that hides what stands there: one line, valid UTF-8.
///
/// Shown as escapes are control characters (`\n`, `\r`, `\t`, `\x1b`, `\x7f`, and `\u009b` for those of two bytes), line and
/// paragraph separators, characters that turn the direction of what follows (`\u202e`), and bytes that are no UTF-8
/// (`\xff`). Everything else stays as it is, umlauts and Chinese too. A backslash stays one: the text is to be read by a
/// person and not to be parsed, and printable(printable(text)) is printable(text), so that no caller need ask who has
/// done it already.
///
/// strata::Error does it to every message and Progress::note() to every line; what is printed elsewhere calls it.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/printable.ipp>
#endif
