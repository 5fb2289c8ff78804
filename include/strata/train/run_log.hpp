#pragma once
// strata/train/run_log.hpp - RunLog: metrics.jsonl and report.html of one trainer.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/report.hpp>
#include <strata/train/straggler_note.hpp>

namespace strata::train {

/// The files that a person reads. For rank 0; on other ranks nobody opens it, and all calls do nothing.
class RunLog {
public:
    static constexpr std::string_view log_name = "metrics.jsonl";

    /// Continues the files in `folder` after `step`, and returns what is to be said of the log (MetricsLog::notes()).
    /// Throws what MetricsLog's constructor throws.
    const std::vector<std::string>& open(const std::filesystem::path& folder, std::int64_t step);

    /// The last step in the log; step 0 where there is none.
    [[nodiscard]] StepMetrics last() const;

    /// Throws Error: io_failed, no_space; the line is then kept for complete().
    void append(const StepMetrics& metrics, std::vector<NamedNorm> norms = {}, std::vector<NamedLoss> losses = {});

    /// The samples of a step, behind its line. Throws Error: io_failed, no_space.
    void append(const DrawnSamples& samples);
    /// A straggler, likewise.
    void append(const StragglerNote& straggler);

    /// Writes report.html: `content` with the history and the sample grids that are there. Throws as write_report() does.
    void report(ReportContent& content) const;

    /// Writes the line that append() could not write, in the place of what there is of it. Throws as it does.
    void complete();

private:
    std::filesystem::path folder_;
    std::optional<MetricsLog> log_;
    std::optional<StepMetrics> missing_;
    std::vector<NamedNorm> missing_norms_;
    std::vector<NamedLoss> missing_losses_;
    std::uintmax_t whole_bytes_ = 0;  // of the file without the line that is missing
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/run_log.ipp>
#endif
