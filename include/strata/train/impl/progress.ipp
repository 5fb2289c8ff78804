#pragma once
// strata/train/impl/progress.ipp - drawing the progress line.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <strata/core/printable.hpp>
#include <strata/train/progress.hpp>
#include <strata/train/terminal.hpp>

namespace strata::train {

STRATA_INLINE void Progress::step(const StepMetrics& m, std::int64_t last_step, std::string_view name) {
    if (!shown_) return;
    const std::lock_guard lock{mutex_};
    Pace& pace = paces_.try_emplace(std::string{name}).first->second;
    if (pace.last_step > 0 && m.step > pace.last_step) {
        const auto steps = static_cast<double>(m.step - pace.last_step);
        pace.seconds_per_step.add((m.seconds - pace.last_seconds) / steps, steps);
    }
    pace.last_step = m.step;
    pace.last_seconds = m.seconds;

    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    const auto pause = live_ ? 100ms : 5000ms;
    if (now - pace.last_shown < pause && m.step != last_step) return;
    pace.last_shown = now;

    const double left =
        m.step == last_step ? 0 : static_cast<double>(last_step - m.step) * pace.seconds_per_step.value();
    char speed[32] = "--";
    if (std::isfinite(m.samples_per_second)) std::snprintf(speed, sizeof speed, "%.1f", m.samples_per_second);
    char wait[32] = "--";
    if (std::isfinite(m.data_wait)) std::snprintf(wait, sizeof wait, "%.2f s", m.data_wait);
    char line[352];
    std::snprintf(line, sizeof line, "%.*s%sstep %lld/%lld  loss %.4f  lr %.2e  %s samples/s  data_wait %s  ETA %s",
                  static_cast<int>(std::min<std::size_t>(name.size(), 64)), name.data(), name.empty() ? "" : ": ",
                  static_cast<long long>(m.step), static_cast<long long>(last_step), m.loss, m.learning_rate, speed,
                  wait, std::isfinite(left) ? clock_text(left).c_str() : "--");
    if (live_) {
        std::printf("\r\x1b[K%s", line);
        line_open_ = true;
    } else {
        std::printf("%s\n", line);
    }
    std::fflush(stdout);
    if (m.step == last_step) clear_line();
}

STRATA_INLINE void Progress::note(std::string_view text) {
    if (!shown_) return;
    const std::lock_guard lock{mutex_};
    clear_line();
    std::printf("%s\n", core::printable(text).c_str());
    std::fflush(stdout);
}

STRATA_INLINE void Progress::clear_line() {
    if (!line_open_) return;
    std::printf("\n");
    std::fflush(stdout);
    line_open_ = false;
}

}  // namespace strata::train
