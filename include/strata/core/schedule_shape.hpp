#pragma once
// strata/core/schedule_shape.hpp - the shapes a learning rate can have over a run, and their names.

#include <array>
#include <cstdint>

#include <strata/core/option_description.hpp>

namespace strata {

/// Shapes of a learning-rate schedule, by the names that diffusers' get_scheduler gives them; "sine" is SimpleTuner's.
/// optim::Schedule has the formulas.
enum class ScheduleShape : std::uint8_t {
    constant,  ///< ignores the warm-up
    constant_with_warmup,
    linear,                ///< down to end_lr in a straight line
    cosine,                ///< down to end_lr in half a cosine
    cosine_with_restarts,  ///< cycles times, each from lr down to end_lr
    polynomial,            ///< down to end_lr like (1 - progress)^power
    sine,                  ///< from the middle of end_lr and lr up to lr and back, in half a sine
};

/// Every shape once, by the name that configuration files have.
inline constexpr std::array<NamedValue<ScheduleShape>, 7> schedule_shapes{{
    {"constant", ScheduleShape::constant},
    {"constant_with_warmup", ScheduleShape::constant_with_warmup},
    {"linear", ScheduleShape::linear},
    {"cosine", ScheduleShape::cosine},
    {"cosine_with_restarts", ScheduleShape::cosine_with_restarts},
    {"polynomial", ScheduleShape::polynomial},
    {"sine", ScheduleShape::sine},
}};

}  // namespace strata
