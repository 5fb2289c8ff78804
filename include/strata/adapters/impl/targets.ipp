#pragma once
// strata/adapters/impl/targets.ipp - patterns against paths.

#include <algorithm>
#include <cstddef>
#include <set>

#include <strata/adapters/targets.hpp>
#include <strata/core/error.hpp>

namespace strata::adapters {
namespace detail {

/// Whether all of `text` is what the pattern says: a greedy match that takes back what its last `*` took.
inline bool is_like(std::string_view pattern, std::string_view text) noexcept {
    std::size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            taken = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

/// The last step of each path, once: what a person chooses from.
inline std::string names_in(const std::vector<std::string>& paths) {
    std::set<std::string_view> ends;
    for (const std::string_view path : paths) {
        const std::size_t last = path.rfind('.');
        const bool is_number = last != std::string_view::npos &&
                               path.substr(last + 1).find_first_not_of("0123456789") == std::string_view::npos;
        const std::size_t from = is_number && last > 0 ? path.rfind('.', last - 1) : last;
        ends.insert(from == std::string_view::npos ? path : path.substr(from + 1));
    }
    std::string all;
    for (const std::string_view end : ends) (all += all.empty() ? "" : ", ") += end;
    return all;
}

/// "'a', 'b'": the patterns that fit none of the paths. Empty: all fit one.
inline std::string without_a_path(const std::vector<std::string>& patterns, const std::vector<std::string>& paths) {
    std::string all;
    for (const std::string& pattern : patterns) {
        const auto is = [&](const std::string& path) { return fits(pattern, path); };
        if (std::none_of(paths.begin(), paths.end(), is)) (all += all.empty() ? "'" : ", '") += pattern + "'";
    }
    return all;
}

}  // namespace detail

STRATA_INLINE bool fits(std::string_view pattern, std::string_view path) noexcept {
    if (detail::is_like(pattern, path)) return true;
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
        if (detail::is_like(pattern, path.substr(dot + 1))) return true;
    }
    return false;
}

STRATA_INLINE std::vector<std::string> patterns_of(std::string_view text) {
    std::vector<std::string> patterns;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view piece = text.substr(begin, end - begin);
        const std::size_t first = piece.find_first_not_of(" \t\n");
        if (first != std::string_view::npos)
            patterns.emplace_back(piece.substr(first, piece.find_last_not_of(" \t\n") - first + 1));
        begin = end + 1;
    }
    return patterns;
}

STRATA_INLINE std::vector<std::size_t> targeted(const std::vector<std::string>& paths,
                                                const std::vector<std::string>& targets,
                                                const std::vector<std::string>& excluded) {
    std::vector<std::string> patterns = targets;
    patterns.insert(patterns.end(), excluded.begin(), excluded.end());
    const std::string unknown = detail::without_a_path(patterns, paths);
    if (!unknown.empty())
        throw Error{
            Errc::bad_value, "an adapter's targets name no layer of the model: " + unknown,
            paths.empty()
                ? "build the model of strata::models::Linear and Conv2d: it has no layer that an adapter can be "
                  "attached to"
                : "name layers by the ends of their paths; there are " + detail::names_in(paths)};
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const auto takes = [&](const std::string& pattern) { return fits(pattern, paths[i]); };
        if (std::any_of(targets.begin(), targets.end(), takes) && std::none_of(excluded.begin(), excluded.end(), takes))
            found.push_back(i);
    }
    if (found.empty())
        throw Error{Errc::bad_value, "an adapter's targets leave no layer, once those that are excluded are left out",
                    "name other targets, or exclude less"};
    return found;
}

STRATA_INLINE void check_own_options(const std::vector<std::string>& lists, const std::vector<std::string>& paths,
                                     const std::vector<std::string>& adapted) {
    std::string idle;
    for (const std::string& list : lists) {
        const std::vector<std::string> patterns = patterns_of(list);
        std::string of_list = detail::without_a_path(patterns, paths);
        const auto is_of_list = [&](const std::string& path) {
            return std::any_of(patterns.begin(), patterns.end(), [&](const auto& one) { return fits(one, path); });
        };
        if (of_list.empty() && std::none_of(adapted.begin(), adapted.end(), is_of_list)) of_list = "'" + list + "'";
        if (!of_list.empty()) (idle += idle.empty() ? "" : ", ") += of_list;
    }
    if (!idle.empty())
        throw Error{Errc::bad_value, "options for some of an adapter's layers fit none that has one: " + idle,
                    "name adapted layers by the ends of their paths; there are " + detail::names_in(adapted)};
}

}  // namespace strata::adapters
