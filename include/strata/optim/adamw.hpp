#pragma once
// strata/optim/adamw.hpp - AdamW: adaptive moments with decoupled weight decay.

#include <cstdint>

#include <strata/core/host_device.hpp>
#include <strata/optim/adam_moments.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/optim/usual_options.hpp>

namespace strata {

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2) as torch.optim.AdamW computes it:
///
///   w <- w (1 - lr weight_decay)                    decay first
///   m <- beta1 m + (1 - beta1) g
///   v <- beta2 v + (1 - beta2) g g
///   w <- w - lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
struct AdamW : optim::AdamMoments {
    using Options = optim::MomentOptions<optim::DecoupledDecay>;

    struct Scalars : optim::AdamMoments::Scalars {
        float decay;  ///< 1 - lr weight_decay
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        return {moment_scalars(options, lr, step), static_cast<float>(1.0 - lr * options.weight_decay)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        weight = s.decay * weight - step_of(gradient, state, s);
    }
};

static_assert(optim::ElementwiseRule<AdamW>);

}  // namespace strata
