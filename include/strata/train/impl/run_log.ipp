#pragma once
// strata/train/impl/run_log.ipp - the log and the report, continued.

#include <system_error>
#include <utility>

#include <strata/train/run_log.hpp>

namespace strata::train {

STRATA_INLINE const std::vector<std::string>& RunLog::open(const std::filesystem::path& folder, std::int64_t step) {
    folder_ = folder;
    missing_.reset();
    log_.reset();  // a log that is open must not be written to while another takes its place
    return log_.emplace(folder / log_name, step).notes();
}

STRATA_INLINE StepMetrics RunLog::last() const {
    return log_ && !log_->history().empty() ? log_->history().back() : StepMetrics{};
}

STRATA_INLINE void RunLog::append(const StepMetrics& metrics, std::vector<NamedNorm> norms,
                                  std::vector<NamedLoss> losses) {
    if (!log_) return;
    missing_ = metrics;
    missing_norms_ = std::move(norms);
    missing_losses_ = std::move(losses);
    std::error_code unknown;
    whole_bytes_ = std::filesystem::file_size(folder_ / log_name, unknown);
    log_->append(metrics, missing_norms_, missing_losses_);
    missing_.reset();
}

STRATA_INLINE void RunLog::append(const DrawnSamples& samples) {
    if (log_) log_->append(samples);
}

STRATA_INLINE void RunLog::append(const StragglerNote& straggler) {
    if (log_) log_->append(straggler);
}

STRATA_INLINE void RunLog::report(ReportContent& content) const {
    if (!log_) return;
    content.history = log_->history();
    content.evaluations = log_->evaluations();
    content.grids = find_sample_grids(folder_ / "samples");
    write_report(folder_ / "report.html", content);
}

STRATA_INLINE void RunLog::complete() {
    if (!missing_) return;
    const StepMetrics metrics = *missing_;
    log_.reset();  // first: it tries to write once more
    std::error_code none;
    // What there is of the line is no damage to set aside.
    std::filesystem::resize_file(folder_ / log_name, whole_bytes_, none);
    open(folder_, metrics.step - 1);
    append(metrics, std::move(missing_norms_), std::move(missing_losses_));
}

}  // namespace strata::train
