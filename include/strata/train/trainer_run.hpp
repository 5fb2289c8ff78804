#pragma once
// strata/train/trainer_run.hpp - TrainerRun: one trainer's steps, one by one, with its position, log and checkpoints.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/facts.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/within.hpp>
#include <strata/train/checkpoints.hpp>
#include <strata/train/environment.hpp>
#include <strata/train/gradient_norms.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/options.hpp>
#include <strata/train/ranks_together.hpp>
#include <strata/train/rescue.hpp>
#include <strata/train/run_actions.hpp>
#include <strata/train/run_plan.hpp>
#include <strata/train/run_record.hpp>
#include <strata/train/session.hpp>
#include <strata/train/step_end.hpp>
#include <strata/train/step_failure.hpp>
#include <strata/train/step_pass.hpp>
#include <strata/train/step_undo.hpp>
#include <strata/train/validate.hpp>
#include <strata/zero/buffers.hpp>
#include <strata/zero/engine_options.hpp>

namespace strata::train {

/// What a trainer does between its first step and its last. Whoever drives it, Trainer::fit() or fit_in_turns(), calls begin()
/// or prepare(), resume_at() and begin_here(), then step() as often as it likes and save() where it says so or where all that
/// go together save, and end(). All calls are collective unless they say otherwise.
///
///   Setup   of the engine
///   Model   outlives it, as do session, engine and options
///   Engine  a zero::Engine
template <class Setup, class Model, class Engine>
class TrainerRun final : public Rescuable {
public:
    using Rule = typename Setup::optimizer::rule;
    using Options = train_options_t<Setup>;

    TrainerRun(Session& session, Model& model, Engine& engine, const Options& options, at::Device device)
        : session_{session},
          model_{model},
          engine_{engine},
          options_{options},
          device_{device},
          checkpoints_{session, model, engine, options.checkpoints_kept},
          undo_{engine, model} {
        record_.report().title = "strata run";
    }

    /// Calls `action` after every `steps`-th step and the last one; 0: after the last one. Local.
    void every(std::int64_t steps, RunActions::Call action) { actions_.add(steps, std::move(action)); }
    /// Whether no step was done since a checkpoint was loaded. Local.
    [[nodiscard]] bool has_just_resumed() const noexcept { return engine_.step_count() == resumed_at_; }
    /// Engine::set_trainable(), between steps.
    void set_trainable(const std::function<bool(std::string_view name)>& trains) {
        checkpoints_.set_trainable(trains, in_step_  ? ChosenWhile::in_a_step
                                           : in_fit_ ? ChosenWhile::after_failure
                                                     : ChosenWhile::between_fits);
    }
    [[nodiscard]] ReportContent& report() noexcept { return record_.report(); }
    /// What it is called beside others: TrainOptions::name.
    [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
    [[nodiscard]] const Options& options() const noexcept { return options_; }
    [[nodiscard]] Session& session() const noexcept { return session_; }

    /// Where it writes. The first call takes the folder. Throws bad_value, output_in_use.
    [[nodiscard]] const std::filesystem::path& folder() {
        if (folder_.empty()) {
            folder_ = session_.take_folder(options_.name);
            checkpoints_.work_in(folder_, options_.reserve_checkpoint_room);
        }
        return folder_;
    }

    // ---- the start -----------------------------------------------------------------------------------------------------

    /// From where the last call ended, else from the newest checkpoint that is whole, else from the start.
    template <class Source>
    void begin(Source& source) {
        prepare(source);
        if (!(std::exchange(ended_well_, false) && is_saved())) resume(checkpoints_.resume(manifest()));
        begin_here(source);
    }

    /// What precedes resuming: puts a failed step back, clears what --fresh is about, and makes the plan.
    template <class Source>
    void prepare(Source& source) {
        if (in_step_ > 0)
            throw Error{Errc::wrong_call_order,
                        "fit() was called inside of a step of the same trainer, by an action of every()",
                        "call it when that fit() has returned, or give it more steps"};
        static_cast<void>(folder());
        auto& comm = session_.comm();
        undo_step();  // of a fit() that failed
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            if (session_.fresh() && !std::exchange(has_begun_, true)) RunRecord::clear(folder_);
            std::filesystem::create_directories(folder_);
        });
        plan_ = {.seed = options_.seed,
                 .ranks = session_.world(),
                 .samples_per_micro_batch = source.samples_per_micro_batch(),
                 .gradient_accumulation_steps = options_.engine.gradient_accumulation_steps,
                 .micro_batches_per_epoch = source.micro_batches_per_epoch(),
                 .precision = precision_name<typename Setup::precision>()};
        if constexpr (requires { checkpoint::Facts{source.identity()}; }) data_ = source.identity();
    }

    /// From the checkpoint of exactly this step, which is whole.
    void resume_at(std::int64_t step) { resume(checkpoints_.resume_at(manifest(), step)); }

    /// Opens the log and moves the source to where engine and samples are.
    template <class Source>
    void begin_here(Source& source) {
        auto& comm = session_.comm();
        comm::agree(comm, [&] {
            if (!engine_.state_is_whole())
                throw Error{
                    Errc::wrong_call_order,
                    "fit() was called after an update that broke off half way, and there is no checkpoint to go back to",
                    "make a new trainer"};
        });
        together_.meet();
        in_fit_ = true;
        if (!std::exchange(log_is_open_, true)) record_.open(comm, folder_, engine_.step_count(), saying());
        record_.begin();
        model_.train();
        StepFailure failure{who()};  // a source may be a program's own
        failure.guard(
            [&] { source.seek(samples_ / plan_.samples_per_step() * options_.engine.gradient_accumulation_steps); });
        end_if_shared(comm, together_, failure);
    }

    /// Keeps room for the first checkpoint, where the options want it.
    void reserve() {
        if (options_.reserve_checkpoint_room) checkpoints_.reserve();
    }

    // ---- steps ---------------------------------------------------------------------------------------------------------

    /// One optimizer step, or one that is skipped. A checkpoint is the caller's to save.
    ///
    ///   last_step  the one this run ends with
    template <class Source>
    StepEnd step(Source& source, std::int64_t last_step) {
        const core::Within in_step{in_step_};
        StepMetrics metrics;
        metrics.learning_rate = options_.schedule.at(engine_.step_count());
        if constexpr (Setup::timing::in_backward) engine_.begin_step(metrics.learning_rate);
        together_.part();  // a rank may lack memory for copies
        undo_.begin();
        static_cast<void>(record_.seconds());  // the first step's begin is the run's
        StepPass pass{session_.comm(),
                      model_,
                      engine_,
                      together_,
                      {.seed = options_.seed,
                       .micro_batches = options_.engine.gradient_accumulation_steps,
                       .device = device_,
                       .who = who(),
                       .explain = [this](const c10::Error& error) {
                           zero::explain_mixed_types(error, zero::tensors_of(model_), parameter_type);
                       }}};
        const StepSums sums = pass.run(
            source, [this] { return session_.stop_requested(); }, [this] { return record_.seconds(); });
        metrics.loss = sums.loss;
        const zero::StepResult result = update(metrics.learning_rate, pass.samples(), std::isfinite(sums.loss));
        samples_ += plan_.samples_per_step();
        undo_.end();
        if (result.skipped) {
            skip(result, pass.samples(), std::isfinite(sums.loss));
            return {.done = false, .stop = sums.stop, .due = false};
        }
        metrics.grad_norm = result.grad_norm;
        metrics.step = engine_.step_count();
        record_.complete(metrics, sums.seconds, plan_);
        return {.done = true, .stop = sums.stop, .due = finish(metrics, sums.stop, last_step)};
    }

    /// Saves a checkpoint and writes the report.
    void save() {
        checkpoints_.save(manifest(), [&] { record_.write_report(); });
    }

    /// After the last step: what the source has to say, and the room is given back.
    template <class Source>
    void end(Source& source) {
        session_.comm().barrier();
        if constexpr (requires { source.closing_lines(session_.comm()); })
            for (const std::string& line : source.closing_lines(session_.comm())) session_.progress().note(line);
        ended_well_ = true;
        in_fit_ = false;
    }
    /// Local.
    void release_room() noexcept { checkpoints_.release_room(); }

    [[nodiscard]] double last_loss() const noexcept { return record_.last().loss; }
    [[nodiscard]] bool are_together() const noexcept { return static_cast<bool>(together_); }
    /// What a failure is of: "step 7 on rank 1", "what follows step 7". Local.
    [[nodiscard]] std::string who() const {
        if (!undo_.in_step()) return "what follows step " + std::to_string(engine_.step_count());
        return "step " + std::to_string(engine_.step_count() + 1) +
               (session_.world() > 1 ? " on rank " + std::to_string(session_.rank()) : "");
    }

    // ---- checkpoints beside those of others: fit_in_turns() ---------------------------------------------------------------

    [[nodiscard]] Checkpoints<Setup, Model, Engine>& checkpoints() noexcept { return checkpoints_; }
    /// What a checkpoint of this trainer says about itself, apart from its files. Local.
    [[nodiscard]] checkpoint::Manifest manifest() const {
        checkpoint::Manifest m;
        m.step = engine_.step_count();
        m.samples = samples_;
        m.seed = options_.seed;
        for (const std::string_view state : Rule::state_names)
            m.update_rule += (m.update_rule.empty() ? "" : ",") + std::string{state};
        checkpoints_.describe_parameters(m);
        m.scalars = engine_.scalars();
        m.plan = plan_.facts();
        m.data = data_;
        m.environment = environment();
        return m;
    }

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

private:
    [[nodiscard]] RunRecord::Say saying() const {
        return [this](const std::string& line) { session_.progress().note(line); };
    }

    /// What a checkpoint says that was loaded; none: from the start.
    void resume(const std::optional<checkpoint::Manifest>& found) {
        log_is_open_ = false;
        if (!found) return;
        samples_ = found->samples;
        resumed_at_ = found->step;
        session_.progress().note("resuming from " + checkpoints_.newest().string() + " (step " +
                                 std::to_string(found->step) + ", " + std::to_string(samples_) + " samples)");
        for (const std::string& line : changes_since(*found, manifest(), plan_)) session_.progress().note(line);
    }

    /// The engine's step. Its errors are of all ranks, but for those of a GPU; what else it throws one rank may meet alone.
    zero::StepResult update(double learning_rate, const StepSamples& samples, bool loss_is_finite) {
        together_.part();
        try {
            norms_ = norms_of_step(engine_, model_, options_.gradient_norms);
            const zero::StepResult result = engine_.step(learning_rate, loss_is_finite);
            together_.meet();
            return result;
        } catch (const Error& error) {
            if (error.code() != Errc::device_failed && error.code() != Errc::not_enough_memory) together_.meet();
            if (error.code() != Errc::non_finite) throw;
            throw Error{error.code(), error.problem() + of_samples(samples, loss_is_finite), error.fix()};
        }
    }

    /// Which samples a step that is not finite saw, as far as batches name them.
    [[nodiscard]] std::string of_samples(const StepSamples& samples, bool loss_is_finite) {
        if constexpr (!NamesItsSamples<typename Model::Batch>) return {};
        std::string text;
        together_.through(
            [&] { text = naming_samples(session_.comm().all_gather_varied(samples.text(loss_is_finite))); });
        return text;
    }

    /// A step that changed nothing: its samples are used up, and nothing is logged under its number yet.
    void skip(const zero::StepResult& result, const StepSamples& samples, bool loss_is_finite) {
        record_.skip();
        std::string why =
            "gradients overflowed at the loss scale " + std::to_string(static_cast<std::int64_t>(result.loss_scale));
        if (result.non_finite) {
            undo_.undo_buffers();
            why = std::string{loss_is_finite ? "its gradient norm" : "its loss"} + " is not finite" +
                  of_samples(samples, loss_is_finite);
        }
        session_.progress().note("step " + std::to_string(result.step + 1) + " is skipped and tried again: " + why);
    }

    /// Logs, and calls what is due; returns whether a checkpoint is.
    [[nodiscard]] bool finish(const StepMetrics& metrics, bool interrupted, std::int64_t last_step) {
        comm::agree(session_.comm(), [&] { record_.append(metrics, std::exchange(norms_, {})); });
        session_.progress().step(metrics, last_step, options_.name);
        if (interrupted && metrics.step != last_step)
            session_.progress().note("asked to stop: saving step " + std::to_string(metrics.step));
        if (!interrupted) actions_.call_due(session_.comm(), together_, who(), metrics, last_step);
        checkpoints_.repeat_choice();
        return is_due(options_.checkpoint_every, metrics.step, last_step);
    }

    static constexpr at::ScalarType parameter_type = zero::detail::dtype_v<typename Setup::precision::element>;

    Session& session_;
    Model& model_;
    Engine& engine_;
    const Options& options_;
    at::Device device_;
    Checkpoints<Setup, Model, Engine> checkpoints_;
    StepUndo<Engine, Setup::averaging::enabled> undo_;
    RunRecord record_;
    std::vector<NamedNorm> norms_;  // of the step under way
    RunActions actions_;
    std::filesystem::path folder_;  // empty until it is taken
    RunPlan plan_;
    checkpoint::Facts data_;
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
