#pragma once
// strata/optim/adam.hpp - Adam: adaptive moments, with weight decay inside the gradient.

#include <cstdint>

#include <strata/core/host_device.hpp>
#include <strata/optim/adam_moments.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/optim/usual_options.hpp>

namespace strata {

/// Adam (Kingma and Ba 2015, arXiv:1412.6980, algorithm 1) as torch.optim.Adam computes it, L2 penalty included:
///
///   g <- g + weight_decay w
///   m <- beta1 m + (1 - beta1) g
///   v <- beta2 v + (1 - beta2) g g
///   w <- w - lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///
/// The penalty is divided by sqrt(v) like the rest of the gradient; AdamW decays without that.
struct Adam : optim::AdamMoments {
    using Options = optim::MomentOptions<optim::L2Penalty>;

    struct Scalars : optim::AdamMoments::Scalars {
        float weight_decay;
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        return {moment_scalars(options, lr, step), static_cast<float>(options.weight_decay)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        weight = weight - step_of(gradient + s.weight_decay * weight, state, s);
    }
};

static_assert(optim::ElementwiseRule<Adam>);

}  // namespace strata
