#pragma once
// strata/train/impl/run_record.ipp - a run's log, its times and its rates.

#include <algorithm>
#include <exception>
#include <utility>

#include <strata/train/run_record.hpp>

namespace strata::train {

STRATA_INLINE void RunRecord::clear(const std::filesystem::path& folder) {
    // Not model.json: who records the model does so before fit(), which clears.
    for (const char* entry : {"checkpoints", "samples", "samples_ema", "metrics.jsonl", "report.html"})
        std::filesystem::remove_all(folder / entry);
}

STRATA_INLINE void RunRecord::open_files(const std::filesystem::path& folder, std::int64_t step, const Say& say) {
    for (const std::string& note : log_.open(folder, step)) say(note);
    last_ = log_.last();
    for (const char* samples : {"samples", "samples_ema"})
        for (const SampleGrid& grid : find_sample_grids(folder / samples))
            if (grid.step > step) std::filesystem::remove(grid.png);
}

STRATA_INLINE void RunRecord::begin() {
    seconds_before_ = last_.seconds;
    skipped_ = 0;
    waited_ = 0;
    began_.reset();
}

STRATA_INLINE double RunRecord::seconds() {
    const double now = clock_();
    if (!began_) began_ = now;
    return now - *began_;
}

STRATA_INLINE void RunRecord::complete(StepMetrics& metrics, double seconds, const RunPlan& plan,
                                       std::int64_t samples) {
    const double steps_an_epoch =
        static_cast<double>(plan.micro_batches_per_epoch) / static_cast<double>(plan.gradient_accumulation_steps);
    metrics.epoch = static_cast<double>(metrics.step) / steps_an_epoch;
    metrics.seconds = seconds_before_ + seconds;
    metrics.samples_per_second = static_cast<double>(samples > 0 ? samples : plan.samples_per_step()) /
                                 std::max(1e-9, metrics.seconds - last_.seconds);
    metrics.skipped = std::exchange(skipped_, 0);
    metrics.data_wait = std::exchange(waited_, 0);
    last_ = metrics;
}

STRATA_INLINE void RunRecord::mend(const Say& say) {
    try {
        log_.complete();
        log_.report(report_);
    } catch (const std::exception& error) {
        say(std::string{"metrics.jsonl or report.html lacks the last steps: "} + error.what());
    }
}

}  // namespace strata::train
