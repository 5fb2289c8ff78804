#pragma once
// strata/train/step_end.hpp - StepEnd: how one optimizer step of a trainer ended.

namespace strata::train {

/// The same on all ranks.
struct StepEnd {
    bool done = false;  ///< false: it was skipped, and is tried again with other samples
    bool stop = false;  ///< a rank was asked to stop
    bool due = false;   ///< a checkpoint is
};

}  // namespace strata::train
