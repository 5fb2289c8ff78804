#pragma once
// strata/optim/schedule.hpp - Schedule: the learning rate as a pure function of the optimizer step.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string_view>

namespace strata::optim {

/// Shapes of a schedule, by the names that diffusers' get_scheduler gives them.
enum class ScheduleShape : std::uint8_t {
    constant,              ///< ignores the warm-up
    constant_with_warmup,
    linear,                ///< down to end_lr in a straight line
    cosine,                ///< down to end_lr in half a cosine
};

inline constexpr std::array<std::string_view, 4> schedule_names{"constant", "constant_with_warmup", "linear", "cosine"};

/// The shape called `name`, or nothing.
constexpr std::optional<ScheduleShape> find_schedule_shape(std::string_view name) noexcept {
    for (std::size_t i = 0; i < schedule_names.size(); ++i) {
        if (schedule_names[i] == name) return static_cast<ScheduleShape>(i);
    }
    return std::nullopt;
}

/// A learning rate for every optimizer step; nothing is remembered, so a run resumes at any step.
struct Schedule {
    ScheduleShape shape = ScheduleShape::constant;
    double lr = 1e-4;               ///< the highest value
    double end_lr = 0.0;            ///< what linear and cosine end at
    std::int64_t warmup_steps = 0;  ///< step 0 has rate 0, step warmup_steps the full rate
    std::int64_t total_steps = 1;   ///< warm-up included; linear stays at end_lr afterwards, cosine rises again

    /// The rate of optimizer step `step`, counted from 0.
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        if (shape == ScheduleShape::constant) return lr;
        if (step < warmup_steps) return lr * (static_cast<double>(step) / static_cast<double>(warmup_steps));
        const auto left = static_cast<double>(std::max<std::int64_t>(0, total_steps - step));
        const auto span = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
        switch (shape) {
            case ScheduleShape::linear: return end_lr + (lr - end_lr) * (left / span);
            case ScheduleShape::cosine: {
                const double progress = static_cast<double>(step - warmup_steps) / span;
                return end_lr + (lr - end_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
            }
            case ScheduleShape::constant:
            case ScheduleShape::constant_with_warmup: break;
        }
        return lr;
    }
};

}  // namespace strata::optim
