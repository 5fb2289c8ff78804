#pragma once
// strata/config/impl/problems.ipp - several refusals as one sentence.

#include <string>

#include <strata/config/problems.hpp>

namespace strata::config {

namespace detail {

/// "(1) a.json:2:3: key 'x' is unknown; (2) ...": of what is wrong, or of what mends it.
inline std::string numbered(const std::vector<Error>& problems, const std::string& (Error::*words)() const noexcept) {
    std::string all;
    for (std::size_t i = 0; i < problems.size(); ++i)
        all += (i == 0 ? "(" : "; (") + std::to_string(i + 1) + ") " + (problems[i].*words)();
    return all;
}

}  // namespace detail

STRATA_INLINE SeveralProblems::SeveralProblems(std::vector<Error> problems)
    : Error{problems.front().code(),
            std::to_string(problems.size()) + " problems: " + detail::numbered(problems, &Error::problem),
            detail::numbered(problems, &Error::fix)},
      all_{std::move(problems)} {}

STRATA_INLINE void Problems::finish() const {
    if (all_.size() == 1) throw all_.front();
    if (!all_.empty()) throw SeveralProblems{all_};
}

}  // namespace strata::config
