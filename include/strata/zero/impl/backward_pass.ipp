#pragma once
// strata/zero/impl/backward_pass.ipp - backward over a loss, and the order in which calls of a step may come.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>

#include <strata/core/error.hpp>
#include <strata/zero/detail/loss.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/backward_pass.hpp>

namespace strata::zero {

STRATA_INLINE BackwardPass::BackwardPass(const Parts& parts, std::function<void()> prefetch_state)
    : parts_{parts}, prefetch_state_{std::move(prefetch_state)} {
    std::vector<at::Tensor> tensors;
    for (const TrainedParameter& parameter : parts_.buckets.parameters()) tensors.push_back(parameter.tensor);
    hooks_ = std::make_unique<detail::GradientHooks>(tensors, [this](std::size_t index) { gradient_arrived(index); });
}

STRATA_INLINE void BackwardPass::run(const at::Tensor& loss) {
    begin_pass();
    try {
        check_parameters_stayed();
        detail::check_loss(loss);
        // Its gradients may be finite all the same, or those of the first bucket zeros: weights stay as they are.
        if (parts_.update != nullptr && !std::isfinite(loss.item<double>())) parts_.update->give_up();
        running_ = true;
        backpropagate(loss);
        running_ = false;
    } catch (...) {
        const bool began = std::exchange(running_, false);
        if (parts_.gathering != nullptr) parts_.gathering->abandon_pass();
        if (parts_.update != nullptr) parts_.update->give_up();
        parts_.gradients.fail_pass(began, !gathers());
        throw;
    }
    const at::NoGradGuard no_grad;
    if (gathers()) {
        parts_.gradients.prepare_rest();
        parts_.gathering->end_pass();
    } else {
        parts_.gradients.end_pass();
    }
    prefetch_state();
    parts_.gradients.count_pass();
}

STRATA_INLINE void BackwardPass::begin_pass() {
    parts_.gradients.begin_pass();
    if (parts_.update != nullptr) parts_.update->begin_pass();
    prefetch_state();
}

STRATA_INLINE void BackwardPass::run_without_loss() {
    if (gathers()) {
        throw Error{Errc::wrong_call_order, "backward_without_loss() was called where units are gathered",
                    "let ranks agree before they call loss(): forward passes are collective there"};
    }
    begin_pass();
    if (parts_.update != nullptr) parts_.update->give_up();
    const at::NoGradGuard no_grad;
    parts_.gradients.end_pass();
    parts_.gradients.count_pass();
}

STRATA_INLINE void BackwardPass::discard_step() {
    parts_.exchange.wait();
    if (parts_.gathering != nullptr) parts_.gathering->abandon_pass();
    parts_.gradients.start_step();
}

STRATA_INLINE void BackwardPass::check_not_spoiled(std::string_view call) const {
    if (!parts_.gradients.spoiled()) return;
    throw Error{Errc::wrong_call_order,
                std::string{call} +
                    " was called after a backward pass of this step threw, which left its gradients mixed "
                    "with those of the micro-batches before",
                "call discard_step(), and give all micro-batches of the step again"};
}

STRATA_INLINE void BackwardPass::check_complete(std::string_view call) const {
    check_not_spoiled(call);
    const GradientReduction& gradients = parts_.gradients;
    if (gradients.passes() == gradients.passes_a_step()) return;
    throw Error{Errc::wrong_call_order,
                std::string{call} + " was called after " + std::to_string(gradients.passes()) +
                    " backward passes instead of " + std::to_string(gradients.passes_a_step()),
                "call backward() gradient_accumulation_steps times before each step()"};
}

STRATA_INLINE void BackwardPass::check_parameters_stayed() const {
    parts_.buckets.check_parameters_stayed();
    for (const Parameter& parameter : parts_.frozen) {
        if (!parameter.tensor.requires_grad()) continue;
        throw Error{
            Errc::bad_parameter,
            "the parameter " + parameter.name + " was frozen when the engine took it, and now requires a gradient",
            "call set_trainable() between two steps instead, or requires_grad_(true) before the trainer is made"};
    }
}

/// Before the last pass of a step and in it: the step before may still be writing out of the buffers.
STRATA_INLINE void BackwardPass::prefetch_state() const {
    if (parts_.update == nullptr && parts_.gradients.in_last_pass()) prefetch_state_();
}

STRATA_INLINE void BackwardPass::backpropagate(const at::Tensor& loss) {
    const int micro_batches = parts_.gradients.passes_a_step();
    const at::AutoGradMode recording{true};  // whatever the caller's is: the loss is scaled by operations of its graph
    try {
        if (parts_.scaler.scales()) {
            loss.to(at::kFloat).mul(parts_.scaler.value() / micro_batches).backward();
        } else {
            (micro_batches > 1 ? loss.div(micro_batches) : loss).backward();
        }
    } catch (const c10::Error& error) {
        detail::explain_missing_memory(error);
        if (parts_.update != nullptr) explain_early_update(error);
        throw;
    }
}

/// Throws bad_parameter when libtorch's error says that autograd was to read a weight and found that of the next step.
STRATA_INLINE void BackwardPass::explain_early_update(const c10::Error& error) const {
    const auto number_after = [said = std::string_view{error.msg()}](std::string_view words) -> std::int64_t {
        const std::size_t at = said.find(words);
        if (at == std::string_view::npos) return -1;
        return std::strtoll(said.data() + at + words.size(), nullptr, 10);
    };
    const std::int64_t version = number_after("is at version "), expected = number_after("expected version ");
    const auto parameter = parts_.buckets.parameter_at(version);
    // Any other step between the two is the model's own doing.
    if (!parameter || expected != version - 1 ||
        !parts_.gradients.has_left(parts_.buckets.parameter(*parameter).bucket))
        return;
    throw Error{Errc::bad_parameter,
                "backward reads the parameter " + parts_.buckets.name(*parameter) +
                    " after its gradient was complete and Update<InBackward> had changed it, as through detach()",
                "leave Update<InBackward> out, or let the gradient of such a parameter go the same way as its value"};
}

// Inside of backward(), on the thread that called it or, for another device than the CPU, on autograd's for that device.
STRATA_INLINE void BackwardPass::gradient_arrived(std::size_t index) {
    const TrainedParameter& parameter = parts_.buckets.parameter(index);
    const TrainedBucket& bucket = parts_.buckets[parameter.bucket];
    if (!running_) {  // another engine's loss went through this model, as a generator's goes through its critic
        at::Tensor{parameter.tensor}.mutable_grad().reset();
        if (bucket.sharded) parts_.gathering->gradient_passed(bucket.unit_number);
        return;
    }
    if (parts_.gradients.arrived(index)) prefetch_state();
    if (bucket.sharded) parts_.gathering->gradient_arrived(bucket.unit_number);
}

}  // namespace strata::zero
