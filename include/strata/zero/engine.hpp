#pragma once
// strata/zero/engine.hpp - Engine: backward passes become one optimizer step over all ranks.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/core/kept_blocks.hpp>
#include <strata/core/within.hpp>
#include <strata/optim/clip.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/engine_works.hpp>
#include <strata/zero/parts/gradient_view.hpp>
#include <strata/zero/parts/state_carry.hpp>
#include <strata/zero/parts/step_verdict.hpp>
#include <strata/zero/parts/trainable_change.hpp>
#include <strata/zero/state.hpp>

namespace strata::zero {

/// Data-parallel training with sharded state: ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054).
///
///   Engine<Setup<ZeroStage<2>>, comm::SelfComm> engine{comm, parameters_of(*model), {}};
///   engine.backward(model->loss(batch));     // gradient_accumulation_steps times
///   engine.step(1e-4);
///
/// All stages share one layout (zero/layout.hpp), reduce every micro-batch by the same sums in rank order, and form
/// norms from the same partial sums; they therefore give the same bits, unless reduce_once_a_step says otherwise. What differs is what a
/// rank keeps, in elements for P parameters:
///
///   stage   parameters                 gradients                      master and state
///   0       P                          P                              P each
///   1       P                          P                              P/W each
///   2       P                          P/W and the buckets in flight  P/W each
///   3       P/W and the units in use   P/W and the buckets in flight  P/W each
///
/// memory() counts them. OffloadTarget<Tier, Gradients> moves the P/W of gradients to a tier, and with Update<InBackward> there are
/// only the buckets in flight, at every stage: a bucket is updated, with the same bits, as soon as it is reduced.
///
///   engine.begin_step(1e-4);                  // Update<InBackward> alone wants to know the rate so early
///   engine.backward(model->loss(batch));
///   engine.step(1e-4);
///
/// Gradients have the parameters' type, but fp16 ones are collected in fp32, because ranks add up in fp32; with several
/// micro-batches a step they add up in fp32, P/W more. The model keeps its tensors: they become views of the engine's
/// buckets. While an engine lives, do not convert or move the model. After it they stay valid, but for the units of
/// stage 3, whose parameters go with it. Parameters that excepted_parameters names keep the other format of
/// Precision<Format, Except<Other>>, with gradients and state of that.
///
/// Buckets are reduced on a thread of the engine's own while backward goes on, and updated weights are gathered while
/// the next bucket is updated. When backward(), step() or write_state() returns, nothing is under way: between them
/// the communicator is the caller's, but for forward passes at stage 3, which are collective: without gradients every rank
/// calls the same units in the same order; with them a rank may leave a unit out, and takes part in gathering it for the others
/// until all have ended backward(), where it gives zeros for its gradient. Of two engines of one communicator every rank calls the
/// models in one order; options.name is what a message calls them by. Parameters outside of units are whole on every rank at stage 3
/// too; frozen ones inside of units are sharded like the others. In a world of one nothing needs to be gathered, and
/// stage 3 leaves units whole, unless the tier of their shards gathers them alone too, as Nvme does, or frozen weights are quantised.
///
/// With FrozenWeights<Format> the frozen parameters of a unit are bytes: matrices as the format's codec makes them, others as they are. Rank 0's
/// values are quantised once; bytes are sharded and gathered, and dequantised into the unit that is whole. Throws bad_parameter for a
/// matrix that holds what is not finite.
///
/// Masters and states are kept by the class `state` of the tier of OffloadTarget<Tier>, and shards of units by the class
/// `shards` of the tier of OffloadTarget<Tier, Parameters>: docs/offload.md, and zero/tier.hpp for a tier of one's own. No
/// tier changes a bit, except under rules with norms of whole parameters (Lamb), whose sums are formed run by run. What fails
/// on one rank only, a disk, is reported on all ranks by the pass that meets it; weights then differ between ranks, and
/// the run is over.
///
/// Recompute<Blocks> keeps no activations inside of units (zero/unit.hpp). Ema<...> keeps an average of the weights in
/// fp32, sharded like the state at every stage: 4 bytes a parameter over all ranks together.
///
/// On another device than the CPU weights, gradients and gathered units are in its memory. The update runs where the state
/// is, on the device or the host. A model on the CPU is moved bucket by bucket. A communicator that knows host memory only
/// exchanges copies. The bits are those of the CPU as far as the forward and backward passes are.
///
///   Setup    strata::Setup<...>; all policies but the backend are read. On the CPU OffloadTarget<Cpu> and
///            OffloadTarget<Device> are the same memory.
///   Comm     outlives the engine
///   Compute  where the model computes
template <class Setup, comm::Communicator Comm, ComputeDevice Compute = CpuDevice>
class Engine {
public:
    using Rule = typename Setup::optimizer::rule;
    using Options = engine_options_t<Setup>;
    using compute_device = Compute;

    /// Takes over the parameters that require a gradient: they get the values of rank 0, in the setup's precision.
    /// Frozen ones get both too, and are otherwise left alone outside of units. Collective.
    ///
    /// Throws no_parameters, bad_parameter, bad_value, not_enough_memory, and rank_mismatch when ranks have different
    /// models or options; where a tier keeps files also bad_reference, no_space, swap_in_use, swap_lock_timeout and io_failed.
    Engine(Comm& comm, std::vector<Parameter> parameters, Options options = {}, Compute compute = {})
        : works_{std::make_unique<Works>(comm, std::move(parameters), std::move(options), std::move(compute))},
          pool_{works_->parts.pool} {}
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine() = default;

    /// Says with which learning rate the step is made whose backward passes come now. Update<InBackward> wants it before them;
    /// otherwise step() says it early enough. Local. Throws bad_learning_rate.
    void begin_step(double lr) {
        check_rate(lr);
        if (works().early) works().early->begin_step(lr);
    }

    /// Backpropagates the loss of one micro-batch and adds its gradients to this rank's share of their sum. Collective.
    ///
    ///   loss  this rank's mean loss; one element. Divided here by the number of micro-batches, and scaled for fp16.
    /// Parameters that the loss does not reach have gradient zero. Throws bad_loss, bad_parameter, wrong_call_order. Where units are
    /// not gathered, a rank whose pass throws has done its part for the others: it may throw alone, and they do not wait.
    ///
    /// With Update<InBackward> weights change in it, a bucket as soon as its gradients are sums over ranks; begin_step() comes
    /// first. When it throws or meets gradients that are not finite, some may be those after the step: state_is_whole() tells.
    void backward(const at::Tensor& loss) {
        works().passes.check_not_spoiled("backward()");
        begin_backward();
        works().passes.run(loss);
    }

    /// backward() of a rank that has no loss, for it failed: its gradients are zeros, so that the others need not wait for
    /// it, and what comes of them is of no use. Collective with their backward(). Not where units are gathered.
    void backward_without_loss() {
        begin_backward();
        works().passes.run_without_loss();
    }

    /// Forgets the gradients since the last step: backward() begins anew. After a pass that threw, or for a step that is not
    /// to be made. When backward() threw after other micro-batches of the step, their gradients are mixed with what it
    /// left, and backward() and step() throw wrong_call_order until this was called; so do they on a rank of several whose
    /// pass threw, for what it gave the others. On all ranks; exchanges nothing.
    void discard_step() { works().passes.discard_step(); }

    /// Between the last backward() of a step and step(): calls body(const GradientPiece&) for every parameter that this rank's
    /// share has elements of. What it writes to a piece is what step() uses. Local. Throws wrong_call_order.
    template <class Body>
    void for_each_gradient(Body&& body) {
        const at::NoGradGuard no_grad;
        gradients("for_each_gradient()").for_each(body);
    }
    /// There, too: the 2-norm of every parameter's mean gradient, in the order of layout(), before clipping. Collective.
    /// Throws wrong_call_order.
    [[nodiscard]] std::vector<double> gradient_norms() {
        const at::NoGradGuard no_grad;
        return gradients("gradient_norms()").norms();
    }

    /// Whether weights and state are those after step_count() steps: false when an update or write_state() threw half way.
    /// With Update<InBackward> also from the first bucket of a backward pass to the end of step().
    [[nodiscard]] bool state_is_whole() const noexcept { return state_is_whole_ && !has_begun_early(); }
    /// Whether units are whole only while they compute, so that forward passes are collective.
    [[nodiscard]] bool gathers_units() const noexcept { return works_ && works_->parts.gathers(); }

    /// Clips, updates and shares the weights, after gradient_accumulation_steps calls of backward(). Collective.
    ///
    ///   loss_is_finite  false: a rank's loss was not, and the step ends as if its gradients were not; the same on every rank
    /// Throws non_finite on all ranks when the gradient norm is, unless the options say OnNonFinite::skip; weights and state are
    /// then unchanged. With fp16 such a step is skipped in any case, on all ranks, and the loss scale falls; loss_scale_exhausted
    /// when it cannot. Also wrong_call_order, and what a tier's disk meets.
    ///
    /// With Update<InBackward> the update is done already: this ends the step, with the rate that begin_step() was given.
    StepResult step(double lr, bool loss_is_finite = true) {
        check_step(lr);
        works().parts.gradients.start_step();
        const at::NoGradGuard no_grad;
        if constexpr (Works::Parts::Settings::updates_in_backward) return end_step(loss_is_finite);
        const StepResult result = verdict_on_step(
            step_count_ + 1, loss_is_finite, [&] { return works().norm(works().parts.gradients); }, works().scaler,
            works().non_finite);
        if (result.skipped) return result;
        begin_update(lr, optim::clip_coefficient(result.grad_norm, works().parts.options.max_grad_norm),
                     result.loss_scale);
        state_is_whole_ = false;
        works().update.run(works().parts.groups);
        works().parts.end_pass();
        weights_changed();
        state_is_whole_ = true;
        core::kept_blocks().start_period();
        ++step_count_;
        return result;
    }

    /// Gathers the unit that a parameter, frozen or not, belongs to, and drops the one of the call before; nothing for
    /// parameters that are whole anyway. For reading all parameters one after the other without having them all. Between
    /// passes. Collective.
    void hold_unit_of(const at::Tensor& parameter) { works().parts.hold_unit_of(parameter); }
    /// Drops what hold_unit_of() has gathered.
    void drop_units() {
        if (works().parts.gathers()) works().parts.gathering->drop_all();
    }

    /// Calls `body` while all parameters are whole, so that a rank may use the model on its own in it. Memory for all
    /// of them is needed. Parameters that all ranks write in it keep what they wrote, master weights included; on each the
    /// values of the rank that owns them, of frozen ones rank 0's. Between passes. Collective, though `body` need not be.
    ///
    /// What `body` throws on a rank is thrown there, and nothing that was written is kept. Throws bad_parameter on all ranks
    /// when some wrote a parameter and others did not, after which the run is over; wrong_call_order when one was written
    /// while the average is in its place.
    template <class Body>
    void with_whole_model(Body&& body) {
        const core::Within lent{lent_};
        works().whole.lend([&] { std::forward<Body>(body)(); },
                           [this] { begin_call("writing parameters of a whole model"); });
    }

    /// Puts the average of the weights in their place, and back: for validation and export. In between backward(),
    /// step(), read_state() and write_state() throw wrong_call_order. Collective. Only with Ema<...>.
    void swap_average() requires(Setup::averaging::enabled) {
        const at::NoGradGuard no_grad;
        works().parts.exchange.wait();
        works().swap->swap();
        works().parts.failure.tell(works().parts.exchange);
        works().swap->done();
        weights_changed();
    }
    [[nodiscard]] bool average_is_in() const noexcept { return works_ && works_->swap && works_->swap->is_in(); }
    /// Makes the average that of the weights as they are, for a checkpoint without one. Collective.
    void restart_average() requires(Setup::averaging::enabled) {
        const at::NoGradGuard no_grad;
        works().parts.exchange.wait();
        works().swap->restart();
        works().parts.failure.tell(works().parts.exchange);
    }

    /// The runs of this rank's state, between two steps: the weights, the update rule's states, and with Ema<...> the
    /// average. Stage 0, which has all of it, shows the same share as the other stages. Local.
    [[nodiscard]] std::vector<StateOutline> state_outline() const { return works().transfer.outline(); }

    /// Calls sink(std::string_view kind, std::int64_t begin, std::span<const float> values) with all parts of these runs,
    /// kind by kind in each part of the model; a part is in memory during the call only. Local. Throws wrong_call_order,
    /// and what the disk meets.
    template <class Sink>
    void read_state(Sink&& sink) {
        begin_call("read_state()");
        const core::Within lent{lent_};
        works().transfer.read(std::ref(sink));
    }

    /// Calls source(std::string_view kind, std::int64_t begin, std::span<float> values) to fill the same parts anew, and
    /// makes that take effect on all ranks. Collective, though `source` is not. Throws on all ranks what `source` threw on
    /// one, after which the run is over.
    ///
    ///   average  false: the average is not asked for
    template <class Source>
    void write_state(Source&& source, bool average = true) {
        begin_call("write_state()");
        const core::Within lent{lent_};
        const at::NoGradGuard no_grad;
        works().parts.gradients.start_step();
        state_is_whole_ = false;
        works().transfer.write(std::ref(source), average);
        works().parts.end_pass();
        weights_changed();
        if (works().early) works().early->end_step();
        state_is_whole_ = true;
    }

    /// Trains the parameters for whose names `trains` is true from the next step on, and freezes the others. Collective,
    /// between two steps; `trains` is asked for every parameter that the engine was given, and says the same on every rank.
    ///
    /// Parameters that were trained before keep masters, states and average, bit for bit, and step_count() goes on. Those that
    /// were not start as at the engine's beginning: masters and average from their values, and the rule's initial states. Those
    /// that no longer are keep the values that the model computes with, and give up masters, states and average. layout()
    /// and state_outline() are those of what is trained now. References to layout() and graphs that were recorded end.
    ///
    /// The parts of the engine are made anew: it costs about what making the engine did. While that lasts a rank has the
    /// state of what stays twice, the second time in host memory or, where the tier keeps files, on its disk; shards of units
    /// too, on their tier. Before anything has changed it throws rank_mismatch, no_parameters, bad_parameter, bad_value,
    /// wrong_call_order, what `trains` throws, and not_enough_memory or no_space where the state has no room a second time. What
    /// is thrown later, on all ranks, ends the run: from then on every call throws wrong_call_order.
    void set_trainable(const std::function<bool(std::string_view name)>& trains) {
        check_between_steps();
        begin_call("set_trainable()");
        const at::NoGradGuard no_grad;
        auto& parts = works().parts;
        const TrainableChange change{parts.parameters, parts.frozen, trains, parts.exchange};
        change.apply(parts.compute.device());
        if (!change.any()) return;
        std::optional<StateCarry<typename Works::Parts>> carry;
        try {
            carry.emplace(parts, parts.next_buckets());
        } catch (...) {
            change.undo();
            throw;
        }
        state_is_whole_ = false;
        const auto before = std::move(works_);
        before->parts.release();
        auto next = std::make_unique<Works>(*before);
        carry->put_into(next->parts, before->parts.buckets);
        works_ = std::move(next);
        weights_changed();
        state_is_whole_ = true;
    }
    /// What is frozen, in order, as layout() describes what is trained: begin counts in an array of its own.
    [[nodiscard]] std::vector<ParameterInfo> frozen_layout() const { return layout_of(works().parts.frozen); }
    /// Gives frozen parameters the values that they had in another run: calls fill(const std::string& name, at::Tensor values)
    /// for each whose name is `wanted`, one after the other, while its unit is whole. Every rank fills it alike. Between steps.
    /// Collective, though `fill` is not; throws on all ranks what it threw on one, after which the run is over.
    template <class Wanted, class Fill>
    void write_frozen(Wanted&& wanted, Fill&& fill) {
        begin_call("write_frozen()");
        const core::Within lent{lent_};
        const at::NoGradGuard no_grad;
        works().whole.write_frozen(wanted, fill, [this](const at::Tensor& tensor) { hold_unit_of(tensor); });
        weights_changed();
    }

    /// What a checkpoint keeps beside step_count() and the state, by name: with fp16 the state of the loss scale, else
    /// nothing. The same on every rank. Names that are missing leave their value as it is.
    [[nodiscard]] std::map<std::string, double> scalars() const { return works().scaler.scalars(); }
    void restore_scalars(const std::map<std::string, double>& values) { works().scaler.restore(values); }

    /// Optimizer steps done. A restored run sets it: AdamW's bias correction depends on it.
    [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
    void set_step_count(std::int64_t steps) noexcept { step_count_ = steps; }

    /// Trained parameters in order, and their elements in all.
    [[nodiscard]] const std::vector<ParameterInfo>& layout() const { return works().parts.buckets.layout(); }
    [[nodiscard]] std::int64_t numel() const { return works().parts.buckets.numel(); }

    /// What this rank holds, by what it is and where. Local, from any thread.
    [[nodiscard]] const MemoryMeter& memory() const noexcept { return pool_->meter(); }
    [[nodiscard]] MemoryMeter& memory() noexcept { return pool_->meter(); }

private:
    using Works = EngineWorks<Setup, Comm, Compute>;
    static_assert(sizeof(Works) > 0);  // what a tier lacks is said where an engine is named, not only where one is made

    [[nodiscard]] Works& works() const {
        if (works_) return *works_;
        throw Error{Errc::wrong_call_order, "an engine was used after its set_trainable() had failed half way",
                    "make a new trainer, which resumes from the newest checkpoint"};
    }
    void check_between_steps() const {
        if (lent_ > 0) {
            throw Error{Errc::wrong_call_order,
                        "set_trainable() was called inside of a call that lends the model or its state, such as "
                        "with_whole_model()",
                        "call it when that call has returned"};
        }
        const GradientReduction& gradients = works().parts.gradients;
        if (!works().parts.options.computes_only && gradients.passes() == 0 && !gradients.spoiled() &&
            !has_begun_early())
            return;
        throw Error{Errc::wrong_call_order,
                    works().parts.options.computes_only ? "set_trainable() was called on an engine that only computes"
                                                        : "set_trainable() was called in the middle of a step, after " +
                                                              std::to_string(gradients.passes()) + " backward passes",
                    "call it on a trainer's engine, before the first backward() of a step"};
    }

    void begin_backward() {
        if (works().parts.options.computes_only) {
            throw Error{Errc::wrong_call_order, "backward() was called on an engine that only computes",
                        "leave computes_only out of its options, and give it parameters that require a gradient"};
        }
        begin_call("backward()");
        if (works().early) begin_update(works().early->rate(state_is_whole()), 1.0, 1.0);
    }
    [[nodiscard]] bool has_begun_early() const noexcept {
        return works_ && works_->early && works_->early->has_begun();
    }
    /// What step() does where weights are those after it already.
    StepResult end_step(bool loss_is_finite) {
        works().parts.failure.tell(works().parts.exchange);
        const double norm = works().norm.norm_of(works().early->squares());
        if (!loss_is_finite) works().non_finite.met(step_count_ + 1, "loss");
        if (!std::isfinite(norm)) works().non_finite.met(step_count_ + 1, "gradient norm");
        weights_changed();
        works().early->end_step();
        core::kept_blocks().start_period();
        return {.grad_norm = norm, .step = ++step_count_};
    }
    /// Tells the update what it is made with.
    ///
    ///   factor  of the mean gradient, for clipping
    void begin_update(double lr, double factor, double loss_scale) {
        auto& parts = works().parts;
        const auto limit = parts.options.max_grad_value > 0.0 ? static_cast<float>(parts.options.max_grad_value)
                                                              : std::numeric_limits<float>::infinity();
        const double of_sum = factor / parts.exchange.world() / loss_scale;
        works().update.begin(parts.groups, {.number = step_count_ + 1,
                                            .lr = lr,
                                            .transform = {static_cast<float>(of_sum), limit},
                                            .rounding_seed = parts.options.rounding_seed,
                                            .average = parts.average.get()});
    }
    [[nodiscard]] GradientView gradients(std::string_view call) {
        if (works().early) BackwardUpdate::refuse_gradients(call);
        works().passes.check_complete(call);
        begin_call(call);
        return {works().parts.buckets, works().parts.gradients, works().parts.exchange,
                1.0 / works().parts.exchange.world() / works().scaler.value()};
    }
    void check_step(double lr) {
        works().passes.check_complete("step()");
        check_rate(lr);
        if (works().early) works().early->check_rate(lr);
        begin_call("step()");
    }
    void check_rate(double lr) const { check_learning_rate(lr, step_count_ + 1); }
    void begin_call(std::string_view call) {
        // A forward pass may have gathered ahead, and a backward pass that threw left reductions.
        works().parts.exchange.wait();
        if (!average_is_in()) return;
        throw Error{Errc::wrong_call_order,
                    std::string{call} + " was called while the average is in the weights' place",
                    "call swap_average() again first"};
    }
    /// Drops units that were gathered before, ahead of a forward pass or by hold_unit_of().
    void weights_changed() {
        if (works().parts.gathers()) works().parts.gathering->drop_all();
        works().parts.buckets.bump_versions();
    }

    std::unique_ptr<Works> works_;  // none after a change of what is trained that failed
    std::shared_ptr<detail::BufferPool> pool_;
    std::int64_t step_count_ = 0;
    int lent_ = 0;  // calls in which a caller's function has the model or its state in hand, one inside of another
    bool state_is_whole_ = true;
};

}  // namespace strata::zero
