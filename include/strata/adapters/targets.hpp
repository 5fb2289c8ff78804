#pragma once
// strata/adapters/targets.hpp - which layers of a model have an adapter, by patterns of their names.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/options/layer_options.hpp>

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

/// The options that a layer has in place of those for all; nullptr: it has none of its own.
template <class Options>
[[nodiscard]] const Options* own_options(const std::vector<train::LayerOptions<Options>>& by_layer,
                                         std::string_view path) {
    const auto fit = [&](const std::vector<std::string>& patterns) {
        return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& one) { return fits(one, path); });
    };
    for (const train::LayerOptions<Options>& some : by_layer) {
        const std::vector<std::string> also = patterns_of(some.also);
        if (fit(patterns_of(some.layers)) && (also.empty() || fit(also))) return &some.options;
    }
    return nullptr;
}
/// The lists of patterns in it, each as it is written.
template <class Options>
[[nodiscard]] std::vector<std::string> pattern_lists(const std::vector<train::LayerOptions<Options>>& by_layer) {
    std::vector<std::string> lists;
    for (const train::LayerOptions<Options>& some : by_layer) {
        lists.push_back(some.layers);
        if (!patterns_of(some.also).empty()) lists.push_back(some.also);
    }
    return lists;
}
/// Throws Errc::bad_value for all patterns of these lists that fit no layer of the model, and all lists that fit no adapted one, with what
/// layers there are.
void check_own_options(const std::vector<std::string>& lists, const std::vector<std::string>& paths,
                       const std::vector<std::string>& adapted);

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/targets.ipp>
#endif
