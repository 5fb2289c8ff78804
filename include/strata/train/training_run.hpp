#pragma once
// strata/train/training_run.hpp - TrainingRun: a run's position, log and checkpoints, whatever trains and whatever feeds it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/facts.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/checkpoints.hpp>
#include <strata/train/data_wait.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/evaluation.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/named_norm.hpp>
#include <strata/train/ranks_together.hpp>
#include <strata/train/rescue.hpp>
#include <strata/train/run_actions.hpp>
#include <strata/train/run_plan.hpp>
#include <strata/train/run_record.hpp>
#include <strata/train/run_settings.hpp>
#include <strata/train/session.hpp>
#include <strata/train/step_end.hpp>
#include <strata/train/step_pass.hpp>
#include <strata/train/step_samples.hpp>
#include <strata/train/step_undo.hpp>
#include <strata/train/stragglers.hpp>
#include <strata/train/trainable_history.hpp>
#include <strata/train/work_time.hpp>
#include <strata/zero/engine_options.hpp>

namespace strata::train {

/// What of a trainer's run depends neither on its model's type nor on its composition. A TrainerRun adds the source and the passes.
/// All calls are collective unless they say otherwise.
class TrainingRun : public Rescuable {
public:
    /// Calls `action` after every `steps`-th step and the last one; 0: after the last one. Local. Throws bad_value.
    void every(std::int64_t steps, RunActions::Call action);
    /// Calls `action` before the first step of a run, with step 0. Local. Throws bad_value.
    void at_start(RunActions::Call action);
    /// Notes in the log what was drawn. Throws io_failed, no_space.
    void note_samples(const DrawnSamples& samples);
    /// Evaluates a set every `steps` steps and after the last one; its losses stand in that step's line of the log. Local. Throws bad_value.
    void evaluate(std::int64_t steps, const std::string& name, Evaluations::Call call) {
        evaluations_.add(steps, name, std::move(call));
    }
    /// Whether no step was done since a checkpoint was loaded. Local.
    [[nodiscard]] bool has_just_resumed() const noexcept { return engine_.step_count() == resumed_at_; }
    /// Engine::set_trainable(), between steps.
    void set_trainable(const AnyEngine::ByName& trains) {
        checkpoints_.set_trainable(trains, in_step_ > 0 ? ChosenWhile::in_a_step
                                           : in_fit_    ? ChosenWhile::after_failure
                                                        : ChosenWhile::between_fits);
    }
    [[nodiscard]] ReportContent& report() noexcept { return record_.report(); }
    /// What it is called beside others: TrainOptions::name.
    [[nodiscard]] const std::string& name() const noexcept { return settings_.name; }
    [[nodiscard]] const RunSettings& settings() const noexcept { return settings_; }
    [[nodiscard]] Session& session() const noexcept { return session_; }

    /// Where it writes. The first call takes the folder. Throws bad_value, output_in_use.
    [[nodiscard]] const std::filesystem::path& folder();

    /// From the checkpoint of exactly this step, which is whole.
    void resume_at(std::int64_t step) { resume(checkpoints_.resume_at(manifest(), step)); }
    /// Keeps room for the first checkpoint, where the options want it.
    void reserve();
    /// Saves a checkpoint and writes the report.
    void save();
    /// Local.
    void release_room() noexcept { checkpoints_.release_room(); }

    /// Times by a clock of the caller's own, where there is no waiting for real ones: a test's. Before fit(). Local.
    void use_clock(std::function<double()> seconds) { record_.use_clock(std::move(seconds)); }

    [[nodiscard]] double last_loss() const noexcept { return record_.last().loss; }
    [[nodiscard]] bool are_together() const noexcept { return static_cast<bool>(together_); }
    /// What a failure is of: "step 7 on rank 1", "what follows step 7". Local.
    [[nodiscard]] std::string who() const;

    // ---- checkpoints beside those of others: fit_in_turns() ---------------------------------------------------------------

    [[nodiscard]] Checkpoints& checkpoints() noexcept { return checkpoints_; }
    /// What a checkpoint of this trainer says about itself, apart from its files. Local.
    [[nodiscard]] checkpoint::Manifest manifest() const;

    // ---- Rescuable -------------------------------------------------------------------------------------------------------

    [[nodiscard]] std::int64_t step() const override { return engine_.step_count(); }
    [[nodiscard]] int world() const override { return session_.world(); }
    [[nodiscard]] bool is_saved() const override { return checkpoints_.is_saved(engine_.step_count()); }
    [[nodiscard]] bool has_failed() const override { return checkpoints_.has_failed(engine_.step_count()); }
    [[nodiscard]] std::filesystem::path newest() const override { return checkpoints_.newest(); }
    [[nodiscard]] std::string newest_text() const override { return checkpoints_.newest_text(); }
    [[nodiscard]] bool state_is_whole() const override { return engine_.state_is_whole(); }
    void write() override { checkpoints_.write(manifest()); }
    void undo_step() override { undo_.undo(); }
    void complete_log() override { record_.mend(saying()); }

protected:
    /// session, model and engine outlive it.
    TrainingRun(Session& session, AnyModel& model, AnyEngine& engine, RunSettings settings, at::Device device);
    ~TrainingRun();

    /// Puts a failed step back, clears what --fresh is about, and makes the plan.
    void start(const RunPlan& plan);
    /// What checkpoints say about the source's data. Local.
    void set_data(checkpoint::Facts data) { data_ = std::move(data); }
    /// From where the last call ended, else from the newest checkpoint that is whole, else from the start.
    void find_place();
    /// Opens the log. Returns the micro-batch of this rank that comes next.
    [[nodiscard]] std::int64_t open();
    /// Of this rank, from the start of epoch 0.
    [[nodiscard]] std::int64_t next_micro_batch() const noexcept {
        return samples_ / plan_.samples_per_step() * settings_.micro_batches;
    }
    /// What precedes a step's passes. Returns its learning rate.
    [[nodiscard]] double begin_step();
    [[nodiscard]] StepPassSettings of_passes();
    /// What follows them: the engine's step, or what is told of one that is skipped.
    ///
    ///   names_samples  batches of this model do, on every rank
    ///   last_step      the one this run ends with
    [[nodiscard]] StepEnd end_step(double learning_rate, const StepSums& sums, const StepSamples& samples,
                                   bool names_samples, std::int64_t last_step);
    /// Says so when steps have come to wait for their batches. Local.
    ///
    ///   bottleneck  the source's
    void tell_of_waiting(core::FunctionRef<std::string()> bottleneck);
    /// The calls of a fit() are done, as far as they were not stopped, and `lines` are what the source has to say at the end.
    void end_well(const std::vector<std::string>& lines);
    /// Saves what can be saved after a failure, gives the room back, and throws it with what became of the run.
    [[noreturn]] void end_badly();

    [[nodiscard]] RunPlan plan() const;  ///< as far as no source is known
    [[nodiscard]] RanksTogether& together() noexcept { return together_; }
    [[nodiscard]] RunRecord& record() noexcept { return record_; }
    /// Of this rank's passes and updates.
    [[nodiscard]] WorkTime& work() noexcept { return work_; }
    /// From a step's first line to its last, whichever way it ends.
    [[nodiscard]] int& steps_under_way() noexcept { return in_step_; }

private:
    /// --fresh: what an earlier run left goes. Rank 0's.
    void clear();
    [[nodiscard]] RunRecord::Say saying() const;
    /// The weights of a run that is complete, where the options want them and they are not there yet.
    void export_weights();
    /// What a checkpoint says that was loaded; none: from the start.
    void resume(const std::optional<checkpoint::Manifest>& found);
    /// The engine's step. Its errors are of all ranks, but for those of a GPU; what else it throws one rank may meet alone.
    [[nodiscard]] zero::StepResult update(double learning_rate, const StepSamples& samples, bool names_samples,
                                          bool loss_is_finite);
    /// Which samples a step that is not finite saw, as far as batches name them.
    [[nodiscard]] std::string of_samples(const StepSamples& samples, bool names_samples, bool loss_is_finite);
    /// A step that changed nothing: its samples are used up, and nothing is logged under its number yet.
    void skip(const zero::StepResult& result, const StepSamples& samples, bool names_samples, bool loss_is_finite);
    /// What sets that are due after the step came to; what fails is thrown once the step is logged.
    [[nodiscard]] std::vector<NamedLoss> evaluate_due(const StepMetrics& metrics, std::int64_t last_step);
    /// Says which ranks have become slower than the others, or no longer are.
    ///
    ///   ranks  of the step that has ended
    void compare(std::span<const RankTimes> ranks);
    /// Of a run that was asked to stop: whether the state is to be saved, and says what becomes of it. No: a fault of a GPU may have
    /// spoilt it, and there is a checkpoint of before.
    [[nodiscard]] bool keeps_state(std::int64_t last_step);
    /// Logs, and calls what is due; returns whether a checkpoint is.
    [[nodiscard]] bool finish(const StepMetrics& metrics, bool interrupted, std::int64_t last_step);

    Session& session_;
    AnyModel& model_;
    AnyEngine& engine_;
    RunSettings settings_;
    at::Device device_;
    Checkpoints checkpoints_;
    StepUndo undo_;
    RunRecord record_;
    WorkTime work_{[this] { return record_.seconds(); }};
    Stragglers stragglers_{settings_.straggler_factor, settings_.straggler_steps};
    std::vector<NamedNorm> norms_;  // of the step under way
    DataWait data_wait_;
    double step_seconds_ = 0;  // of the last step that was done
    RunActions actions_;
    RunActions first_actions_;  // before step 1
    Evaluations evaluations_;
    std::filesystem::path folder_;  // empty until it is taken
    RunPlan plan_;
    checkpoint::Facts data_;
    std::string base_;  // id of the frozen weights beneath adapters, as they were when the trainer was made
    std::int64_t samples_ = 0;
    std::int64_t resumed_at_ = -1;  // the step of the checkpoint that was loaded; -1: none
    RanksTogether together_;
    bool has_begun_ = false;   // --fresh is done with; rank 0
    bool ended_well_ = false;  // the state is that of the last step, and nothing has to be loaded
    bool log_is_open_ = false;
    bool in_fit_ = false;  // one has begun, and has not come to its end
    int in_step_ = 0;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/training_run.ipp>
#endif
