#pragma once
// strata/core/impl/option_check.ipp - how problems of options are put into one sentence.

#include <charconv>
#include <cmath>

#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>

namespace strata {

STRATA_INLINE std::string OptionCheck::name(std::string_view option) const {
    const std::string path = path_ + std::string{option};
    const auto named = names_.find(path);
    return named == names_.end() ? path : named->second;
}

STRATA_INLINE void OptionCheck::out_of_range(std::string_view option, const std::string& value, const Range& range,
                                             std::string_view note) {
    const bool bounded = std::isfinite(range.least) && std::isfinite(range.most);
    const std::string allowed =
        bounded ? " from " + shown(range.least) + " to " + shown(range.most)
                : (std::isfinite(range.least) ? " >= " + shown(range.least) : " <= " + shown(range.most));
    refuse(name(option) + " is " + value,
           "use " + name(option) + allowed + (note.empty() ? "" : " (" + std::string{note} + ")"));
}

STRATA_INLINE void OptionCheck::finish() const {
    if (problems_.empty()) return;
    std::string what;
    std::string fix;
    for (const Problem& problem : problems_) {
        what += (what.empty() ? "" : "; ") + problem.what;
        fix += (fix.empty() ? "" : "; ") + problem.fix;
    }
    throw Error{Errc::bad_value, what, fix};
}

STRATA_INLINE std::string OptionCheck::shown(double number) {
    char buffer[32];
    return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

}  // namespace strata
