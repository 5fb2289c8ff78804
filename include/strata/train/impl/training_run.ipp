#pragma once
// strata/train/impl/training_run.ipp - what a run does before, between and after the passes of its steps.

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/train/base_weights.hpp>
#include <strata/train/environment.hpp>
#include <strata/train/exported_weights.hpp>
#include <strata/train/gradient_norms.hpp>
#include <strata/train/leftovers.hpp>
#include <strata/train/run_stage.hpp>
#include <strata/train/straggler_note.hpp>
#include <strata/train/training_run.hpp>
#include <strata/zero/buffers.hpp>

namespace strata::train {

STRATA_INLINE TrainingRun::TrainingRun(Session& session, AnyModel& model, AnyEngine& engine, RunSettings settings,
                                       at::Device device)
    : session_{session},
      model_{model},
      engine_{engine},
      settings_{std::move(settings)},
      device_{device},
      checkpoints_{session,
                   model,
                   engine,
                   {.kept = settings_.checkpoints_kept,
                    .averages = settings_.averages,
                    .adapters_alone = settings_.trains_adapters}},
      undo_{engine, model} {
    record_.report().title = "strata run";
}

STRATA_INLINE TrainingRun::~TrainingRun() = default;

STRATA_INLINE void TrainingRun::every(std::int64_t steps, RunActions::Call action) {
    if (steps < 0 || !action)
        throw Error{Errc::bad_value,
                    steps < 0 ? "every(steps, action) was given " + std::to_string(steps) + " steps"
                              : "every(steps, action) was given an empty action",
                    "use 1 step or more, or 0 for the end of the run, and a function to call"};
    actions_.add(steps, std::move(action));
}

STRATA_INLINE void TrainingRun::at_start(RunActions::Call action) {
    if (!action) throw Error{Errc::bad_value, "at_start(action) was given an empty action", "use a function to call"};
    first_actions_.add(0, std::move(action));
}

STRATA_INLINE void TrainingRun::note_samples(const DrawnSamples& samples) {
    comm::agree(session_.comm(), [&] { record_.append(samples); });
    session_.events().samples_drawn(folder_, samples);
}

STRATA_INLINE const std::filesystem::path& TrainingRun::folder() {
    if (folder_.empty()) {
        folder_ = session_.take_folder(settings_.name);
        checkpoints_.work_in(folder_, settings_.reserve_checkpoint_room);
    }
    return folder_;
}

// ---- the start ---------------------------------------------------------------------------------------------------------

STRATA_INLINE RunPlan TrainingRun::plan() const {
    return {.seed = settings_.seed,
            .ranks = session_.world(),
            .gradient_accumulation_steps = settings_.micro_batches,
            .precision = settings_.precision};
}

STRATA_INLINE void TrainingRun::start(const RunPlan& plan) {
    if (in_step_ > 0)
        throw Error{Errc::wrong_call_order,
                    "fit() was called inside of a step of the same trainer, by an action of every()",
                    "call it when that fit() has returned, or give it more steps"};
    static_cast<void>(folder());
    auto& comm = session_.comm();
    undo_step();  // of a fit() that failed
    comm::agree(comm, [&] {
        if (!session_.keeps_output()) return;
        if (session_.fresh() && !has_begun_) clear();
        has_begun_ = true;  // a start that was refused is none
        std::filesystem::create_directories(folder_);
    });
    if (settings_.trains_adapters && base_.empty()) base_ = base_weights_id(session_, model_, engine_);
    plan_ = plan;
}

STRATA_INLINE void TrainingRun::clear() {
    // Weights first: without checkpoints a start without --fresh begins anew, too, and would find them.
    for (const std::filesystem::path& file : remove_leftovers(folder_, settings_.exported, {settings_.begins_with}))
        session_.say(file.string() + " stays as it is until this run is complete");
    RunRecord::clear(folder_);
}

STRATA_INLINE void TrainingRun::find_place() {
    if (!(std::exchange(ended_well_, false) && is_saved())) resume(checkpoints_.resume(manifest()));
}

STRATA_INLINE void TrainingRun::resume(const std::optional<checkpoint::Manifest>& found) {
    log_is_open_ = false;
    if (!found) return;
    samples_ = found->samples;
    resumed_at_ = found->step;
    session_.progress().note("resuming from " + checkpoints_.newest().string() + " (step " +
                             std::to_string(found->step) + ", " + std::to_string(samples_) + " samples)");
    for (const std::string& line : changes_since(*found, manifest(), plan_)) session_.progress().note(line);
    if (const std::string line = base_change(*found, manifest()); !line.empty()) session_.progress().note(line);
}

STRATA_INLINE std::int64_t TrainingRun::open() {
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
    session_.events().training_begins(engine_.step_count(), settings_.max_steps);
    model_.train();
    if (engine_.step_count() == 0) first_actions_.call_due(session_.comm(), together_, who(), StepMetrics{}, 0);
    return next_micro_batch();
}

STRATA_INLINE void TrainingRun::reserve() {
    if (settings_.reserve_checkpoint_room) checkpoints_.reserve();
}

// ---- steps -------------------------------------------------------------------------------------------------------------

STRATA_INLINE double TrainingRun::begin_step() {
    const double learning_rate = settings_.schedule.at(engine_.step_count());
    if (settings_.updates_in_backward) engine_.begin_step(learning_rate);
    together_.part();  // a rank may lack memory for copies
    undo_.begin();
    static_cast<void>(record_.seconds());  // the first step's begin is the run's
    return learning_rate;
}

STRATA_INLINE StepPassSettings TrainingRun::of_passes() {
    return {.seed = settings_.seed,
            .micro_batches = settings_.micro_batches,
            .device = device_,
            .who = who(),
            .explain = [this](const c10::Error& error) {
                zero::explain_mixed_types(error, model_.tensors(), settings_.parameter_type);
            }};
}

STRATA_INLINE StepEnd TrainingRun::end_step(double learning_rate, const StepSums& sums, const StepSamples& samples,
                                            bool names_samples, std::int64_t last_step) {
    StepMetrics metrics;
    metrics.learning_rate = learning_rate;
    metrics.loss = sums.loss;
    const bool is_finite = std::isfinite(sums.loss);
    const zero::StepResult result = update(learning_rate, samples, names_samples, is_finite);
    samples_ += plan_.samples_per_step();
    undo_.end();
    record_.wait(sums.data_wait);
    if (result.skipped) {
        skip(result, samples, names_samples, is_finite);
        compare(sums.ranks);
        return {.done = false, .stop = sums.stop, .due = false, .keep = !sums.stop || keeps_state(last_step)};
    }
    metrics.grad_norm = result.grad_norm;
    metrics.step = engine_.step_count();
    const double before = record_.last().seconds;
    record_.complete(metrics, sums.seconds, plan_, sums.samples);
    step_seconds_ = metrics.seconds - before;
    StepEnd end{.done = true, .stop = sums.stop, .due = finish(metrics, sums.stop, last_step)};
    compare(sums.ranks);
    if (end.stop) end.keep = keeps_state(last_step);
    return end;
}

STRATA_INLINE zero::StepResult TrainingRun::update(double learning_rate, const StepSamples& samples, bool names_samples,
                                                   bool loss_is_finite) {
    together_.part();
    try {
        const zero::StepResult result = work_.measure([&] {
            norms_ = norms_of_step(engine_, model_, settings_.gradient_norms);
            return engine_.step(learning_rate, loss_is_finite);
        });
        together_.meet();
        return result;
    } catch (const Error& error) {
        if (error.code() != Errc::device_failed && error.code() != Errc::not_enough_memory) together_.meet();
        if (error.code() != Errc::non_finite) throw;
        throw Error{error.code(), error.problem() + of_samples(samples, names_samples, loss_is_finite), error.fix()};
    }
}

STRATA_INLINE std::string TrainingRun::of_samples(const StepSamples& samples, bool names_samples, bool loss_is_finite) {
    if (!names_samples) return {};
    std::string text;
    together_.through([&] { text = naming_samples(session_.comm().all_gather_varied(samples.text(loss_is_finite))); });
    return text;
}

STRATA_INLINE void TrainingRun::skip(const zero::StepResult& result, const StepSamples& samples, bool names_samples,
                                     bool loss_is_finite) {
    record_.skip();
    std::string why =
        "gradients overflowed at the loss scale " + std::to_string(static_cast<std::int64_t>(result.loss_scale));
    if (result.non_finite) {
        undo_.undo_buffers();
        why = std::string{loss_is_finite ? "its gradient norm" : "its loss"} + " is not finite" +
              of_samples(samples, names_samples, loss_is_finite);
    }
    session_.progress().note("step " + std::to_string(result.step + 1) + " is skipped and tried again: " + why);
}

STRATA_INLINE std::vector<NamedLoss> TrainingRun::evaluate_due(const StepMetrics& metrics, std::int64_t last_step) {
    try {
        return evaluations_.due(metrics.step, last_step);
    } catch (...) {  // the step is done, whatever becomes of what follows it
        if (are_together() || session_.world() == 1)
            comm::agree(session_.comm(), [&] { record_.append(metrics, std::exchange(norms_, {})); });
        throw;
    }
}

STRATA_INLINE bool TrainingRun::finish(const StepMetrics& metrics, bool interrupted, std::int64_t last_step) {
    std::vector<NamedLoss> losses;
    if (!interrupted && evaluations_.any_due(metrics.step, last_step)) losses = evaluate_due(metrics, last_step);
    comm::agree(session_.comm(), [&] { record_.append(metrics, std::exchange(norms_, {}), losses); });
    for (const NamedLoss& one : losses) session_.progress().note(evaluation_line(metrics.step, one));
    session_.progress().step(metrics, last_step, settings_.name);
    session_.events().step_done(metrics, settings_.max_steps);
    if (!interrupted) actions_.call_due(session_.comm(), together_, who(), metrics, last_step);
    checkpoints_.repeat_choice();
    return is_due(settings_.checkpoint_every, metrics.step, last_step);
}

STRATA_INLINE bool TrainingRun::keeps_state(std::int64_t last_step) {
    if (is_saved()) return true;
    std::string suspicion;
    together_.through([&] {
        for (std::string& one : session_.comm().all_gather_varied(session_.health().suspicion()))
            if (suspicion.empty()) suspicion = std::move(one);
    });
    const std::int64_t before = checkpoints_.newest_step(), lost = step() - before;
    const std::string name = "step " + std::to_string(step());
    const std::string why = "a fault may have spoilt it (" + suspicion + "): ";
    if (suspicion.empty()) {
        if (step() != last_step) session_.progress().note("asked to stop: saving " + name);
        return true;
    }
    if (before < 0) {
        session_.progress().note(name + " is saved, although " + why + "there is no checkpoint of before it");
        return true;
    }
    session_.progress().note(name + " is not saved, because " + why + "the next start goes on from " +
                             newest().string() + " and does " + std::to_string(lost) +
                             (lost == 1 ? " step" : " steps") + " again");
    return false;
}

STRATA_INLINE void TrainingRun::compare(std::span<const RankTimes> ranks) {
    const std::vector<Straggler> changed = stragglers_.add(ranks);
    if (changed.empty()) return;  // on all ranks: they were given the same times
    std::vector<std::string> conditions;
    together_.through([&] {
        conditions = session_.comm().all_gather_varied(RankCondition::here(session_.health().monitor()).text());
    });
    for (const Straggler& one : changed) {
        const StragglerNote note{.step = engine_.step_count(),
                                 .world = session_.world(),
                                 .found = one,
                                 .condition = RankCondition::of_text(conditions[static_cast<std::size_t>(one.rank)])};
        session_.progress().note(note.line());
        comm::agree(session_.comm(), [&] { record_.append(note); });
        session_.events().straggler_found(note);
    }
}

STRATA_INLINE void TrainingRun::tell_of_waiting(core::FunctionRef<std::string()> bottleneck) {
    if (const auto share = data_wait_.add(record_.last().data_wait, step_seconds_))
        session_.progress().note(waiting_text(*share, bottleneck()));
}

// ---- the end -----------------------------------------------------------------------------------------------------------

STRATA_INLINE void TrainingRun::save() {
    session_.events().during(checkpoint_stage, [&] { checkpoints_.save(manifest(), [&] { record_.write_report(); }); });
    session_.events().checkpoint_saved(newest(), engine_.step_count(), engine_.step_count() >= settings_.max_steps);
}

STRATA_INLINE void TrainingRun::end_well(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) session_.progress().note(line);
    // A step that is not saved will be done again: nothing is complete with it.
    const std::int64_t kept = is_saved() ? step() : std::max(checkpoints_.newest_step(), std::int64_t{0});
    if (kept >= settings_.max_steps) export_weights();
    session_.events().training_ends(kept, settings_.max_steps);
    ended_well_ = true;
    in_fit_ = false;
}

STRATA_INLINE void TrainingRun::export_weights() {
    if (!settings_.exported.weights) return;
    ExportedWeights exported;
    session_.events().during(weights_stage, [&] {
        exported = exported_weights(session_, model_, engine_,
                                    {.options = settings_.exported,
                                     .averages = settings_.averages,
                                     .folder = folder_,
                                     .step = engine_.step_count(),
                                     .loss = record_.last().loss,
                                     .adapter = settings_.adapter});
    });
    if (!exported.is_new) return;
    const std::string files = exported.shown();
    session_.progress().note("weights of step " + std::to_string(engine_.step_count()) + ": " + files);
    auto& facts = record_.report().facts;
    std::erase_if(facts, [](const auto& fact) { return fact.first == "weights"; });
    facts.emplace_back("weights", files);
    comm::agree(session_.comm(), [&] {
        if (session_.rank() == 0) record_.write_report();
    });
}

STRATA_INLINE void TrainingRun::end_badly() {
    const std::string whose = who();  // until the step is undone
    const std::string became = rescued(*this, as_error(std::current_exception(), whose).code(), are_together());
    release_room();
    throw_rescued(std::current_exception(), whose, became);
}

STRATA_INLINE std::string TrainingRun::who() const {
    if (!undo_.in_step()) return "what follows step " + std::to_string(engine_.step_count());
    return "step " + std::to_string(engine_.step_count() + 1) +
           (session_.world() > 1 ? " on rank " + std::to_string(session_.rank()) : "");
}

STRATA_INLINE checkpoint::Manifest TrainingRun::manifest() const {
    checkpoint::Manifest m;
    m.step = engine_.step_count();
    m.samples = samples_;
    m.seed = settings_.seed;
    m.update_rule = settings_.state_names;
    checkpoints_.describe_parameters(m);
    m.scalars = engine_.scalars();
    m.plan = plan_.facts();
    m.data = data_;
    m.base = base_;
    m.adapter = settings_.adapter_facts;
    m.environment = environment();
    return m;
}

STRATA_INLINE RunRecord::Say TrainingRun::saying() const {
    return [this](const std::string& line) { session_.progress().note(line); };
}

}  // namespace strata::train
