#pragma once
// strata/zero/option_checks.hpp - what an Engine's options and a trainer's have in common, looked at by one function.

#include <cstddef>
#include <string>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>

namespace strata::zero {

/// Looks at the numbers that EngineOptions<Rule> has and TrainOptions<Rule> by the same names. What a rule's own
/// options may be, the rule says (optim/update_rule.hpp). Local.
template <class Options>
void check_shared_options(const Options& options, OptionCheck& check) {
    check.number("gradient_accumulation_steps", options.gradient_accumulation_steps, ranges::accumulation_steps);
    const bool norm = check.number("max_grad_norm", options.max_grad_norm, ranges::gradient_limit, "0 does not clip");
    const bool value =
        check.number("max_grad_value", options.max_grad_value, ranges::gradient_limit, "0 does not clip");
    if (norm && value && options.max_grad_norm > 0 && options.max_grad_value > 0)
        check.refuse(check.name("max_grad_norm") + " is " + OptionCheck::shown(options.max_grad_norm) + " and " +
                         check.name("max_grad_value") + " is " + OptionCheck::shown(options.max_grad_value) +
                         ", and gradients are clipped in one way",
                     "keep the one you mean, and leave the other at 0");
    check.part("update", options.update);
    for (std::size_t i = 0; i < options.groups.size(); ++i) {
        check.inside("groups[" + std::to_string(i) + "]", [&] {
            const auto& group = options.groups[i];
            if (!group.takes)
                check.refuse(check.name("takes") + " is empty, so that the group has no parameter",
                             "give it a function of a parameter's name, or remove the group");
            check.number("lr_factor", group.lr_factor, {0, 1e6});
            check.part("update", group.update);
        });
    }
    check.part("loss_scale", options.loss_scale);
    check.part("ema", options.ema);
    check.number("ema_interval", options.ema_interval, ranges::positive);
    check.number("prefetch_bucket_bytes", options.prefetch_bucket_bytes, ranges::bytes_ahead,
                 "-1 takes the largest unit");
    check.number("max_live_parameters", options.max_live_parameters, ranges::size, "0 is no bound");
    check.number("non_finite_limit", options.non_finite_limit, ranges::positive);
    check.number("nvme_lock_timeout", options.nvme_lock_timeout.count(), {0, ranges::timeout_s.most}, "seconds, 0 tries once");
}

}  // namespace strata::zero
