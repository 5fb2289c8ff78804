#pragma once
// strata/train/detail/trainer_body.hpp - TrainerBody: what a Trainer is, for a composition that holds.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/agree.hpp>
#include <strata/core/rule.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/batch_source.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/drawn_samples.hpp>
#include <strata/train/fit_result.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/named_loss.hpp>
#include <strata/train/options.hpp>
#include <strata/train/report.hpp>
#include <strata/train/run_settings.hpp>
#include <strata/train/run_stage.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/session.hpp>
#include <strata/train/trainable.hpp>
#include <strata/train/trainer_run.hpp>
#include <strata/train/validate.hpp>
#include <strata/train/written_weights.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/zero/engine.hpp>

namespace strata::detail {

template <class Setup, class Model, class Compute = train::compute_of_t<Setup>>
class TrainerBody {
    using Engine = zero::Engine<Setup, typename Compute::Comm, typename Compute::Device>;
    using Run = train::TrainerRun<Model, typename Compute::Device>;

public:
    using setup = Setup;
    using Rule = typename Setup::optimizer::rule;
    using Options = train_options_t<Setup>;
    using Batch = typename Model::Batch;
    static constexpr bool is_rejected = false;

    /// In a build with CUDA the model moves to this rank's GPU, part by part, and batches follow it as far as
    /// zero::for_each_tensor() finds their tensors; what it does not find is the model's to move. Rank 0's weights
    /// and buffers become everyone's. Collective. Throws Error: no_parameters, bad_parameter, bad_value, rank_mismatch; with OffloadTarget<Nvme> also
    /// bad_reference, no_space, not_enough_memory, swap_in_use, swap_lock_timeout, io_failed.
    TrainerBody(Session& session, std::shared_ptr<Model> model, Options options)
        : session_{checked(session, options)},
          compute_{session.template ranks<typename Compute::Ranks>()},
          model_{train::with_buffers_taken(std::move(model), compute_)},
          options_{watched(session, compute_, std::move(options))},
          adapter_{with_adapter(session, *model_, options_)},
          engine_{compute_.comm(), zero::parameters_of(*model_), options_.engine, compute_.device()} {}
    TrainerBody(Session& session, Model model, Options options)
        : TrainerBody{session, std::make_shared<Model>(std::move(model)), std::move(options)} {}

    /// Calls `action` on all ranks after every `steps`-th optimizer step and after the last one. Call before
    /// fit(). The model is in training mode, its parameters are those after the step.
    ///
    ///   steps  >= 1; 0 calls it after the last step only
    /// Throws bad_value.
    void every(std::int64_t steps, std::function<void(const train::StepMetrics&)> action) {
        run_.every(steps, std::move(action));
    }

    /// Calls `action` on all ranks before the first step of a run that begins, with step 0: what is compared with later. A run that resumes
    /// behind a step does without. Call before fit(). Throws bad_value.
    void at_start(std::function<void(const train::StepMetrics&)> action) { run_.at_start(std::move(action)); }

    /// Evaluates a set that is not trained on after every `steps`-th optimizer step and after the last one: the mean loss over an epoch of
    /// `source`, in evaluation mode, from its first micro-batch, with equal randomness each time (train::JudgesItself says what a
    /// model can do about it). In metrics.jsonl it stands in the step's line under "evaluations", with the moving average's, where there is one, as NAME_ema, and with
    /// that of the weights alone beneath adapters as NAME_without_adapter, which is evaluated once where they do not change. In
    /// the report as a curve. Call before fit(). On all ranks alike.
    ///
    ///   steps   >= 1; 0: after the last step only
    ///   name    letters, digits, '_', '-' and '.'
    ///   source  this rank's batches; all ranks have as many. It lives as long as the trainer
    /// Throws Error: bad_value, uneven_batches. Collective.
    template <BatchSource<Batch> Source>
    void evaluate_every(std::int64_t steps, const std::string& name, Source& source) {
        train::check_sources(session_.comm(), source);
        run_.evaluate(steps, name, [this, name, &source] {
            std::vector<train::NamedLoss> losses{{name, run_.evaluated_on(source, name)}};
            if constexpr (Setup::averaging::enabled)
                with_average([&] { losses.push_back({name + "_ema", run_.evaluated_on(source, name)}); });
            if constexpr (Setup::adaptation::enabled) {
                if (!base_losses_.contains(name) || !base_is_frozen())
                    without_adapter([&] { base_losses_[name] = run_.evaluated_on(source, name); });
                losses.push_back({name + "_without_adapter", base_losses_.at(name)});
            }
            return losses;
        });
    }

    /// Trains to options.max_steps: resumes from the newest whole checkpoint of its folder, or starts over in the session's
    /// first fit() after --fresh. Writes metrics.jsonl, checkpoints/ and report.html there. SIGINT, SIGTERM, SIGHUP
    /// and SIGUSR1 finish the step, save and return. Where a step fails, saves the state after the last one that was done,
    /// and then throws what failed, with what was saved where; under ZeroStage<3> on several ranks only when all of them
    /// meet it, or it comes from next().
    ///
    ///   source  this rank's batches
    /// Collective. Throws Error: bad_value, uneven_batches, bad_loss, non_finite, corrupt_checkpoint, checkpoint_mismatch, io_failed,
    /// no_space, output_in_use, wrong_call_order after an update that broke off half way, step_failed for what is no Error, and what
    /// source and model throw.
    template <BatchSource<Batch> Source>
    FitResult fit(Source&& source) {
        const std::int64_t last_step = std::max(asked_for_, options_.max_steps);
        train::check_sources(session_.comm(), source);
        run_.begin(source);
        if (run_.step() >= last_step)
            session_.progress().note("step " + std::to_string(last_step) +
                                     " is already done: ask for more steps, or start over with --fresh");
        return train_to(last_step, source);
    }

    /// The same for more steps: as many as all calls together have asked for, fit(source) for max_steps. Steps of earlier runs
    /// count, so that a program that is started again goes the same way: a call whose steps are done returns at once. Each call
    /// that trains ends with a checkpoint; for single steps of several trainers there is fit_in_turns().
    ///
    ///   steps  >= 1; beyond max_steps the schedule's total_steps must say so where its rate would rise again
    template <BatchSource<Batch> Source>
    FitResult fit(Source&& source, std::int64_t steps) {
        const std::int64_t last_step = asked_for_ + steps;
        comm::agree(session_.comm(),
                    [&] { train::check_more_steps(options_.schedule, options_.max_steps, steps, last_step); });
        train::check_sources(session_.comm(), source);
        run_.begin(source);
        return train_to(last_step, source);
    }

    /// One sentence for anything else.
    template <class Source>
    FitResult fit(Source&&) {
        using Broken =
            rule::first_broken_t<rule::SourceCanBeRead<Source>, rule::SourceMakesTheModelsBatch<Source, Batch>>;
        static_assert(sizeof(typename Broken::Report) > 0);
        return {};
    }
    template <class Source>
    FitResult fit(Source&& source, std::int64_t) {
        return fit(std::forward<Source>(source));
    }

    /// Trains the parameters for whose names `trains` is true from the next step on, and freezes the others: before fit(),
    /// between its calls, or in an action of every(). The function is asked on every rank, for every parameter of the model,
    /// and says the same everywhere. Collective.
    ///
    /// What was trained before keeps its optimizer state and average, bit for bit; what was not starts with its values as they
    /// are; what no longer is keeps its values, and its state is given up. Steps and schedule go on. Checkpoints say what is
    /// trained, and a run that resumes trains that. So a program that is started again does what it did before: a call after fits
    /// that asked for fewer steps than the checkpoint has is of the past, and changes nothing; nor does one after a fit() that a
    /// signal ended before its steps were done. Steps that are done again after a fit() that failed have the choices they had;
    /// one that is made after the failure holds from where the next fit() resumes.
    ///
    /// Throws Error: rank_mismatch, no_parameters, bad_parameter, bad_value, wrong_call_order in the middle of a step, and what
    /// `trains` throws, after all of which nothing has changed; not_enough_memory, no_space, io_failed, of which
    /// zero::Engine::set_trainable() says what they end, and what the call costs.
    void set_trainable(const std::function<bool(std::string_view name)>& trains) {
        if (run_.has_just_resumed() && run_.step() > asked_for_) {
            session_.progress().note("set_trainable() for the steps after step " + std::to_string(asked_for_) +
                                     " changes nothing: the run resumed after them");
            return;
        }
        if (cut_short_) {  // what is to be trained after a fit() that did not come to its end
            session_.progress().note("set_trainable() changes nothing: the run was stopped before that step");
            return;
        }
        run_.set_trainable(trains);
    }

    [[nodiscard]] Model& model() noexcept { return *model_; }

    /// The adapters that are trained in place of the model's weights: which layers have one, and what merges them. Only with Adapter<Kind>.
    [[nodiscard]] auto& adapted() noexcept requires(Setup::adaptation::enabled) { return adapter_.adapted(); }

    /// Calls `body` while the model computes as it did before it had adapters: what is drawn or evaluated in it is the frozen model's. Local,
    /// though under ZeroStage<3> calls of the model are not. Only with Adapter<Kind>.
    template <class Body>
    void without_adapter(Body&& body) requires(Setup::adaptation::enabled) {
        const auto off = adapter_.off();
        std::forward<Body>(body)();
    }

    /// Whether the model without its adapters stays what it is: set_trainable() may say otherwise. Local. Only with Adapter<Kind>.
    [[nodiscard]] bool base_is_frozen() requires(Setup::adaptation::enabled) {
        return adapter_.adapted().base_is_frozen(*model_);
    }

    /// Where the model is, and where its inputs must be: the CPU, or in a build with CUDA this rank's GPU.
    [[nodiscard]] at::Device device() const { return compute_.device().device(); }

    /// Calls `body` while the model has the moving average of its weights: for validation and export. Collective. What `body` throws
    /// on a rank is thrown there, with the weights back in their place.
    template <class Body>
    void with_average(Body&& body) requires(Setup::averaging::enabled) {
        engine_.swap_average();
        try {
            body();
        } catch (...) {  // the other ranks may be through, and swap back
            try {
                engine_.swap_average();
            } catch (const std::exception&) {  // what `body` threw says more
            }
            throw;
        }
        engine_.swap_average();
    }

    /// Calls `body` while all parameters are whole on every rank, which ZeroStage<3> needs before one rank can use the
    /// model on its own, and before parameters are read outside of their units. Collective, though `body` need not be.
    template <class Body>
    void with_whole_model(Body&& body) {
        engine_.with_whole_model(std::forward<Body>(body));
    }

    /// Writes the model's weights and buffers into a safetensors file under their own names, or into shards and an index, as other programs
    /// read them: at every stage, tensor by tensor, while its unit is gathered; rank 0 writes. They are what the model computes with, also where
    /// options.dtype asks for more digits; options.average takes the moving average instead. Between steps. Returns what was written, on rank 0.
    /// Collective. Throws what weights::save_weights() throws, and bad_value where an average is asked for and there is none.
    std::vector<std::filesystem::path> save_weights(const std::filesystem::path& path,
                                                    const weights::SaveOptions& options = {}) {
        return train::write_weights(session_, any_model_, any_engine_, Setup::averaging::enabled, path, options);
    }

    /// Bytes of training state on this rank, by what they hold and where.
    [[nodiscard]] const zero::MemoryMeter& memory() const noexcept { return engine_.memory(); }

    /// Where fit() writes: the output directory, or a folder below it for a trainer with a name. The first call, by whoever
    /// makes it, takes the folder. Throws Error: bad_value, output_in_use. Collective the first time.
    [[nodiscard]] const std::filesystem::path& folder() { return run_.folder(); }

    /// A line of metrics.jsonl on pictures that were drawn after a step, or before the first: what a Gallery writes. In an action of every() or
    /// at_start(). Collective. Throws Error: io_failed, no_space.
    void note_samples(const train::DrawnSamples& samples) { run_.note_samples(samples); }

    /// Title, facts and prompts of report.html; the rest is filled in by fit().
    [[nodiscard]] train::ReportContent& report() noexcept { return run_.report(); }

    /// Its steps one by one, for what drives several trainers: fit_in_turns().
    [[nodiscard]] Run& run() noexcept { return run_; }

protected:
    struct Rejected {};
    explicit TrainerBody(Rejected);  // declared only: of a composition that was refused, and is never made

private:
    /// Before anything else: looks at the options, on all ranks, and completes them.
    static Session& checked(Session& session, Options& options) {
        comm::agree(session.comm(), [&] {
            train::complete(options);
            if constexpr (Setup::timing::in_backward) train::refuse_gradient_norms(options.gradient_norms);
        });
        session.set_collective_timeout(options.collective_timeout);
        session.events().stage_begins(train::model_stage);  // whose files the engine reads, unit by unit
        return session;
    }

    /// From now on a fault of the GPU that it computes on, or of its host, is seen, and a disk that state is offloaded to and that fills up.
    static Options watched(Session& session, Compute& compute, Options options) {
        const at::Device device = compute.device().device();
        std::vector<std::filesystem::path> folders;
        if (!options.engine.tiers.nvme_path.empty()) folders.push_back(options.engine.tiers.nvme_path);
        session.watch_health(options.health,
                             device.is_cuda() ? std::optional{static_cast<unsigned>(device.index())} : std::nullopt,
                             std::move(folders));
        return options;
    }

    static typename Setup::adaptation::work with_adapter(Session& session, Model& model, const Options& options) {
        std::optional<typename Setup::adaptation::work> made;
        // What was drawn before depends on what a program did: a run that finds its caches full loads no encoders.
        if constexpr (Setup::adaptation::enabled) train::seed_generators(options.seed);
        comm::agree(session.comm(), [&] { made.emplace(model, options.adapter); });
        if constexpr (Setup::adaptation::enabled)
            if (session.rank() == 0 && !made->begins_with().empty())
                session.progress().note("adapters begin with " + made->begins_with());
        return std::move(*made);
    }

    template <class Source>
    FitResult train_to(std::int64_t last_step, Source& source) {
        const FitResult result = run_.train_to(last_step, source);
        if (result.step >= last_step) asked_for_ = last_step;
        cut_short_ = result.interrupted && result.step < last_step;
        return result;
    }

    Session& session_;
    Compute compute_;
    std::shared_ptr<Model> model_;
    Options options_;
    [[no_unique_address]] typename Setup::adaptation::work adapter_;
    Engine engine_;
    std::map<std::string, double> base_losses_;  // of evaluations without adapters, by the name of the set
    train::ModelOf<Model> any_model_{*model_};
    train::EngineOf<Engine> any_engine_{engine_};
    Run run_{session_, *model_, any_model_, any_engine_, train::run_settings<Setup>(options_), device()};
    std::int64_t asked_for_ = 0;  // steps in all, of calls that ended
    bool cut_short_ = false;      // the last call was stopped before its steps were done
};

}  // namespace strata::detail
