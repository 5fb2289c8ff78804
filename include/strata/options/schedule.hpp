#pragma once
// strata/options/schedule.hpp - Schedule: the learning rate as a pure function of the optimizer step.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <numbers>
#include <utility>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/core/schedule_shape.hpp>
#include <strata/options/run_length.hpp>

namespace strata::optim {

using strata::ScheduleShape;

/// A learning rate for every optimizer step; nothing is remembered, so a run resumes at any step.
///
/// Steps are optimizer steps, whatever the number of ranks. With progress = (step - warmup) / (total - warmup):
///
///   linear                end_lr + (lr - end_lr) max(0, 1 - progress)
///   cosine                end_lr + (lr - end_lr) (1 + cos(pi progress)) / 2          rises again after the end
///   cosine_with_restarts  the same of (cycles progress) mod 1                        end_lr after the end
///   polynomial            end_lr + (lr - end_lr) max(0, 1 - progress)^power
///   sine                  end_lr + (lr - end_lr) (1 + sin(pi progress)) / 2
struct Schedule {
    ScheduleShape shape = ScheduleShape::constant;
    double lr = 1e-4;                              ///< the highest value
    double end_lr = 0.0;                           ///< the lowest value after the warm-up
    std::int64_t warmup_steps = 0;                 ///< step 0 has rate 0, step warmup_steps the shape's first value
    std::int64_t total_steps = 0;                  ///< warm-up included; 0: those of the run, which a Trainer fills in
    std::int64_t cycles = 1;                       ///< of cosine_with_restarts
    double power = 1.0;                            ///< of polynomial
    std::function<double(std::int64_t)> custom{};  ///< when set, a rate of your own; nothing above enters
    std::function<Schedule(const RunLength&)> custom_for{};              ///< of(): for_run()
    std::function<void(OptionCheck&, const RunLength&)> check_custom{};  ///< of(): the rate's own check()

    static void describe(auto& option) {
        option("lr", &Schedule::lr, ranges::learning_rate,
               {.help = "Learning rate after the warm-up", .key = "learning_rate"});
        option("shape", &Schedule::shape, schedule_shapes,
               {.help = "How the learning rate goes from step to step", .key = "lr_scheduler"});
        option("warmup_steps", &Schedule::warmup_steps, ranges::count,
               "Optimizer steps in which the learning rate rises from 0");
        option("end_lr", &Schedule::end_lr, ranges::learning_rate,
               {.help = "Lowest learning rate after the warm-up", .key = "lr_end"});
        option("cycles", &Schedule::cycles, ranges::cycles,
               {.help = "Times that `cosine_with_restarts` falls", .key = "lr_num_cycles"});
        option("power", &Schedule::power, ranges::power,
               "How `polynomial` falls: 1 in a straight line, below 1 late, above 1 early");
        option("total_steps", &Schedule::total_steps, {0},
               {.help = "Optimizer steps in which the learning rate falls, warm-up included",
                .special = "0 takes the run's"});
    }

    /// A schedule that asks `rate.at(step)`: one of options/deepspeed_schedules.hpp, or a type of your own. A rate may
    /// have `void check(OptionCheck&, const optim::RunLength&) const`, and a member total_steps, which becomes the run's
    /// steps where it is 0.
    template <class Rate>
    requires requires(const Rate& rate) {
        { rate.at(std::int64_t{}) } -> std::convertible_to<double>;
    }
    [[nodiscard]] static Schedule of(Rate rate) {
        Schedule schedule;
        if constexpr (requires { rate.total_steps = std::int64_t{1}; }) {
            schedule.custom_for = [rate](const RunLength& run) {
                Rate completed = rate;
                if (completed.total_steps == 0) completed.total_steps = run.steps;
                return of(std::move(completed));
            };
        }
        if constexpr (requires(const Rate& r, OptionCheck& check, const RunLength& run) { r.check(check, run); }) {
            schedule.check_custom = [rate](OptionCheck& check, const RunLength& run) { rate.check(check, run); };
        }
        schedule.custom = [rate = std::move(rate)](std::int64_t step) { return static_cast<double>(rate.at(step)); };
        return schedule;
    }

    /// This schedule in a run of so many steps: a total that was left open is the run's.
    [[nodiscard]] Schedule for_run(const RunLength& run) const {
        if (custom) return custom_for ? custom_for(run) : *this;
        Schedule completed = *this;
        if (completed.total_steps == 0) completed.total_steps = run.steps;
        return completed;
    }

    /// Looks at the numbers, and at how they go with the run's length.
    void check(OptionCheck& check, const RunLength& run) const {
        if (custom) {
            if (check_custom) check_custom(check, run);
            return;
        }
        const bool top = check.number("lr", lr, ranges::learning_rate);
        const bool bottom = check.number("end_lr", end_lr, ranges::learning_rate);
        if (top && bottom && end_lr > lr)
            check.refuse(check.name("end_lr") + " is " + OptionCheck::shown(end_lr) + ", above " + check.name("lr") +
                             " = " + OptionCheck::shown(lr),
                         "use a final learning rate that is not larger");
        check.number("cycles", cycles, ranges::cycles);
        check.number("power", power, ranges::power);
        const bool ends = shape != ScheduleShape::constant && shape != ScheduleShape::constant_with_warmup;
        const bool swings = shape == ScheduleShape::cosine || shape == ScheduleShape::sine;
        run.check_warmup(check, "warmup_steps", warmup_steps, ranges::count);
        if (!check.number("total_steps", total_steps, {0}, "0 takes the run's") || !ends) return;
        run.check_total(check, "total_steps", total_steps, warmup_steps,
                        swings          ? "the rate would rise and fall anew"
                        : end_lr == 0.0 ? "the rate would stay at 0"
                                        : "");
    }

    /// The rate of optimizer step `step`, counted from 0.
    [[nodiscard]] double at(std::int64_t step) const {
        if (custom) return custom(step);
        if (shape == ScheduleShape::constant) return lr;
        if (step < warmup_steps) {
            const double top = shape == ScheduleShape::sine ? end_lr + (lr - end_lr) * 0.5 : lr;
            return top * (static_cast<double>(step) / static_cast<double>(warmup_steps));
        }
        const auto left = static_cast<double>(std::max<std::int64_t>(0, total_steps - step));
        const auto span = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
        const double progress = static_cast<double>(step - warmup_steps) / span;
        const auto half_cosine = [&](double turn) {
            return end_lr + (lr - end_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * turn));
        };
        switch (shape) {
            case ScheduleShape::linear:
                return end_lr + (lr - end_lr) * (left / span);
            case ScheduleShape::cosine:
                return half_cosine(progress);
            case ScheduleShape::cosine_with_restarts:
                return progress >= 1.0 ? end_lr : half_cosine(std::fmod(static_cast<double>(cycles) * progress, 1.0));
            case ScheduleShape::polynomial:
                return end_lr + (lr - end_lr) * std::pow(left / span, power);
            case ScheduleShape::sine:
                return end_lr + (lr - end_lr) * 0.5 * (1.0 + std::sin(std::numbers::pi * progress));
            case ScheduleShape::constant:
            case ScheduleShape::constant_with_warmup:
                break;
        }
        return lr;
    }
};

}  // namespace strata::optim
