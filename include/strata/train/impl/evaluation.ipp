#pragma once
// strata/train/impl/evaluation.ipp - which sets are due.

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include <strata/core/error.hpp>
#include <strata/train/evaluation.hpp>
#include <strata/train/run_actions.hpp>

namespace strata::train {

STRATA_INLINE void Evaluations::add(std::int64_t steps, const std::string& name, Call call) {
    if (steps < 0)
        throw Error{Errc::bad_value, "evaluate_every() was given " + std::to_string(steps) + " steps",
                    "use 1 step or more, or 0 for the end of the run"};
    const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
    });
    const bool is_new = std::none_of(sets_.begin(), sets_.end(), [&](const Set& set) { return set.name == name; });
    if (!is_plain || !is_new)
        throw Error{Errc::bad_value,
                    is_new ? "'" + name + "' cannot be the name of a set that is evaluated"
                           : "two sets that are evaluated are called '" + name + "'",
                    is_new ? "use letters, digits, '_', '-' and '.'" : "give each a name of its own"};
    sets_.push_back({steps, name, std::move(call)});
}

STRATA_INLINE bool Evaluations::any_due(std::int64_t step, std::int64_t last_step) const noexcept {
    return std::any_of(sets_.begin(), sets_.end(), [&](const Set& set) { return is_due(set.steps, step, last_step); });
}

STRATA_INLINE std::vector<NamedLoss> Evaluations::due(std::int64_t step, std::int64_t last_step) const {
    std::vector<NamedLoss> losses;
    for (const Set& set : sets_) {
        if (!is_due(set.steps, step, last_step)) continue;
        for (NamedLoss& loss : set.call()) losses.push_back(std::move(loss));
    }
    return losses;
}

STRATA_INLINE std::string evaluation_line(std::int64_t step, const NamedLoss& loss) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.4f", loss.loss);
    return "step " + std::to_string(step) + ": " + loss.name + " " + number.data();
}

}  // namespace strata::train
