#pragma once
// strata/train/detail/trainer_body.hpp - TrainerBody: the training loop of a composition that holds.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/facts.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/rule.hpp>
#include <strata/train/batch_source.hpp>
#include <strata/train/buffer_copies.hpp>
#include <strata/train/checkpoints.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/engine_options.hpp>
#include <strata/train/environment.hpp>
#include <strata/train/fit_result.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/options.hpp>
#include <strata/train/report.hpp>
#include <strata/train/run_log.hpp>
#include <strata/train/run_plan.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/session.hpp>
#include <strata/train/step_failure.hpp>
#include <strata/train/trainable.hpp>
#include <strata/train/validate.hpp>
#include <strata/zero/engine.hpp>

namespace strata::detail {

template <class Setup, class Model, class Compute = train::compute_of_t<Setup>>
class TrainerBody {
public:
    using setup = Setup;
    using Rule = typename Setup::optimizer::rule;
    using Options = TrainOptions<Rule>;
    using Batch = typename Model::Batch;

    /// In a build with CUDA the model moves to this rank's GPU, part by part, and batches follow it as far as
    /// zero::for_each_tensor() finds their tensors; what it does not find is the model's to move. Rank 0's weights become
    /// everyone's. Collective. Throws Error: no_parameters, bad_parameter, bad_value; with OffloadTarget<Nvme> also
    /// bad_reference, no_space, not_enough_memory, swap_in_use, swap_lock_timeout, io_failed.
    TrainerBody(Session& session, std::shared_ptr<Model> model, Options options)
        : session_{checked(session, options)},
          compute_{session.template ranks<typename Compute::Ranks>()},
          model_{on_device(std::move(model), compute_)},
          options_{std::move(options)},
          engine_{compute_.comm(), zero::parameters_of(*model_), train::engine_options(options_), compute_.device()} {
        report_.title = "strata run";
    }
    TrainerBody(Session& session, Model model, Options options)
        : TrainerBody{session, std::make_shared<Model>(std::move(model)), std::move(options)} {}

    /// Calls `action` on all ranks after every `steps`-th optimizer step and after the last one. Call before
    /// fit(). The model is in training mode, its parameters are those after the step.
    ///
    ///   steps  >= 1; 0 calls it after the last step only
    /// Throws bad_value.
    void every(std::int64_t steps, std::function<void(const train::StepMetrics&)> action) {
        if (steps < 0 || !action)
            throw Error{Errc::bad_value,
                        steps < 0 ? "every(steps, action) was given " + std::to_string(steps) + " steps"
                                  : "every(steps, action) was given an empty action",
                        "use 1 step or more, or 0 for the end of the run, and a function to call"};
        actions_.push_back({steps, std::move(action)});
    }

    /// Trains to options.max_steps: resumes from the newest whole checkpoint of its folder, or starts over in the session's
    /// first fit() after --fresh. Writes metrics.jsonl, checkpoints/ and report.html there. SIGINT, SIGTERM, SIGHUP
    /// and SIGUSR1 finish the step, save and return. Where a step fails, saves the state after the last one that was done,
    /// and then throws what failed, with what was saved where; under ZeroStage<3> on several ranks only when all of them
    /// meet it, or it comes from next().
    ///
    ///   source  this rank's batches
    /// Collective. Throws Error: bad_value, bad_loss, non_finite, corrupt_checkpoint, checkpoint_mismatch, io_failed, no_space,
    /// output_in_use, wrong_call_order after an update that broke off half way, step_failed for what is no Error, and what source
    /// and model throw.
    template <BatchSource<Batch> Source>
    FitResult fit(Source&& source) {
        comm::agree(session_.comm(), [&] { train::check_source(source); });
        start(source);
        if (engine_.step_count() >= options_.max_steps)
            session_.progress().note("step " + std::to_string(options_.max_steps) +
                                     " is already done: ask for more steps, or start over with --fresh");
        else if (options_.reserve_checkpoint_room)
            checkpoints_.reserve();
        bool interrupted = false;
        try {
            const auto began = Clock::now();
            while (engine_.step_count() < options_.max_steps && !interrupted) interrupted = step(source, began);
            session_.comm().barrier();
            if constexpr (requires { source.closing_lines(session_.comm()); })
                for (const std::string& line : source.closing_lines(session_.comm())) session_.progress().note(line);
        } catch (...) {
            end_with(std::current_exception());
        }
        checkpoints_.release_room();
        return {engine_.step_count(), last_.loss, interrupted};
    }

    /// One sentence for anything else.
    template <class Source>
    FitResult fit(Source&&) {
        using Broken = rule::first_broken_t<rule::SourceCanBeRead<Source>, rule::SourceMakesTheModelsBatch<Source, Batch>>;
        static_assert(sizeof(typename Broken::Report) > 0);
        return {};
    }

    [[nodiscard]] Model& model() noexcept { return *model_; }

    /// Where the model is, and where its inputs must be: the CPU, or in a build with CUDA this rank's GPU.
    [[nodiscard]] at::Device device() const { return compute_.device().device(); }

    /// Calls `body` while the model has the moving average of its weights: for validation and export. Collective.
    template <class Body>
    void with_average(Body&& body)
        requires(Setup::averaging::enabled)
    {
        engine_.swap_average();
        body();
        engine_.swap_average();
    }

    /// Calls `body` while all parameters are whole on every rank, which ZeroStage<3> needs before one rank can use the
    /// model on its own, and before parameters are read outside of their units. Collective, though `body` need not be.
    template <class Body>
    void with_whole_model(Body&& body) {
        engine_.with_whole_model(std::forward<Body>(body));
    }

    /// Bytes of training state on this rank, by what they hold and where.
    [[nodiscard]] const zero::MemoryMeter& memory() const noexcept { return engine_.memory(); }

    /// Where fit() writes: the output directory, or a folder below it for a trainer with a name. The first call, by whoever
    /// makes it, takes the folder. Throws Error: bad_value, output_in_use. Collective the first time.
    [[nodiscard]] const std::filesystem::path& folder() {
        if (folder_.empty()) {
            folder_ = session_.take_folder(options_.name);
            checkpoints_.work_in(folder_, options_.reserve_checkpoint_room);
        }
        return folder_;
    }

    /// Title, facts and prompts of report.html; the rest is filled in by fit().
    [[nodiscard]] train::ReportContent& report() noexcept { return report_; }

protected:
    struct Rejected {};
    explicit TrainerBody(Rejected);  // declared only: of a composition that was refused, and is never made

private:
    using Clock = std::chrono::steady_clock;
    struct Action {
        std::int64_t steps;
        std::function<void(const train::StepMetrics&)> call;
    };

    /// What all ranks know of a step's micro-batches.
    struct Shared {
        double loss;     // mean over ranks and micro-batches
        bool stop;       // a rank was asked to stop
        double seconds;  // since this run began, by rank 0's clock
    };

    /// Before anything else: looks at the options, on all ranks, and completes them.
    static Session& checked(Session& session, Options& options) {
        comm::agree(session.comm(), [&] { options = train::validate(std::move(options)); });
        session.set_collective_timeout(options.collective_timeout);
        return session;
    }
    static std::shared_ptr<Model> on_device(std::shared_ptr<Model> model, const Compute& compute) {
        if (Compute::Device::is_host) return model;
        const at::Device device = compute.device().device();
        for (at::Tensor& buffer : model->buffers()) buffer.set_data(buffer.to(device));  // the engine moves the parameters
        return model;
    }

    /// What a checkpoint of this trainer says about itself, apart from its files.
    [[nodiscard]] checkpoint::Manifest manifest() const {
        checkpoint::Manifest m;
        m.step = engine_.step_count();
        m.samples = samples_;
        m.seed = options_.seed;
        for (const std::string_view name : Rule::state_names)
            m.update_rule += (m.update_rule.empty() ? "" : ",") + std::string{name};
        m.parameters = engine_.layout();
        m.scalars = engine_.scalars();
        m.plan = plan_.facts();
        m.data = data_;
        m.environment = train::environment();
        return m;
    }

    /// Resumes, or clears what --fresh is about, and opens the log.
    template <class Source>
    void start(Source& source) {
        const std::filesystem::path output = folder();
        auto& comm = session_.comm();
        undo_step();  // of a fit() that failed
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            if (session_.fresh() && !std::exchange(has_begun_, true)) clear(output);
            std::filesystem::create_directories(output);
        });
        plan_ = {.seed = options_.seed,
                 .ranks = session_.world(),
                 .samples_per_micro_batch = source.samples_per_micro_batch(),
                 .gradient_accumulation_steps = options_.gradient_accumulation_steps,
                 .micro_batches_per_epoch = source.micro_batches_per_epoch(),
                 .precision = train::precision_name<typename Setup::precision>()};
        if constexpr (requires { checkpoint::Facts{source.identity()}; }) data_ = source.identity();
        if (const auto found = checkpoints_.resume(manifest())) {
            samples_ = found->samples;
            session_.progress().note("resuming from " + checkpoints_.newest().string() + " (step " +
                                     std::to_string(found->step) + ", " + std::to_string(samples_) + " samples)");
            for (const std::string& line : train::changes_since(*found, manifest(), plan_)) session_.progress().note(line);
        }
        comm::agree(comm, [&] {
            if (!engine_.state_is_whole())
                throw Error{Errc::wrong_call_order,
                            "fit() was called after an update that broke off half way, and there is no checkpoint to go back to",
                            "make a new trainer"};
        });
        together_ = true;
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            for (const std::string& note : log_.open(output, engine_.step_count())) session_.progress().note(note);
            last_ = log_.last();
            for (const char* samples : {"samples", "samples_ema"})
                for (const train::SampleGrid& grid : train::find_sample_grids(output / samples))
                    if (grid.step > engine_.step_count()) std::filesystem::remove(grid.png);
        });
        comm.broadcast(std::as_writable_bytes(std::span{&last_, 1}), 0);
        seconds_before_ = last_.seconds;
        model_->train();
        source.seek(samples_ / plan_.samples_per_step() * options_.gradient_accumulation_steps);
    }

    static void clear(const std::filesystem::path& output) {
        for (const char* name : {"checkpoints", "samples", "samples_ema", "metrics.jsonl", "report.html"})
            std::filesystem::remove_all(output / name);
    }

    /// One optimizer step, or one that fp16 skips; returns whether a stop signal came.
    template <class Source>
    bool step(Source& source, Clock::time_point began) {
        train::StepMetrics metrics;
        metrics.learning_rate = options_.schedule.at(engine_.step_count());
        together_ = false;  // a rank may lack memory for copies
        buffers_.take();
        scalars_before_ = engine_.scalars();
        in_step_ = true;
        const Shared shared = forward_backward(source, began);
        metrics.loss = shared.loss;
        const zero::StepResult result = update(metrics.learning_rate);
        samples_ += plan_.samples_per_step();
        in_step_ = false;
        if (result.skipped) {
            skip_step(result, shared.stop);
            return shared.stop;
        }
        metrics.grad_norm = result.grad_norm;
        metrics.step = engine_.step_count();
        const double steps_an_epoch = static_cast<double>(plan_.micro_batches_per_epoch) / options_.gradient_accumulation_steps;
        metrics.epoch = static_cast<double>(metrics.step) / steps_an_epoch;
        metrics.seconds = seconds_before_ + shared.seconds;
        metrics.samples_per_second = static_cast<double>(plan_.samples_per_step()) / std::max(1e-9, metrics.seconds - last_.seconds);
        last_ = metrics;
        finish_step(metrics, shared.stop);
        return shared.stop;
    }

    /// One optimizer step's micro-batches. A rank that fails says so at the end of the step, when all ranks meet anyway, and
    /// gives zeros for gradients until then. Where forward passes are collective, they meet before each instead.
    template <class Source>
    Shared forward_backward(Source& source, Clock::time_point began) {
        auto& comm = session_.comm();
        train::StepFailure failure{this_step()};
        // What this rank met says more than that it then lost the others.
        const auto with_others = [&](auto&& work) {
            together_ = false;
            try {
                work();
            } catch (...) {
                if (failure) std::rethrow_exception(failure.exception());
                throw;
            }
            together_ = true;
        };
        double sum = 0;
        for (int i = 0; i < options_.gradient_accumulation_steps; ++i) {
            const std::int64_t micro_batch = engine_.step_count() * options_.gradient_accumulation_steps + i;
            train::seed_generators(train::mixed_seed(options_.seed, micro_batch, comm.rank()));
            std::optional<Batch> batch;
            failure.guard([&] {
                batch.emplace(source.next());
                if (!Compute::Device::is_host) train::move_batch(*batch, device());
            });
            if (engine_.gathers_units()) {
                end_if_shared(failure);
                together_ = false;
            } else if (failure) {
                with_others([&] { engine_.backward_without_loss(); });
                continue;
            }
            bool in_backward = false;
            failure.guard([&] {
                const at::Tensor loss = loss_of(*batch);
                in_backward = true;
                engine_.backward(loss);
                sum += loss.template item<double>();  // after it: a device computes while backward is queued
            });
            if (failure && engine_.gathers_units()) std::rethrow_exception(failure.exception());
            if (failure && !in_backward) with_others([&] { engine_.backward_without_loss(); });
        }
        const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
        std::array<double, 4> shared{sum, session_.stop_requested() ? 1.0 : 0.0, comm.rank() == 0 ? seconds : 0.0, failure ? 1.0 : 0.0};
        with_others([&] { comm.all_reduce_sum(shared); });
        if (shared[3] > 0) {
            std::optional<Error> error;
            with_others([&] { error = failure.told(comm); });
            throw *error;
        }
        const double mean = shared[0] / (static_cast<double>(comm.world()) * options_.gradient_accumulation_steps);
        if (!std::isfinite(mean))
            throw Error{Errc::non_finite, "the loss of step " + std::to_string(engine_.step_count() + 1) + " is not finite",
                        "lower the learning rate, clip gradients with max_grad_norm, and look for broken samples"};
        return {mean, shared[1] > 0, shared[2]};
    }

    /// The engine's step. Its errors are of all ranks, but for those of a GPU; what else it throws one rank may meet alone.
    zero::StepResult update(double learning_rate) {
        together_ = false;
        try {
            const zero::StepResult result = engine_.step(learning_rate);
            together_ = true;
            return result;
        } catch (const Error& error) {
            together_ = error.code() != Errc::device_failed && error.code() != Errc::not_enough_memory;
            throw;
        }
    }

    [[nodiscard]] std::string this_step() {
        return "step " + std::to_string(engine_.step_count() + 1) +
               (session_.world() > 1 ? " on rank " + std::to_string(session_.rank()) : "");
    }

    [[nodiscard]] std::string after_step() { return "what follows step " + std::to_string(engine_.step_count()); }

    /// Throws on all ranks what failed on one. Collective, unless ranks no longer come together.
    void end_if_shared(const train::StepFailure& failure) {
        together_ = false;
        const auto error = failure.shared(session_.comm());
        together_ = true;
        if (error) throw *error;
    }

    at::Tensor loss_of(const Batch& batch) {
        try {
            return model_->loss(batch);
        } catch (const c10::Error& error) {
            zero::detail::explain_missing_memory(error);
            if (!Compute::Device::is_host && !zero::holds_tensors_v<Batch>)
                zero::detail::explain_unseen_batch(error, device());
            throw;
        }
    }

    /// A step whose fp16 gradients overflowed: its samples are used up, and nothing is logged under its number.
    void skip_step(const zero::StepResult& result, bool interrupted) {
        session_.progress().note("step " + std::to_string(result.step + 1) + " is skipped and tried again: gradients overflowed at the loss scale " +
                                 std::to_string(static_cast<std::int64_t>(result.loss_scale)));
        if (interrupted) save();
    }

    /// Logs, calls what is due, saves what is due.
    void finish_step(const train::StepMetrics& metrics, bool interrupted) {
        const bool last = metrics.step == options_.max_steps;
        const auto due = [&](std::int64_t steps) { return last || (steps > 0 && metrics.step % steps == 0); };
        comm::agree(session_.comm(), [&] { log_.append(metrics); });
        session_.progress().step(metrics, options_.max_steps);
        if (interrupted && !last) session_.progress().note("asked to stop: saving step " + std::to_string(metrics.step));
        for (const Action& action : actions_) {
            if (interrupted || !due(action.steps)) continue;
            train::StepFailure failure{after_step()};
            failure.guard([&] { action.call(metrics); });
            end_if_shared(failure);
        }
        if (interrupted || due(options_.checkpoint_every)) save();
    }

    void save() {
        checkpoints_.save(manifest(), [&] { log_.report(report_); });
    }

    /// Ends a run whose step failed, and says with the failure what became of the steps before it. Collective if it can be.
    [[noreturn]] void end_with(const std::exception_ptr& failure) {
        const Error error = train::as_error(failure, in_step_ ? this_step() : after_step());
        const Error ended{error.code(), error.problem() + "; " + rescued(error.code()), error.fix()};
        checkpoints_.release_room();
        try {
            std::rethrow_exception(failure);
        } catch (const Error&) {
            throw ended;
        } catch (...) {  // a program may look for an exception of its own
            std::throw_with_nested(ended);
        }
    }

    /// Saves the state after the last step that was done; returns what was saved where, or why it was not.
    std::string rescued(Errc code) {
        const std::int64_t step = engine_.step_count();
        const std::string name = "step " + std::to_string(step);
        if (checkpoints_.is_saved(step)) return name + " is saved in " + checkpoints_.newest().string();
        if (checkpoints_.has_failed(step)) return name + " is not saved, and " + checkpoints_.newest_text();
        std::string reason;
        if (session_.world() > 1 && (!together_ || train::parts_ranks(code))) {
            reason = "the ranks are not at the same place any more";
        } else if (!engine_.state_is_whole()) {
            reason = "the update of its weights broke off half way";
        } else {
            try {
                undo_step();
                if (step == 0) return "no step was done before, so nothing is lost";
                checkpoints_.write(manifest());
                complete_log();
                return name + " is saved in " + checkpoints_.newest().string();
            } catch (const std::exception&) {
                reason = train::as_error(std::current_exception(), "saving it").problem();
            }
        }
        return name + " could not be saved (" + reason + "), and " + checkpoints_.newest_text();
    }

    /// Back to where the last step ended.
    void undo_step() {
        engine_.forget_gradients();
        if constexpr (Setup::averaging::enabled) {
            if (engine_.average_is_in()) engine_.swap_average();
        }
        if (!std::exchange(in_step_, false)) return;
        buffers_.put_back();
        engine_.restore_scalars(scalars_before_);
    }

    /// Gives the log the line that it had no room for, and writes the report. The checkpoint is there whatever becomes of them.
    void complete_log() {
        try {
            log_.complete();
            log_.report(report_);
        } catch (const std::exception& error) {
            session_.progress().note(std::string{"metrics.jsonl or report.html lacks the last steps: "} + error.what());
        }
    }

    [[nodiscard]] std::vector<at::Tensor> buffers() const {
        std::vector<at::Tensor> tensors;
        for (const at::Tensor& buffer : model_->buffers())
            if (buffer.defined()) tensors.push_back(buffer);
        return tensors;
    }

    using Engine = zero::Engine<Setup, typename Compute::Comm, typename Compute::Device>;
    Session& session_;
    Compute compute_;
    std::shared_ptr<Model> model_;
    Options options_;
    Engine engine_;
    train::Checkpoints<Setup, Model, Engine> checkpoints_{session_, *model_, engine_, options_.checkpoints_kept};
    train::BufferCopies buffers_{buffers()};
    std::vector<Action> actions_;
    train::ReportContent report_;
    train::RunLog log_;  // open on rank 0
    std::filesystem::path folder_;  // empty until it is taken
    train::RunPlan plan_;
    checkpoint::Facts data_;
    std::int64_t samples_ = 0;
    train::StepMetrics last_;  // of the last step done, earlier runs included
    double seconds_before_ = 0;
    std::map<std::string, double> scalars_before_;  // the engine's, before this step
    bool in_step_ = false;    // buffers and scalars are not those of the last step done
    bool has_begun_ = false;  // --fresh is done with; rank 0
    bool together_ = true;    // all ranks are at the same place
};

}  // namespace strata::detail
