#pragma once
// strata/train/progress.hpp - what a person sees while a run goes: a live line, or plain lines in a file.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/train/debiased_mean.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/terminal.hpp>

namespace strata::train {

/// Shows the progress of a run on standard output. Only rank 0 shows anything; on other ranks every call
/// is a no-op. Thread-safe.
class Progress {
public:
    Progress(bool shown, bool live) : shown_{shown}, live_{live} {}

    /// On a terminal the line is drawn again at most ten times a second; otherwise one line is printed
    /// every five seconds, and for the last step.
    ///
    ///   last_step  the step the run ends with, for the time that is left; "--" stands for what is not known yet
    ///   name       of the trainer, where a session has several
    void step(const StepMetrics& metrics, std::int64_t last_step, std::string_view name = {});

    /// A line of its own that stays: a checkpoint, a sample grid, a resume. Control characters in it, of a file's name
    /// say, are shown as escapes.
    void note(std::string_view text);

private:
    void clear_line();

    /// How fast one trainer is, and when it was shown.
    struct Pace {
        std::chrono::steady_clock::time_point last_shown{};
        DebiasedMean seconds_per_step{
            0.95};                   // NaN until two steps are done: what the first one took began before training
        std::int64_t last_step = 0;  // 0: none was shown yet
        double last_seconds = 0;
    };

    bool shown_;
    bool live_;
    std::mutex mutex_;  // of what follows
    bool line_open_ = false;
    std::map<std::string, Pace, std::less<>> paces_;  // by trainer
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/progress.ipp>
#endif
