#pragma once
// strata/train/run_events.hpp - RunEvents: what a session tells its webhooks, from each rank.

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/options/webhook_options.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/phases.hpp>
#include <strata/train/run_stage.hpp>
#include <strata/train/straggler_note.hpp>
#include <strata/webhooks/courier.hpp>
#include <strata/webhooks/event.hpp>

namespace strata::train {

/// Local, and nothing here makes a step wait or throws. Without webhooks every call does nothing. What all ranks have in
/// common, from steps to checkpoints, rank 0 tells; a failure, a fault or an event of a program's own the rank that has it.
class RunEvents {
public:
    /// Which webhooks there will be. Before begin().
    void set(std::vector<webhooks::WebhookOptions> webhooks) { webhooks_ = std::move(webhooks); }
    /// Starts to deliver, with what earlier runs left in the folder first.
    void begin(const std::filesystem::path& folder, webhooks::Origin origin,
               std::function<void(const std::string&)> say);
    /// Delivers what it can in closing_seconds. Later events are not taken.
    void end() noexcept { courier_.reset(); }

    /// Any event, from any thread: webhooks::gpu_fault_event() of a monitor's, say.
    void tell(const webhooks::Event& event) noexcept;

    /// After a failure that the launcher has started the run again for, and that none of its ranks may have lived to tell.
    ///
    ///   restarts  by now, in words: "2"
    void restarted(const std::string& restarts, const std::string& why) noexcept;
    /// What is to be done before training (PhasesHooks::tell): finding pictures is one stage, and filling caches another, whatever their phases are called.
    void phase_goes_on(const PhaseNews& news) noexcept;
    /// The one before is complete where it has not ended; this one when another begins, or training does.
    void stage_begins(const RunStage& stage) noexcept;
    /// `work` between the begin of a stage and its end, which is told as failed when it throws.
    void during(const RunStage& stage, core::FunctionRef<void()> work);
    void training_begins(std::int64_t step, std::int64_t max_steps) noexcept;
    void step_done(const StepMetrics& metrics, std::int64_t last_step) noexcept;
    void checkpoint_saved(const std::filesystem::path& path, std::int64_t step, bool is_final) noexcept;
    ///   folder  of the trainer
    void samples_drawn(const std::filesystem::path& folder, const DrawnSamples& drawn) noexcept;
    void straggler_found(const StragglerNote& straggler) noexcept;
    void training_ends(std::int64_t step, std::int64_t max_steps) noexcept;
    /// A collective that does not end, with where its stacks are. As failed().
    void hangs(const std::string& what) noexcept;
    /// What ends the session, unless it was asked to stop, and with it the stage that was under way: it is on disk when this returns, or after 2 s.
    void failed(const std::exception_ptr& failure) noexcept;

private:
    void tell_and_keep(const webhooks::Event& event) noexcept;
    void begin_stage(const RunStage& stage, const std::optional<webhooks::EventProgress>& progress) noexcept;
    void end_stage(webhooks::StageStatus status) noexcept;
    void close_stage(webhooks::StageStatus status);  // under stage_mutex_
    [[nodiscard]] bool speaks_for_all() const noexcept { return courier_ != nullptr && rank_ == 0; }

    std::vector<webhooks::WebhookOptions> webhooks_;
    int rank_ = 0;
    std::unique_ptr<webhooks::Courier> courier_;
    std::mutex stage_mutex_;         // phases may come from any thread
    std::optional<RunStage> stage_;  // that is under way
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/run_events.ipp>
#endif
