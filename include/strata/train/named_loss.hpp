#pragma once
// strata/train/named_loss.hpp - NamedLoss: the loss on a set that is evaluated, and EvaluationCurve: all of them in the order of steps.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace strata::train {

struct NamedLoss {
    std::string name;  ///< of the set; with "_ema" behind it for the loss of the moving average
    double loss = 0;   ///< mean over its samples
    friend bool operator==(const NamedLoss&, const NamedLoss&) = default;
};

struct EvaluationCurve {
    std::string name;                                     ///< as in NamedLoss
    std::vector<std::pair<std::int64_t, double>> losses;  ///< after which step, and what; ascending
    friend bool operator==(const EvaluationCurve&, const EvaluationCurve&) = default;
};

/// Adds what was found after `step`. Names that are new come last.
inline void add_losses(std::vector<EvaluationCurve>& curves, std::int64_t step, const std::vector<NamedLoss>& losses) {
    for (const NamedLoss& one : losses) {
        auto curve = curves.begin();
        while (curve != curves.end() && curve->name != one.name) ++curve;
        if (curve == curves.end()) curve = curves.insert(curves.end(), {one.name, {}});
        curve->losses.emplace_back(step, one.loss);
    }
}

}  // namespace strata::train
