#pragma once
// strata/tokenizers/detail/html_entities.hpp - character references of HTML 5 in a text: what Python's
// html.unescape() does.

#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::tokenizers::detail {

/// A text with its character references resolved: `&amp;`, `&#38;`, `&#x26;`, and without the semicolon where HTML 5
/// allows that (WHATWG HTML, section 13.2.5.72 and following). Of a name that is none, the longest beginning that is
/// one without a semicolon counts: `&notit;` is `¬it;`. A number of no character is U+FFFD or nothing, as Python has
/// it.
[[nodiscard]] std::u32string unescaped(std::u32string_view text);

}  // namespace strata::tokenizers::detail

#ifndef STRATA_COMPILED
#include <strata/tokenizers/impl/html_entities.ipp>
#endif
