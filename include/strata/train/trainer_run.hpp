#pragma once
// strata/train/trainer_run.hpp - TrainerRun: one trainer's steps, one by one, for a source of its model's batches.

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/facts.hpp>
#include <strata/comm/any_comm.hpp>
#include <strata/core/within.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/evaluation.hpp>
#include <strata/train/fit_result.hpp>
#include <strata/train/ranks_together.hpp>
#include <strata/train/run_plan.hpp>
#include <strata/train/run_settings.hpp>
#include <strata/train/session.hpp>
#include <strata/train/step_end.hpp>
#include <strata/train/step_failure.hpp>
#include <strata/train/step_pass.hpp>
#include <strata/train/step_samples.hpp>
#include <strata/train/training_run.hpp>

namespace strata::train {

/// What a trainer does between its first step and its last. Whoever drives it, Trainer::fit() or fit_in_turns(), calls begin()
/// or prepare(), resume_at() and begin_here(), then step() as often as it likes and save() where it says so or where all that
/// go together save, and end(). All calls are collective unless they say otherwise. Compiled once for all compositions that train
/// a model on a device.
///
///   Model    outlives it, as do session and engine
///   Compute  where the engine computes
template <class Model, class Compute>
class TrainerRun final : public TrainingRun {
public:
    using Engine = AnyEngineOn<Compute>;

    ///   any_model  the same model
    ///   settings   of the composition and its options
    TrainerRun(Session& session, Model& model, AnyModel& any_model, Engine& engine, RunSettings settings,
               at::Device device)
        : TrainingRun{session, any_model, engine, std::move(settings), device}, model_{model}, engine_{engine} {}

    /// From where the last call ended, else from the newest checkpoint that is whole, else from the start.
    template <class Source>
    void begin(Source& source) {
        prepare(source);
        find_place();
        begin_here(source);
    }

    /// What precedes resuming: puts a failed step back, clears what --fresh is about, and makes the plan.
    template <class Source>
    void prepare(Source& source) {
        RunPlan its_plan = plan();
        its_plan.samples_per_micro_batch = source.samples_per_micro_batch();
        its_plan.micro_batches_per_epoch = source.micro_batches_per_epoch();
        start(its_plan);
        if constexpr (requires { checkpoint::Facts{source.identity()}; }) set_data(source.identity());
    }

    /// Opens the log and moves the source to where engine and samples are.
    template <class Source>
    void begin_here(Source& source) {
        const std::int64_t micro_batch = open();
        StepFailure failure{who()};  // a source may be a program's own
        failure.guard([&] { source.seek(micro_batch); });
        end_if_shared(session().comm(), together(), failure);
    }

    /// One optimizer step, or one that is skipped. A checkpoint is the caller's to save.
    ///
    ///   last_step  the one this run ends with
    template <class Source>
    StepEnd step(Source& source, std::int64_t last_step) {
        const core::Within under_way{steps_under_way()};
        const double learning_rate = begin_step();
        StepPass<comm::AnyComm, Model, Engine> pass{session().comm(), model_, engine_, together(), of_passes()};
        StepSums sums = work().measure([&] {
            return pass.run(
                source, [this] { return session().stop_requested(); }, [this] { return record().seconds(); },
                [this] { return Compute::is_host ? work().take() : std::numeric_limits<double>::quiet_NaN(); });
        });
        if constexpr (CountsItsSamples<Source>)  // one step is of one data set, which has the same batch on all ranks
            for (int i = 0; i < settings().micro_batches; ++i)
                sums.samples += source.samples_in(next_micro_batch() + i) * session().world();
        const StepEnd end =
            end_step(learning_rate, sums, pass.samples(), NamesItsSamples<typename Model::Batch>, last_step);
        if (end.done)
            tell_of_waiting([&]() -> std::string {
                if constexpr (requires { std::string{source.bottleneck()}; })
                    return std::string{source.bottleneck()};
                else
                    return {};
            });
        return end;
    }
    using TrainingRun::step;

    using TrainingRun::save;
    /// A checkpoint, and what the source found out is kept for later runs.
    template <class Source>
    void save(Source& source) {
        save();
        if constexpr (requires { source.remember(session().comm()); }) source.remember(session().comm());
    }

    /// Steps until `last_step` is done or a stop signal came, with checkpoints where they are due; then end(), or what is thrown,
    /// with what was saved.
    template <class Source>
    FitResult train_to(std::int64_t last_step, Source& source) {
        if (step() < last_step) reserve();
        bool stopped = false;
        try {
            while (step() < last_step && !stopped) {
                const StepEnd one = step(source, last_step);
                stopped = one.stop;
                if (one.keep && (one.stop || one.due)) save(source);
            }
            end(source);
        } catch (...) {
            end_badly();
        }
        release_room();
        return {step(), last_loss(), stopped};
    }

    /// The mean loss over an epoch of a source that is not trained on; see evaluated().
    template <class Source>
    [[nodiscard]] double evaluated_on(Source& source, const std::string& name) {
        return evaluated(session().comm(), model_, source, together(),
                         {.seed = settings().seed,
                          .device = of_passes().device,
                          .gathers_units = engine_.gathers_units(),
                          .who = "the evaluation of '" + name + "'"});
    }

    /// After the last step: what the source has to say.
    template <class Source>
    void end(Source& source) {
        session().comm().barrier();
        if constexpr (requires { source.closing_lines(session().comm()); })
            end_well(source.closing_lines(session().comm()));
        else
            end_well({});
    }

private:
    Model& model_;
    Engine& engine_;
};

}  // namespace strata::train
