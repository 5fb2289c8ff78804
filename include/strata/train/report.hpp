#pragma once
// strata/train/report.hpp - report.html: what a run did, in one file that needs nothing beside it.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/named_loss.hpp>

namespace strata::train {

/// A grid of samples on disk, and the step it was drawn at.
struct SampleGrid {
    std::int64_t step = 0;
    std::filesystem::path png;
};

struct ReportContent {
    std::string title{};
    std::vector<std::pair<std::string, std::string>> facts{};  ///< shown as a table: name, value
    std::vector<StepMetrics> history{};
    std::vector<EvaluationCurve> evaluations{};
    std::vector<SampleGrid> grids{};     ///< oldest first; the newest is shown large
    std::vector<std::string> prompts{};  ///< in the order of a grid, row by row
    int columns = 4;                     ///< prompts in a row of a grid
    std::string sample_note{};           ///< what a prompt's pictures are, where it has several; below the newest grid
};

/// The grids that lie in `folder` as step_NNNNNNNN.png, oldest first.
[[nodiscard]] std::vector<SampleGrid> find_sample_grids(const std::filesystem::path& folder);

/// Writes the report, pictures and loss curve inside, by atomic rename. For rank 0.
///
/// Throws Error: io_failed, no_space, not_found for a grid that is not there.
void write_report(const std::filesystem::path& file, const ReportContent& content);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/report.ipp>
#endif
