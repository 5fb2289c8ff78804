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
#include <strata/core/option_check.hpp>
#include <strata/optim/clip.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/non_finite.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/assembly.hpp>
#include <strata/zero/parts/average_swap.hpp>
#include <strata/zero/parts/backward_pass.hpp>
#include <strata/zero/parts/gradient_norm.hpp>
#include <strata/zero/parts/gradient_view.hpp>
#include <strata/zero/parts/scaler.hpp>
#include <strata/zero/parts/state_transfer.hpp>
#include <strata/zero/parts/whole_model.hpp>
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
/// memory() counts them. Gradients have the parameters' type, but fp16 ones are collected in fp32, because ranks add up
/// in fp32; with several micro-batches a step they add up in fp32, P/W more. The model keeps its tensors: they become
/// views of the engine's buckets. While an engine lives, do not convert or move the model. After it they stay valid, but
/// for the units of stage 3, whose parameters go with it. Parameters that excepted_parameters names keep the other format of
/// Precision<Format, Except<Other>>, with gradients and state of that.
///
/// Buckets are reduced on a thread of the engine's own while backward goes on, and updated weights are gathered while
/// the next bucket is updated. When backward(), step() or write_state() returns, nothing is under way: between them
/// the communicator is the caller's, but for forward passes at stage 3, which are collective: without gradients every rank
/// calls the same units in the same order; with them a rank may leave a unit out, and takes part in gathering it for the others
/// until all have ended backward(), where it gives zeros for its gradient. Parameters outside of units are whole on every rank at stage 3
/// too; frozen ones inside of units are sharded like the others. In a world of one nothing needs to be gathered, and
/// stage 3 leaves units whole, unless the tier of their shards gathers them alone too, as Nvme does.
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
        : parts_{comm, std::move(parameters), std::move(options), std::move(compute)} {}
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine() = default;

    /// Backpropagates the loss of one micro-batch and adds its gradients to this rank's share of their sum. Collective.
    ///
    ///   loss  this rank's mean loss; one element. Divided here by the number of micro-batches, and scaled for fp16.
    /// Parameters that the loss does not reach have gradient zero. Throws bad_loss, bad_parameter, wrong_call_order. Where units are
    /// not gathered, a rank whose pass throws has done its part for the others: it may throw alone, and they do not wait.
    void backward(const at::Tensor& loss) {
        begin_backward();
        passes_.run(loss);
    }

    /// backward() of a rank that has no loss, for it failed: its gradients are zeros, so that the others need not wait for
    /// it, and what comes of them is of no use. Collective with their backward(). Not where units are gathered.
    void backward_without_loss() {
        begin_backward();
        passes_.run_without_loss();
    }

    /// Forgets the gradients since the last step: backward() begins anew. After a pass that threw, or for a step that is not
    /// to be made. When backward() threw after other micro-batches of the step, their gradients are mixed with what it
    /// left, and backward() and step() throw wrong_call_order until this was called; so do they on a rank of several whose
    /// pass threw, for what it gave the others. On all ranks; exchanges nothing.
    void discard_step() { passes_.discard_step(); }

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
    [[nodiscard]] bool state_is_whole() const noexcept { return state_is_whole_; }
    /// Whether units are whole only while they compute, so that forward passes are collective.
    [[nodiscard]] bool gathers_units() const noexcept { return parts_.gathers(); }

    /// Clips, updates and shares the weights, after gradient_accumulation_steps calls of backward(). Collective.
    ///
    ///   loss_is_finite  false: a rank's loss was not, and the step ends as if its gradients were not; the same on every rank
    /// Throws non_finite on all ranks when the gradient norm is, unless the options say OnNonFinite::skip; weights and state are
    /// then unchanged. With fp16 such a step is skipped in any case, on all ranks, and the loss scale falls; loss_scale_exhausted
    /// when it cannot. Also wrong_call_order, and what a tier's disk meets.
    StepResult step(double lr, bool loss_is_finite = true) {
        check_step(lr);
        parts_.gradients.start_step();
        const at::NoGradGuard no_grad;
        const double loss_scale = scaler_.value();
        const auto skipped = [&](double norm, bool non_finite) {
            return StepResult{.grad_norm = norm,
                              .step = step_count_,
                              .skipped = true,
                              .non_finite = non_finite,
                              .loss_scale = loss_scale};
        };
        if (!loss_is_finite) {  // no loss scale mends that
            non_finite_.met(step_count_ + 1, "loss");
            return skipped(std::numeric_limits<double>::quiet_NaN(), true);
        }
        double norm = norm_(sums());
        if (scaler_.scales()) {
            const auto verdict = scaler_.update(!std::isfinite(norm));
            if (verdict.skip) return skipped(norm, false);
            norm *= verdict.unscale;
        }
        if (!std::isfinite(norm)) {
            non_finite_.met(step_count_ + 1, "gradient norm");
            return skipped(norm, true);
        }
        non_finite_.passed();
        const Options& options = parts_.options;
        const double factor =
            optim::clip_coefficient(norm, options.max_grad_norm) / parts_.exchange.world() / loss_scale;
        const auto limit = options.max_grad_value > 0.0 ? static_cast<float>(options.max_grad_value)
                                                        : std::numeric_limits<float>::infinity();
        update_.begin(parts_.groups, {.number = step_count_ + 1,
                                      .lr = lr,
                                      .transform = {static_cast<float>(factor), limit},
                                      .rounding_seed = options.rounding_seed,
                                      .average = parts_.average.get()});
        state_is_whole_ = false;
        update_.run(parts_.groups);
        parts_.end_pass();
        weights_changed();
        state_is_whole_ = true;
        return {.grad_norm = norm, .step = ++step_count_, .skipped = false, .loss_scale = loss_scale};
    }

    /// Gathers the unit that a parameter, frozen or not, belongs to, and drops the one of the call before; nothing for
    /// parameters that are whole anyway. For reading all parameters one after the other without having them all. Between
    /// passes. Collective.
    void hold_unit_of(const at::Tensor& parameter) {
        if (!parts_.gathers()) return;
        const auto found = parts_.unit_numbers.find(parameter.unsafeGetTensorImpl());
        if (found != parts_.unit_numbers.end()) parts_.gathering->hold_only(found->second);
    }
    /// Drops what hold_unit_of() has gathered.
    void drop_units() {
        if (parts_.gathers()) parts_.gathering->drop_all();
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
        whole_.lend([&] { std::forward<Body>(body)(); }, [this] { begin_call("writing parameters of a whole model"); });
    }

    /// Puts the average of the weights in their place, and back: for validation and export. In between backward(),
    /// step(), read_state() and write_state() throw wrong_call_order. Collective. Only with Ema<...>.
    void swap_average() requires(Setup::averaging::enabled) {
        const at::NoGradGuard no_grad;
        parts_.exchange.wait();
        swap_->swap();
        parts_.failure.tell(parts_.exchange);
        swap_->done();
        weights_changed();
    }
    [[nodiscard]] bool average_is_in() const noexcept { return swap_ && swap_->is_in(); }
    /// Makes the average that of the weights as they are, for a checkpoint without one. Collective.
    void restart_average() requires(Setup::averaging::enabled) {
        const at::NoGradGuard no_grad;
        parts_.exchange.wait();
        swap_->restart();
        parts_.failure.tell(parts_.exchange);
    }

    /// The runs of this rank's state, between two steps: the weights, the update rule's states, and with Ema<...> the
    /// average. Stage 0, which has all of it, shows the same share as the other stages. Local.
    [[nodiscard]] std::vector<StateOutline> state_outline() const { return transfer_.outline(); }

    /// Calls sink(std::string_view kind, std::int64_t begin, std::span<const float> values) with all parts of these runs,
    /// kind by kind in each part of the model; a part is in memory during the call only. Local. Throws wrong_call_order,
    /// and what the disk meets.
    template <class Sink>
    void read_state(Sink&& sink) {
        begin_call("read_state()");
        transfer_.read(std::ref(sink));
    }

    /// Calls source(std::string_view kind, std::int64_t begin, std::span<float> values) to fill the same parts anew, and
    /// makes that take effect on all ranks. Collective, though `source` is not. Throws on all ranks what `source` threw on
    /// one, after which the run is over.
    ///
    ///   average  false: the average is not asked for
    template <class Source>
    void write_state(Source&& source, bool average = true) {
        begin_call("write_state()");
        const at::NoGradGuard no_grad;
        parts_.gradients.start_step();
        state_is_whole_ = false;
        transfer_.write(std::ref(source), average);
        parts_.end_pass();
        weights_changed();
        state_is_whole_ = true;
    }

    /// What a checkpoint keeps beside step_count() and the state, by name: with fp16 the state of the loss scale, else
    /// nothing. The same on every rank. Names that are missing leave their value as it is.
    [[nodiscard]] std::map<std::string, double> scalars() const { return scaler_.scalars(); }
    void restore_scalars(const std::map<std::string, double>& values) { scaler_.restore(values); }

    /// Optimizer steps done. A restored run sets it: AdamW's bias correction depends on it.
    [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
    void set_step_count(std::int64_t steps) noexcept { step_count_ = steps; }

    /// Trained parameters in order, and their elements in all.
    [[nodiscard]] const std::vector<ParameterInfo>& layout() const noexcept { return parts_.buckets.layout(); }
    [[nodiscard]] std::int64_t numel() const noexcept { return parts_.buckets.numel(); }

    /// What this rank holds, by what it is and where. Local, from any thread.
    [[nodiscard]] const MemoryMeter& memory() const noexcept { return parts_.pool->meter(); }
    [[nodiscard]] MemoryMeter& memory() noexcept { return parts_.pool->meter(); }

private:
    using Parts = Assembly<Setup, Comm, Compute>;
    using Pass = typename Parts::Pass;
    /// Of weights without a master while the average is in their place.
    static constexpr Place aside =
        Compute::is_host && Parts::State::memory == Place::device ? Place::device : Place::host;
    using Swap = AverageSwap<Pass, aside>;

    void begin_backward() {
        if (parts_.options.computes_only) {
            throw Error{Errc::wrong_call_order, "backward() was called on an engine that only computes",
                        "leave computes_only out of its options, and give it parameters that require a gradient"};
        }
        passes_.check_not_spoiled("backward()");
        begin_call("backward()");
    }
    [[nodiscard]] GradientView gradients(std::string_view call) {
        passes_.check_complete(call);
        begin_call(call);
        return {parts_.buckets, parts_.gradients, parts_.exchange, 1.0 / parts_.exchange.world() / scaler_.value()};
    }
    void check_step(double lr) {
        passes_.check_complete("step()");
        if (!(lr >= 0.0 && std::isfinite(lr))) {
            throw Error{
                Errc::bad_learning_rate,
                "the learning rate of step " + std::to_string(step_count_ + 1) + " is " + OptionCheck::shown(lr),
                "use a schedule whose rate is finite and not below 0 at every step of the run"};
        }
        begin_call("step()");
    }
    void begin_call(std::string_view call) {
        // A forward pass may have gathered ahead, and a backward pass that threw left reductions.
        parts_.exchange.wait();
        if (!average_is_in()) return;
        throw Error{Errc::wrong_call_order,
                    std::string{call} + " was called while the average is in the weights' place",
                    "call swap_average() again first"};
    }
    /// Drops units that were gathered before, ahead of a forward pass or by hold_unit_of().
    void weights_changed() {
        if (parts_.gathers()) parts_.gathering->drop_all();
        parts_.buckets.bump_versions();
    }
    [[nodiscard]] std::vector<at::Tensor> sums() const {
        std::vector<at::Tensor> all;
        for (std::size_t i = 0; i < parts_.buckets.size(); ++i) all.push_back(parts_.gradients.sum_S(i));
        return all;
    }
    [[nodiscard]] static std::vector<std::string_view> kinds() {
        std::vector<std::string_view> names{weight_kind};
        names.insert(names.end(), Rule::state_names.begin(), Rule::state_names.end());
        return names;
    }
    [[nodiscard]] std::optional<Swap> made_swap() {
        if (parts_.average == nullptr) return std::nullopt;
        return std::optional<Swap>{std::in_place,  parts_.pass,    *parts_.average,
                                   parts_.weights, parts_.buckets, *parts_.pool};
    }

    Parts parts_;
    NonFiniteSteps non_finite_{parts_.options.on_non_finite, parts_.options.non_finite_limit};
    Scaler scaler_{Setup::precision::scales_loss, parts_.options.loss_scale};
    GradientNorm<Compute> norm_{parts_.exchange, *parts_.pool, parts_.compute};
    typename Parts::Update update_{parts_.pass,     parts_.gradients, parts_.weights, parts_.buckets,
                                   parts_.exchange, *parts_.pool,     parts_.compute};
    StateTransfer<Pass> transfer_{parts_.pass,     kinds(),      parts_.average.get(), parts_.buckets,
                                  parts_.exchange, *parts_.pool, parts_.failure};
    WholeModel<Pass> whole_{parts_.pass,    parts_.gathers() ? parts_.gathering.get() : nullptr,
                            parts_.weights, parts_.buckets,
                            parts_.frozen,  parts_.exchange,
                            parts_.failure};
    std::optional<Swap> swap_ = made_swap();
    BackwardPass passes_{
        {parts_.exchange, parts_.buckets, parts_.gradients, parts_.gathering.get(), scaler_, parts_.frozen},
        [this] { parts_.state.prefetch(); }};
    std::int64_t step_count_ = 0;
    bool state_is_whole_ = true;
};

}  // namespace strata::zero
