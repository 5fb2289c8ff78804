#pragma once
// strata/options/deepspeed_schedules.hpp - DeepSpeed's learning rates as pure functions of the optimizer step.
//
// Each is a pure function of the optimizer step, counted from 0; Schedule::of(WarmupLr{...}) gives it to a trainer.
// DeepSpeed counts `it` = step - 1: its scheduler moves after the first step, so steps 0 and 1 have the same rate where
// it starts level. Steps that an overflow skipped do not count.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/run_length.hpp>

namespace strata::optim {

/// How a warm-up rises: like a logarithm or in a straight line.
enum class WarmupCurve : std::uint8_t { log, linear };

namespace detail {

/// 0 .. 1 over `steps`, at DeepSpeed's it >= 0: ln(it + 1) / ln(steps) or it / steps, and 1 from `steps` on.
inline double warmup_share(std::int64_t it, std::int64_t steps, WarmupCurve curve) noexcept {
    const auto rise = static_cast<double>(std::max<std::int64_t>(2, steps));
    const auto at = static_cast<double>(it);
    if (at >= rise) return 1.0;
    return curve == WarmupCurve::log ? std::log(at + 1.0) / std::log(rise) : at / rise;
}

}  // namespace detail

/// min_lr + (max_lr - min_lr) x share of the warm-up; then max_lr.
struct WarmupLr {
    double min_lr = 0.0;
    double max_lr = 1e-3;              ///< DeepSpeed's default is the optimizer's own rate
    std::int64_t warmup_steps = 1000;  ///< 1 or more; at least 2 act
    WarmupCurve curve = WarmupCurve::log;

    friend bool operator==(const WarmupLr&, const WarmupLr&) = default;
    void check(OptionCheck& check, const RunLength& run) const {
        check.number("min_lr", min_lr, ranges::learning_rate);
        check.number("max_lr", max_lr, ranges::learning_rate);
        run.check_warmup(check, "warmup_steps", warmup_steps, ranges::positive);
    }
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        const std::int64_t it = step - 1;
        return it < 0 ? min_lr : min_lr + (max_lr - min_lr) * detail::warmup_share(it, warmup_steps, curve);
    }
};

/// WarmupLr, then in a straight line down to min_lr at total_steps.
struct WarmupDecayLr {
    double min_lr = 0.0;
    double max_lr = 1e-3;
    std::int64_t warmup_steps = 1000;
    std::int64_t total_steps = 0;  ///< 0: those of the run, which a Trainer fills in
    WarmupCurve curve = WarmupCurve::log;

    friend bool operator==(const WarmupDecayLr&, const WarmupDecayLr&) = default;
    void check(OptionCheck& check, const RunLength& run) const {
        WarmupLr{min_lr, max_lr, warmup_steps, curve}.check(check, run);
        if (check.number("total_steps", total_steps, {0}, "0 takes the run's"))
            run.check_total(check, "total_steps", total_steps, warmup_steps,
                            min_lr == 0.0 ? "the rate would stay at 0" : "");
    }
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        const std::int64_t it = step - 1;
        const std::int64_t warmup = std::max<std::int64_t>(2, warmup_steps);
        if (it < warmup) return WarmupLr{min_lr, max_lr, warmup_steps, curve}.at(step);
        const double share = static_cast<double>(total_steps - it) /
                             static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup));
        return min_lr + (max_lr - min_lr) * std::max(0.0, share);
    }
};

/// lr x ratio: a warm-up from warmup_min_ratio to 1, then half a cosine down to cos_min_ratio. Step 0 has rate 0.
struct WarmupCosineLr {
    double lr = 1e-3;
    double warmup_min_ratio = 0.0;
    double cos_min_ratio = 1e-4;
    std::int64_t warmup_steps = 1000;
    std::int64_t total_steps = 0;  ///< 0: those of the run, which a Trainer fills in
    WarmupCurve curve = WarmupCurve::log;

    friend bool operator==(const WarmupCosineLr&, const WarmupCosineLr&) = default;
    void check(OptionCheck& check, const RunLength& run) const {
        check.number("lr", lr, ranges::learning_rate);
        check.number("warmup_min_ratio", warmup_min_ratio, {0, 1});
        check.number("cos_min_ratio", cos_min_ratio, {0, 1});
        run.check_warmup(check, "warmup_steps", warmup_steps, ranges::positive);
        if (check.number("total_steps", total_steps, {0}, "0 takes the run's"))
            run.check_total(check, "total_steps", total_steps, warmup_steps,
                            cos_min_ratio == 0.0 ? "the rate would stay at 0" : "");
    }
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        const std::int64_t it = step - 1;
        if (it < 0) return 0.0;
        const std::int64_t warmup = std::max<std::int64_t>(2, warmup_steps);
        if (it < warmup) {
            return lr * (warmup_min_ratio + (1.0 - warmup_min_ratio) * detail::warmup_share(it, warmup_steps, curve));
        }
        const double progress =
            static_cast<double>(it - warmup + 1) / static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup));
        const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(1.0, progress)));
        return lr * std::max(0.0, cos_min_ratio + (1.0 - cos_min_ratio) * cosine);
    }
};

/// One cycle (Smith 2018, arXiv:1803.09820): the rate rises and falls once, the momentum falls and rises; then both
/// decay.
struct OneCycle {
    double min_lr = 1e-4;
    double max_lr = 1e-3;
    double decay_lr_rate = 0.0;
    std::int64_t first_steps = 2000;
    std::int64_t second_steps = -1;   ///< below 0: first_steps
    std::int64_t first_stairs = 0;    ///< above 0: the rise has so many steps instead of a slope
    std::int64_t second_stairs = -1;  ///< below 0: first_stairs
    std::int64_t decay_steps = 0;     ///< 0: nothing decays after the cycle
    double min_momentum = 0.8;
    double max_momentum = 0.9;
    double decay_momentum_rate = 0.0;

    friend bool operator==(const OneCycle&, const OneCycle&) = default;
    void check(OptionCheck& check, const RunLength&) const {
        check.number("min_lr", min_lr, ranges::learning_rate);
        check.number("max_lr", max_lr, ranges::learning_rate);
        check.number("decay_lr_rate", decay_lr_rate, {0, 1e6});
        check.number("first_steps", first_steps, ranges::positive);
        check.number("second_steps", second_steps, {-1, ranges::count.most});
        check.number("first_stairs", first_stairs, ranges::count);
        check.number("second_stairs", second_stairs, {-1, ranges::count.most});
        check.number("decay_steps", decay_steps, ranges::count);
        check.number("min_momentum", min_momentum, ranges::momentum);
        check.number("max_momentum", max_momentum, ranges::momentum);
        check.number("decay_momentum_rate", decay_momentum_rate, {0, 1e6});
    }

    /// The rate of optimizer step `step`.
    [[nodiscard]] double at(std::int64_t step) const noexcept {
        if (in_cycle(step)) return min_lr + (max_lr - min_lr) * scale(step);
        return min_lr / (1.0 + decay_lr_rate * decayed(step));
    }
    /// The momentum, or beta1, of optimizer step `step`.
    [[nodiscard]] double momentum_at(std::int64_t step) const noexcept {
        if (in_cycle(step)) return max_momentum - (max_momentum - min_momentum) * scale(step);
        return max_momentum * (1.0 + decay_momentum_rate * decayed(step));
    }

private:
    [[nodiscard]] std::int64_t second() const noexcept { return second_steps < 0 ? first_steps : second_steps; }
    [[nodiscard]] std::int64_t total() const noexcept { return first_steps + second(); }
    // DeepSpeed's it + 1 is `step`, and what it uses before the first step is that of the first.
    [[nodiscard]] bool in_cycle(std::int64_t step) const noexcept { return step < total(); }
    [[nodiscard]] double decayed(std::int64_t step) const noexcept {
        return decay_steps > 0 ? static_cast<double>(step - total()) / static_cast<double>(decay_steps) : 0.0;
    }
    /// 0 at the ends of the cycle, 1 at its top.
    [[nodiscard]] double scale(std::int64_t step) const noexcept {
        const bool rises = step <= first_steps;
        const std::int64_t length = rises ? first_steps : second();
        const std::int64_t stairs = rises || second_stairs < 0 ? first_stairs : second_stairs;
        const double position = static_cast<double>(rises ? step : total() - step) / static_cast<double>(length);
        if (stairs <= 0) return position;
        return std::floor(position * static_cast<double>(stairs)) / static_cast<double>(stairs);
    }
};

/// A rate that only rises, to find the one at which training breaks: min_lr (1 + step_rate x interval).
struct LrRangeTest {
    double min_lr = 1e-3;
    std::int64_t step_size = 2000;
    double step_rate = 1.0;
    bool staircase = false;

    friend bool operator==(const LrRangeTest&, const LrRangeTest&) = default;
    void check(OptionCheck& check, const RunLength&) const {
        check.number("min_lr", min_lr, ranges::learning_rate);
        check.number("step_size", step_size, ranges::positive);
        check.number("step_rate", step_rate, {0, 1e6});
    }

    [[nodiscard]] double at(std::int64_t step) const noexcept {
        const double interval = static_cast<double>(step) / static_cast<double>(step_size);
        return min_lr * (1.0 + step_rate * (staircase ? std::floor(interval) : interval));
    }
};

}  // namespace strata::optim
