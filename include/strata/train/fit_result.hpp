#pragma once
// strata/train/fit_result.hpp - FitResult: what Trainer::fit() returns.

#include <cstdint>

namespace strata {

/// How a run ended.
struct FitResult {
    std::int64_t step = 0;     ///< optimizer steps done, those of earlier runs included
    double loss = 0;           ///< of the last step done, in this run or an earlier one
    bool interrupted = false;  ///< a stop signal ended it; the checkpoint is there
};

}  // namespace strata
