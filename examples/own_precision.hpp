#pragma once
// examples/own_precision.hpp - a number format of one's own: bf16 with loss scaling.
//
// bf16 has the range of fp32, and a usual loss needs no scaling in it. One whose gradients are of the order of 1e-38
// does; and a step that overflows is then skipped, as under fp16, where Bf16 would end the run.

#include <strata/policy/setup.hpp>

namespace my {

//! [format]
/// Precision<Bf16>, and the loss is scaled.
struct ScaledBf16 : strata::Bf16 {
    using scaler = strata::LossScaling;
};
//! [format]

static_assert(strata::PrecisionPolicy<strata::Precision<ScaledBf16>>);

}  // namespace my
