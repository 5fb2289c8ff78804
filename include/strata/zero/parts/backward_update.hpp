#pragma once
// strata/zero/parts/backward_update.hpp - BackwardUpdate: buckets are updated inside of backward, each when its gradients are sums.

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/core/rule.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/options/on_non_finite.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::rule {

/// Norms over whole parameters would have to be exchanged between the two passes of every bucket.
template <class Timing, class Rule>
struct ElementsAreUpdatedAlone {
    static constexpr bool holds = !Timing::in_backward || !optim::UpdateRule<Rule> || optim::ElementwiseRule<Rule>;
    struct Report {
        static_assert(
            holds,
            "[ST0023] Update<InBackward> updates elements in one pass, and the rule of Optimizer<Rule> wants norms "
            "over whole parameters first, as Lamb does. Fix: use Optimizer<AdamW> or another rule of one pass, or "
            "drop Update<InBackward>.");
    };
};

}  // namespace strata::rule

namespace strata::zero {

/// What becomes of a bucket's gradients under Update<InBackward>: ranks tell each other the squares of their shares, the bucket
/// is updated, and its new weights are gathered, all on the channel between two reductions. No weight of a bucket is read by
/// what is left of a pass: gradients of all its parameters are there, and a node of the graph computes those of its inputs and
/// of its weights at once.
///
/// Ends with the first bucket whose gradients are not finite on some rank: that one and those after it stay as they are. So
/// does a rank that gave up, and both are the same on all ranks.
class BackwardUpdate {
public:
    /// Called on the channel's thread.
    struct Calls {
        std::function<double(const at::Tensor& sum_S)> squares;  ///< the sum of them
        /// Reads ahead what the update of a bucket wants.
        std::function<void(std::size_t bucket)> prefetch;
        /// Updates it. `sums` is of this rank's share (S), or of all (B) where every rank has all of the state.
        std::function<void(std::size_t bucket, const at::Tensor& sums)> update;
    };

    /// Throws bad_value for options that want all gradients of a step before the first weight changes. Local.
    static void check(double max_grad_norm, int micro_batches, OnNonFinite on_non_finite);

    /// Both outlive it. Numbers the buckets' versions.
    BackwardUpdate(Exchange& exchange, Buckets& buckets, Calls calls);
    BackwardUpdate(const BackwardUpdate&) = delete;
    BackwardUpdate& operator=(const BackwardUpdate&) = delete;

    // ---- a step ---------------------------------------------------------------------------------------------------

    void begin_step(double lr) noexcept { lr_ = lr; }
    /// As another one, which this one comes after, was told.
    void begin_as(const BackwardUpdate& before) noexcept { lr_ = before.lr_; }
    /// What begin_step() was given. Throws wrong_call_order without it, and where a pass broke off before.
    [[nodiscard]] double rate(bool state_is_whole) const;
    /// Throws wrong_call_order when the step is ended with another rate.
    void check_rate(double lr) const;
    /// For a call that looks at gradients. Throws wrong_call_order.
    [[noreturn]] static void refuse_gradients(std::string_view call);
    /// Weights and state are those of a step's end.
    void end_step() noexcept {
        has_begun_ = false;
        lr_.reset();
    }

    // ---- its backward pass ----------------------------------------------------------------------------------------

    /// Local, while the channel has no work.
    void begin_pass();
    /// This rank's gradients are of no use from now on: ranks update no further bucket of the step. Local, from any thread.
    void give_up() noexcept { given_up_ = true; }
    /// What GradientReduction hands over. On the channel's thread. Collective.
    void use(std::size_t bucket, const at::Tensor& gradient_B);

    /// Whether some weights are those after the step already. The same on all ranks when the channel has no work.
    [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
    /// Squares of all buckets, by rank and then by bucket; NaN of those that were not updated.
    [[nodiscard]] std::span<const double> squares() const noexcept { return squares_; }

private:
    [[nodiscard]] bool are_finite(std::size_t bucket, const at::Tensor& sum_S);

    Exchange& exchange_;
    const Buckets& buckets_;
    Calls calls_;
    std::vector<double> squares_;
    std::optional<double> lr_;
    bool stopped_ = false;  // of the channel's thread while it has work
    std::atomic<bool> given_up_ = false;
    std::atomic<bool> has_begun_ = false;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/backward_update.ipp>
#endif
