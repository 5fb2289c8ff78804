#pragma once
// examples/rms_prop.hpp - an update rule of one's own: RMSProp, which strata does not bring.

#include <array>
#include <cstdint>
#include <string_view>

#include <strata/core/host_device.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/square_root.hpp>
#include <strata/optim/update_rule.hpp>

namespace my {

//! [rule]
/// Tieleman and Hinton 2012, with epsilon where libtorch has it: v <- rho v + (1 - rho) g^2, w <- w - lr g / (sqrt(v) + epsilon)
struct RmsProp {
    struct Options {
        double rho = 0.99;
        double epsilon = 1e-8;
        static void describe(auto& option) {  // checked ranges, and the keys optimizer_rho and optimizer_epsilon
            option("rho", &Options::rho, {0, 0.999999}, "Decay of the mean of squares, a step");
            option("epsilon", &Options::epsilon, strata::ranges::epsilon, "Added to its root, which may be 0");
        }
    };
    static constexpr std::array<std::string_view, 1> state_names{"square_avg"};
    struct Scalars {
        float rho, one_minus_rho, epsilon, lr;
    };
    static Scalars scalars(const Options& options, double lr, std::int64_t) noexcept {
        return {.rho = static_cast<float>(options.rho),
                .one_minus_rho = static_cast<float>(1 - options.rho),
                .epsilon = static_cast<float>(options.epsilon),
                .lr = static_cast<float>(lr)};
    }
    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        float& square_avg = state[0];
        square_avg = s.rho * square_avg + s.one_minus_rho * gradient * gradient;
        weight -= s.lr * gradient / (strata::optim::square_root(square_avg) + s.epsilon);
    }
};
static_assert(strata::optim::UpdateRule<RmsProp>);
//! [rule]

}  // namespace my
