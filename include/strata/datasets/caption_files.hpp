#pragma once
// strata/datasets/caption_files.hpp - captions in files beside pictures, and in the names of pictures.

#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::datasets {

/// The key of the caption file beside a picture: "a/b.png" -> "a/b.txt".
[[nodiscard]] std::string caption_key(std::string_view picture_key, std::string_view extension = ".txt");

/// A caption file's text without byte order mark and without white space at its ends.
[[nodiscard]] std::string caption_from_text(std::string_view text);

/// "a/red_fire-truck.png" -> "red fire truck".
[[nodiscard]] std::string caption_from_name(std::string_view key);

/// Member "caption" of a JSON object, without white space at its ends; empty if there is none or it is no text.
[[nodiscard]] std::string caption_from_json(std::string_view text);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/caption_files.ipp>
#endif
