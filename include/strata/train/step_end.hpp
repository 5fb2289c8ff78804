#pragma once
// strata/train/step_end.hpp - StepEnd: how one optimizer step of a trainer ended.

namespace strata::train {

/// The same on all ranks.
struct StepEnd {
    bool done = false;  ///< false: it was skipped, and is tried again with other samples
    bool stop = false;  ///< a rank was asked to stop
    bool due = false;   ///< a checkpoint is
    bool keep = true;  ///< false: the state may be spoilt and is not to be saved, since there is a checkpoint of before
};

}  // namespace strata::train
