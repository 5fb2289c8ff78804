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

STRATA_INLINE void OptionCheck::refuse_both(std::string_view one, double value, std::string_view other,
                                            double others_value, std::string_view because, std::string_view fix) {
    refuse(name(one) + " is " + shown(value) + " and " + name(other) + " is " + shown(others_value) + ", and " +
               std::string{because},
           std::string{fix});
}

STRATA_INLINE void OptionCheck::look(std::string_view option, std::int64_t value, const Range& range,
                                     const OptionWords& words) {
    if (!range.holds(static_cast<double>(value))) out_of_range(option, std::to_string(value), range, note_of(words));
}

STRATA_INLINE void OptionCheck::look(std::string_view option, std::uint64_t value, const Range& range,
                                     const OptionWords& words) {
    if (!range.holds(static_cast<double>(value))) out_of_range(option, std::to_string(value), range, note_of(words));
}

STRATA_INLINE void OptionCheck::look(std::string_view option, double value, const Range& range,
                                     const OptionWords& words) {
    if (!range.holds(value)) out_of_range(option, shown(value), range, note_of(words));
}

STRATA_INLINE std::string OptionCheck::note_of(const OptionWords& words) {
    return std::string{words.unit} + (words.unit.empty() || words.special.empty() ? "" : ", ") +
           std::string{words.special};
}

STRATA_INLINE void OptionCheck::inside(std::string_view member, core::FunctionRef<void()> body) {
    const std::string outer = path_;
    path_ += std::string{member} + ".";
    body();
    path_ = outer;
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
