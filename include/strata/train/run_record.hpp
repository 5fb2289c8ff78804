#pragma once
// strata/train/run_record.hpp - RunRecord: what a run tells of its steps: log, report, and what follows from the step before.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/report.hpp>
#include <strata/train/run_log.hpp>
#include <strata/train/run_plan.hpp>
#include <strata/train/straggler_note.hpp>

namespace strata::train {

/// Every rank has one; files are rank 0's. Local, but for open().
class RunRecord {
public:
    using Say = std::function<void(const std::string&)>;

    /// Removes what an earlier run left in `folder`, checkpoints included. For rank 0.
    static void clear(const std::filesystem::path& folder);

    /// Continues the log in `folder` after `step`, and removes pictures that were drawn later. Collective. Throws on all ranks
    /// as RunLog::open() does.
    ///
    ///   say  called on rank 0 with what is to be said of the log
    template <comm::Communicator Comm>
    void open(Comm& comm, const std::filesystem::path& folder, std::int64_t step, const Say& say) {
        comm::agree(comm, [&] {
            if (comm.rank() == 0) open_files(folder, step, say);
        });
        comm.broadcast(std::as_writable_bytes(std::span{&last_, 1}), 0);
    }

    /// The last step done, earlier runs included.
    [[nodiscard]] const StepMetrics& last() const noexcept { return last_; }

    /// Steps follow: their time is added to that of the last one.
    void begin();
    /// Since the first call after begin().
    [[nodiscard]] double seconds();
    /// Another clock than the system's. Before begin().
    ///
    ///   seconds  since whenever
    void use_clock(std::function<double()> seconds) { clock_ = std::move(seconds); }

    /// The ranks waited so many seconds for batches of the step under way.
    void wait(double seconds) noexcept { waited_ += seconds; }
    /// A try of the next step changed nothing.
    void skip() noexcept { ++skipped_; }
    /// Fills in what follows from plan and time, and makes it the last step.
    ///
    ///   metrics  its step is known
    ///   seconds  rank 0's seconds()
    ///   samples  of the step, of all ranks; 0: as many as the plan says
    void complete(StepMetrics& metrics, double seconds, const RunPlan& plan, std::int64_t samples = 0);

    /// Throws io_failed, no_space; the line is then kept for mend().
    ///
    ///   norms   gradient norms by layer, of the steps that have them
    ///   losses  of sets that were evaluated after it
    void append(const StepMetrics& metrics, std::vector<NamedNorm> norms = {}, std::vector<NamedLoss> losses = {}) {
        log_.append(metrics, std::move(norms), std::move(losses));
    }
    /// The samples of a step; throws io_failed, no_space.
    void append(const DrawnSamples& samples) { log_.append(samples); }
    /// A straggler; throws io_failed, no_space.
    void append(const StragglerNote& straggler) { log_.append(straggler); }
    [[nodiscard]] ReportContent& report() noexcept { return report_; }
    void write_report() { log_.report(report_); }
    /// What the log and the report lack after a failure, as far as that can be written now. Throws nothing.
    void mend(const Say& say);

private:
    void open_files(const std::filesystem::path& folder, std::int64_t step, const Say& say);

    RunLog log_;  // open on rank 0
    ReportContent report_;
    StepMetrics last_;
    double seconds_before_ = 0;
    std::int64_t skipped_ = 0;  // tries of the step under way
    double waited_ = 0;         // for batches, of the step under way, tries included
    std::function<double()> clock_ = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
    std::optional<double> began_;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/run_record.ipp>
#endif
