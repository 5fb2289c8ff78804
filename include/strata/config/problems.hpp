#pragma once
// strata/config/problems.hpp - Problems: everything that is wrong with a configuration, told in one run.

#include <concepts>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What Problems::finish() throws of several: one Error, and each of them.
class SeveralProblems : public Error {
public:
    explicit SeveralProblems(std::vector<Error> problems);
    [[nodiscard]] const std::vector<Error>& all() const noexcept { return all_; }  ///< two at least

private:
    std::vector<Error> all_;
};

/// Refusals that do not end the reading they came up in.
class Problems {
public:
    void add(Error problem) { all_.push_back(std::move(problem)); }
    /// Calls `read`, and keeps what it refuses. Whatever else it throws passes through.
    template <std::invocable Read>
    void during(Read&& read) {
        try {
            read();
        } catch (const SeveralProblems& problems) {
            all_.insert(all_.end(), problems.all().begin(), problems.all().end());
        } catch (const Error& problem) {
            if (!is_bad_input(problem.code())) throw;
            add(problem);
        }
    }
    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
    [[nodiscard]] const std::vector<Error>& all() const noexcept { return all_; }

    /// Throws the problem, or SeveralProblems with the number of the first.
    void finish() const;

private:
    std::vector<Error> all_;
};

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/problems.ipp>
#endif
