#pragma once
// strata/zero/parts/backward_pass.hpp - BackwardPass: a micro-batch's loss becomes gradients, and what one that threw leaves behind.

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <strata/zero/detail/gradient_hooks.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/backward_update.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/parts/scaler.hpp>
#include <strata/zero/parts/unit_gathering.hpp>

namespace strata::zero {

/// Runs the backward passes of a step: every gradient goes to its bucket, and complete buckets to their reduction.
class BackwardPass {
public:
    /// What passes work on; all of it outlives them.
    struct Parts {
        Exchange& exchange;
        Buckets& buckets;
        GradientReduction& gradients;
        UnitGathering* gathering;  ///< nullptr where units are neither gathered nor recomputed
        const Scaler& scaler;
        const std::vector<Parameter>& frozen;  ///< what does not require a gradient
        BackwardUpdate* update = nullptr;      ///< where buckets are updated as soon as they are reduced
    };

    ///   prefetch_state  begins to read what the step after the last pass begins with, as far as buffers are free; not
    ///                   where there is `update`, which reads ahead by itself
    ///
    /// Make it after everything that may give a parameter another dtype: that gives it another accumulator of gradients, and
    /// the hooks stay with the old one.
    BackwardPass(const Parts& parts, std::function<void()> prefetch_state);
    BackwardPass(const BackwardPass&) = delete;
    BackwardPass& operator=(const BackwardPass&) = delete;
    ~BackwardPass() = default;

    /// A micro-batch. Collective. Throws bad_loss, bad_parameter, wrong_call_order, and what backward throws.
    ///
    ///   loss  this rank's; one element. Scaled, and divided by the number of micro-batches.
    void run(const at::Tensor& loss);
    /// Its part for the other ranks alone. Collective with their run(). Throws wrong_call_order where units are gathered.
    void run_without_loss();
    /// The step begins anew. Exchanges nothing.
    void discard_step();

    /// Throws wrong_call_order, naming `call`, when a pass of this step threw and left its gradients mixed with others.
    void check_not_spoiled(std::string_view call) const;
    /// And when there were other than gradient_accumulation_steps passes.
    void check_complete(std::string_view call) const;

private:
    [[nodiscard]] bool gathers() const noexcept { return parts_.buckets.shards_units(); }
    void check_parameters_stayed() const;
    void begin_pass();
    void prefetch_state() const;
    void explain_early_update(const c10::Error& error) const;
    void backpropagate(const at::Tensor& loss);
    void gradient_arrived(std::size_t index);

    Parts parts_;
    std::function<void()> prefetch_state_;
    bool running_ = false;  // gradients that arrive are of a pass of run()
    std::unique_ptr<detail::GradientHooks> hooks_;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/backward_pass.ipp>
#endif
