#pragma once
// strata/train/trainer.hpp - Trainer<Model, Policies...>: batches in, a trained model out.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/checkpoint/checkpoint.hpp>
#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/core/rule.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/batch_source.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/detail/rejected_trainer.hpp>
#include <strata/train/metrics.hpp>
#include <strata/train/options.hpp>
#include <strata/train/report.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/session.hpp>
#include <strata/train/trainable.hpp>
#include <strata/train/unit_rules.hpp>
#include <strata/train/validate.hpp>
#include <strata/zero/engine.hpp>

namespace strata {

/// How a run ended.
struct FitResult {
    std::int64_t step = 0;     ///< optimizer steps done, those of earlier runs included
    double loss = 0;           ///< of the last step done, in this run or an earlier one
    bool interrupted = false;  ///< a stop signal ended it; the checkpoint is there
};

namespace detail {

template <class Setup, class Model, class Compute = train::Compute>
class TrainerBody {
public:
    using setup = Setup;
    using Rule = typename Setup::optimizer::rule;
    using Options = TrainOptions<Rule>;
    using Batch = typename Model::Batch;

    /// In a build with CUDA the model moves to this rank's GPU, part by part, and batches follow it as far as
    /// zero::for_each_tensor() finds their tensors; what it does not find is the model's to move. Rank 0's weights become everyone's. Collective. Throws Error: no_parameters, bad_parameter, bad_value; with
    /// OffloadTarget<Nvme> also bad_reference, no_space, not_enough_memory, io_failed.
    TrainerBody(Session& session, std::shared_ptr<Model> model, Options options)
        : session_{checked(session, options)},
          compute_{session.comm()},
          model_{on_device(std::move(model), compute_)},
          options_{std::move(options)},
          engine_{compute_.comm(), zero::parameters_of(*model_), engine_options(options_), compute_.device()} {
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

    /// Trains to options.max_steps: resumes from the newest checkpoint of the output directory, or starts over
    /// after --fresh. Writes metrics.jsonl, checkpoints/ and report.html there. SIGINT, SIGTERM, SIGHUP
    /// and SIGUSR1 finish the step, save and return.
    ///
    ///   source  this rank's batches
    /// Collective. Throws Error: bad_value, bad_loss, non_finite, corrupt_checkpoint, checkpoint_mismatch, io_failed, no_space.
    template <BatchSource<Batch> Source>
    FitResult fit(Source&& source) {
        comm::agree(session_.comm(), [&] { train::check_source(source); });
        const std::int64_t samples_a_step =
            source.samples_per_micro_batch() * session_.world() * options_.gradient_accumulation_steps;
        start(samples_a_step);
        source.seek(samples_ / samples_a_step * options_.gradient_accumulation_steps);
        const double steps_an_epoch = static_cast<double>(source.micro_batches_per_epoch()) / options_.gradient_accumulation_steps;

        if (engine_.step_count() >= options_.max_steps)
            session_.progress().note("step " + std::to_string(options_.max_steps) +
                                     " is already done: ask for more steps, or start over with --fresh");
        const auto began = Clock::now();
        bool interrupted = false;
        while (engine_.step_count() < options_.max_steps && !interrupted) {
            train::StepMetrics metrics;
            metrics.learning_rate = options_.schedule.at(engine_.step_count());
            const Shared shared = forward_backward(source, began);
            metrics.loss = shared.loss;
            const zero::StepResult result = engine_.step(metrics.learning_rate);
            samples_ += samples_a_step;
            if (result.skipped) {
                skip_step(result, shared.stop);
                interrupted = shared.stop;
                continue;
            }
            metrics.grad_norm = result.grad_norm;
            metrics.step = engine_.step_count();
            metrics.epoch = static_cast<double>(metrics.step) / steps_an_epoch;
            metrics.seconds = seconds_before_ + shared.seconds;
            metrics.samples_per_second = static_cast<double>(samples_a_step) / std::max(1e-9, metrics.seconds - last_.seconds);
            interrupted = shared.stop;
            last_ = metrics;
            finish_step(metrics, interrupted);
        }
        session_.comm().barrier();
        if constexpr (requires { source.closing_lines(session_.comm()); })
            for (const std::string& line : source.closing_lines(session_.comm())) session_.progress().note(line);
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
    static zero::EngineOptions<Rule> engine_options(const Options& options) {
        zero::EngineOptions<Rule> engine;
        if (options.bucket_numel > 0) engine.bucket_numel = options.bucket_numel;
        engine.gradient_accumulation_steps = options.gradient_accumulation_steps;
        engine.max_grad_norm = options.max_grad_norm;
        engine.max_grad_value = options.max_grad_value;
        engine.update = options.update;
        engine.groups = options.groups;
        engine.prefetch_bucket_bytes = options.prefetch_bucket_bytes;
        engine.max_live_parameters = options.max_live_parameters;
        engine.ema = options.ema;
        engine.ema_interval = options.ema_interval;
        engine.loss_scale = options.loss_scale;
        engine.rounding_seed = options.seed;
        engine.nvme_path = options.nvme_path;
        engine.nvme_lock_timeout = options.nvme_lock_timeout;
        engine.nvme.budget_bytes = options.nvme_buffer_bytes;
        return engine;
    }

    [[nodiscard]] std::filesystem::path checkpoints() { return session_.output() / "checkpoints"; }

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
        return m;
    }

    [[nodiscard]] std::vector<checkpoint::NamedTensor> named_buffers() const {
        std::vector<checkpoint::NamedTensor> tensors;
        for (const auto& item : model_->named_buffers()) tensors.push_back({item.key(), item.value()});
        return tensors;
    }

    /// Clears or resumes the output directory and opens the log.
    void start(std::int64_t samples_a_step) {
        auto& comm = session_.comm();
        const std::filesystem::path output = session_.output();
        std::string newest;
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            if (session_.fresh()) {
                std::filesystem::remove_all(checkpoints());
                for (const char* folder : {"samples", "samples_ema"}) std::filesystem::remove_all(output / folder);
                std::filesystem::remove(output / "metrics.jsonl");
                std::filesystem::remove(output / "report.html");
            }
            newest = checkpoint::newest(checkpoints()).value_or("").string();
        });
        newest = comm.all_gather_varied(newest).front();
        if (!newest.empty()) {
            const auto found = checkpoint::open(comm, newest, manifest(), named_buffers());
            checkpoint::StateReader state{newest, found};
            const bool averaged = state.has(zero::average_kind);
            engine_.set_step_count(found.step);
            engine_.restore_scalars(found.scalars);
            engine_.write_state([&](std::string_view kind, std::int64_t begin,
                                    std::span<float> values) { state.read(kind, begin, values); },
                                averaged);
            if constexpr (Setup::averaging::enabled) {
                if (!averaged) {
                    engine_.restart_average();
                    session_.progress().note("the checkpoint has no moving average: it starts anew from the weights");
                }
            }
            samples_ = found.samples;
            session_.progress().note("resuming from " + newest + " (step " + std::to_string(found.step) + ", " +
                                     std::to_string(samples_) + " samples)");
            if (!Setup::precision::scales_loss && samples_ != found.step * samples_a_step)  // fp16 skips steps
                session_.progress().note("the effective batch changed: the data goes on after " + std::to_string(samples_) +
                                         " samples, and what is left of the epoch is dealt anew");
        }
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            log_.emplace(output / "metrics.jsonl", engine_.step_count());
            for (const std::string& note : log_->notes()) session_.progress().note(note);
            if (!log_->history().empty()) last_ = log_->history().back();
            for (const char* folder : {"samples", "samples_ema"})
                for (const train::SampleGrid& grid : train::find_sample_grids(output / folder))
                    if (grid.step > engine_.step_count()) std::filesystem::remove(grid.png);
        });
        comm.broadcast(std::as_writable_bytes(std::span{&last_, 1}), 0);
        seconds_before_ = last_.seconds;
        model_->train();
    }

    /// One optimizer step's micro-batches.
    template <class Source>
    Shared forward_backward(Source& source, Clock::time_point began) {
        auto& comm = session_.comm();
        double sum = 0;
        for (int i = 0; i < options_.gradient_accumulation_steps; ++i) {
            const std::int64_t micro_batch = engine_.step_count() * options_.gradient_accumulation_steps + i;
            train::seed_generators(train::mixed_seed(options_.seed, micro_batch, comm.rank()));
            Batch batch = source.next();
            if (!Compute::Device::is_host) train::move_batch(batch, device());
            const at::Tensor loss = loss_of(batch);
            engine_.backward(loss);
            sum += loss.template item<double>();  // after it: a device computes while backward is queued
        }
        const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
        std::array<double, 3> shared{sum, session_.stop_requested() ? 1.0 : 0.0, comm.rank() == 0 ? seconds : 0.0};
        comm.all_reduce_sum(shared);
        const double mean = shared[0] / (static_cast<double>(comm.world()) * options_.gradient_accumulation_steps);
        if (!std::isfinite(mean))
            throw Error{Errc::non_finite, "the loss of step " + std::to_string(engine_.step_count() + 1) + " is not finite",
                        "lower the learning rate, clip gradients with max_grad_norm, and look for broken samples"};
        return {mean, shared[1] > 0, shared[2]};
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
        auto& comm = session_.comm();
        const bool last = metrics.step == options_.max_steps;
        const auto due = [&](std::int64_t steps) { return last || (steps > 0 && metrics.step % steps == 0); };
        comm::agree(comm, [&] {
            if (log_) log_->append(metrics);
        });
        session_.progress().step(metrics, options_.max_steps);
        if (interrupted && !last) session_.progress().note("asked to stop: saving step " + std::to_string(metrics.step));
        if (!interrupted)
            for (const Action& action : actions_)
                if (due(action.steps)) action.call(metrics);
        if (interrupted || due(options_.checkpoint_every)) save();
    }

    void save() {
        auto& comm = session_.comm();
        auto model = named_buffers();
        for (const auto& item : model_->named_parameters()) model.push_back({item.key(), item.value()});
        const auto read_state = [&](auto&& sink) { engine_.read_state(sink); };
        const auto write_models = [&](const std::filesystem::path& folder) {
            const auto write = [&](std::string_view file) {
                auto record = checkpoint::write_model(comm, folder / file, model,
                                                      [&](const at::Tensor& tensor) { engine_.hold_unit_of(tensor); });
                engine_.drop_units();
                return record;
            };
            std::vector<checkpoint::FileRecord> records{write(checkpoint::model_file)};
            if constexpr (Setup::averaging::enabled) with_average([&] { records.push_back(write(checkpoint::average_file)); });
            return records;
        };
        const auto saved =
            checkpoint::save(comm, checkpoints(), manifest(), engine_.state_outline(), read_state, write_models);
        comm::agree(comm, [&] {
            if (comm.rank() != 0) return;
            checkpoint::keep_newest(checkpoints(), options_.checkpoints_kept);
            report_.history = log_->history();
            report_.grids = train::find_sample_grids(session_.output() / "samples");
            train::write_report(session_.output() / "report.html", report_);
        });
        session_.progress().note("saved " + saved.string());
    }

    Session& session_;
    Compute compute_;
    std::shared_ptr<Model> model_;
    Options options_;
    zero::Engine<Setup, typename Compute::Comm, typename Compute::Device> engine_;
    std::vector<Action> actions_;
    train::ReportContent report_;
    std::optional<train::MetricsLog> log_;  // rank 0
    std::int64_t samples_ = 0;
    train::StepMetrics last_;  // of the last step done, earlier runs included
    double seconds_before_ = 0;
};

template <class Broken, class Model, class... Policies>
struct TrainerOrRejected {
    using type = RejectedTrainer<Broken, Model, TrainerBody<RejectedSetup<Policies...>, StandInModel>>;
};
template <class Model, class... Policies>
struct TrainerOrRejected<rule::None, Model, Policies...> {
    using type = TrainerBody<Setup<Policies...>, Model>;
};

/// What policies name is looked at only when the composition itself holds.
template <class Model, class BrokenSetup, class... Policies>
struct BrokenArgument {
    using type = BrokenSetup;
};
template <class Model, class... Policies>
struct BrokenArgument<Model, rule::None, Policies...> {
    using setup = Setup<Policies...>;
    using type = rule::first_broken_t<rule::OptimizerHasUpdateRule<typename setup::optimizer::rule>,
                                      rule::BackendHasObjectStore<typename setup::backend::store>,
                                      rule::ModelHasUnits<typename setup::sharding, Model>,
                                      rule::RecomputedModelHasUnits<typename setup::recompute, Model>>;
};

template <class Model, class... Policies>
using broken_trainer_rule_t =
    rule::first_broken_t<rule::LossIsATensor<Model>, rule::ModelIsTrainable<Model>,
                         typename BrokenArgument<Model, broken_rule_t<Policies...>, Policies...>::type>;

}  // namespace detail

/// Trains a model with the composition that its policies describe (see Setup for kinds and defaults).
///
///   Model     satisfies Trainable
///   Policies  in any order, at most one of each kind
/// Members are documented at detail::TrainerBody: a constructor from Session, model and Options; fit(source);
/// every(steps, action); model(); report(). A composition that cannot work is one compile error with a fix.
template <class Model, class... Policies>
class Trainer : public detail::TrainerOrRejected<detail::broken_trainer_rule_t<Model, Policies...>, Model, Policies...>::type {
    using Body = typename detail::TrainerOrRejected<detail::broken_trainer_rule_t<Model, Policies...>, Model, Policies...>::type;

public:
    using Body::Body;
};

}  // namespace strata
