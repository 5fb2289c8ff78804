#pragma once
// strata/train/metrics.hpp - metrics.jsonl: one line of JSON a step, some for samples and stragglers, continued by a resumed run.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/named_loss.hpp>
#include <strata/train/named_norm.hpp>
#include <strata/train/straggler_note.hpp>

namespace strata::train {

/// What one optimizer step is known by. Equal on all ranks; times are by rank 0's clock.
struct StepMetrics {
    std::int64_t step = 0;          ///< 1 after the first update
    double loss = 0;                ///< mean over ranks and micro-batches
    double learning_rate = 0;       ///< the one this step used
    double grad_norm = 0;           ///< global L2 norm before clipping
    double samples_per_second = 0;  ///< over all ranks, since the last step
    double data_wait = 0;           ///< seconds that the rank that waited longest waited for the step's batches
    double seconds = 0;             ///< since the run started, resumed time included
    double epoch = 0;               ///< fractional
    std::int64_t skipped = 0;  ///< tries of this step before it that changed nothing, because numbers were not finite
};

/// Appends steps to a file of JSON lines. For rank 0.
///
/// Numbers are written with 17 digits, so two runs can be compared bit by bit; one that is not finite is null. A line
/// that stays is never written anew: keys of a user's own tools and of other versions are in it as they were.
/// Throws Error: io_failed, no_space.
class MetricsLog {
public:
    /// Opens `file` for a run that goes on after `resumed_step` (0: from the start). Lines of later steps, lines that
    /// cannot be read, and of several lines of one step all but the last are set aside (those of samples and stragglers are apart): their bytes go to
    /// `file`.kept-1, or the first number that is free, before `file` is replaced at once. notes() says so.
    MetricsLog(std::filesystem::path file, std::int64_t resumed_step);

    ///   norms   gradient norms of the step's, by layer; of most steps none
    ///   losses  of sets that were evaluated after it; of most steps none
    void append(const StepMetrics& metrics, std::span<const NamedNorm> norms = {},
                const std::vector<NamedLoss>& losses = {});

    /// A line of their own, behind that of their step.
    void append(const DrawnSamples& samples);
    void append(const StragglerNote& straggler);

    /// Every step so far, those of the runs before this one included, in order. Steps may be missing.
    [[nodiscard]] const std::vector<StepMetrics>& history() const noexcept { return history_; }

    /// What sets that are evaluated came to so far, those of the runs before this one included.
    [[nodiscard]] const std::vector<EvaluationCurve>& evaluations() const noexcept { return evaluations_; }

    /// What was set aside when it was opened, and which steps are missing: lines for a person. Empty: all was well.
    [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

private:
    void write(const std::string& line);

    std::filesystem::path file_;
    std::vector<StepMetrics> history_;
    std::vector<EvaluationCurve> evaluations_;
    std::vector<std::string> notes_;
    std::ofstream out_;
};

/// The steps of a metrics file, in order; empty where there is no file. Lines that are none of ours are left out, and of
/// several lines of one step the last one counts. A number that is null there is NaN.
[[nodiscard]] std::vector<StepMetrics> read_metrics(const std::filesystem::path& file);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/metrics.ipp>
#endif
