#pragma once
// strata/adapters/targets.hpp - which layers of a model have an adapter, by patterns of their names.

#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::adapters {

/// A pattern fits a path that it is, or that ends with it behind a dot: "to_q" and "attn.to_q" fit "blocks.0.attn.to_q", and "o_q" does
/// not. `*` stands for any letters, dots among them. As PEFT's target_modules, whose regular expressions are not taken.
[[nodiscard]] bool fits(std::string_view pattern, std::string_view path) noexcept;

/// Patterns with commas between, without the blanks around them.
[[nodiscard]] std::vector<std::string> patterns_of(std::string_view text);

/// Numbers of the paths that a target fits and none of `excluded` does, in order. Throws Errc::bad_value for all patterns of either list
/// that fit no path, with paths that are like them; and where nothing is left.
[[nodiscard]] std::vector<std::size_t> targeted(const std::vector<std::string>& paths,
                                                const std::vector<std::string>& targets,
                                                const std::vector<std::string>& excluded);

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/targets.ipp>
#endif
