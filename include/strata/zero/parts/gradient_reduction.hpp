#pragma once
// strata/zero/parts/gradient_reduction.hpp - GradientReduction: gradients arrive, and become sums over ranks.
//
// Shapes: B  elements of a bucket with padding      S = B / world, a rank's share of it

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/channel.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/local_failure.hpp>
#include <strata/zero/parts/shard_store.hpp>

namespace strata::zero {

/// What gradients of parameters are kept in: fp16 ones in fp32, because ranks add up in fp32.
template <class Element>
using gradient_element_t = std::conditional_t<std::same_as<Element, fp16>, float, Element>;

/// The gradients of an engine: what backward passes give, by bucket, and their sums over ranks and micro-batches.
///
/// Buckets are reduced on the channel, in one order on all ranks: the last one first, because that is roughly how
/// gradients arrive; one that is complete early waits for those after it. Or, where somebody says so, whenever
/// that one wants it (reduce_when_told()).
class GradientReduction {
public:
    struct Options {
        at::ScalarType dtype = at::kFloat;           ///< of gradients in buckets
        at::ScalarType excepted_dtype = at::kFloat;  ///< and in those whose parameters keep the other number format
        bool sharded = false;                        ///< a bucket's gradients go when they are reduced
        bool sums_on_tier = false;                   ///< there: this rank's sums are on a tier
        bool used_at_once = false;                   ///< there: sums are handed over as soon as they are made, and go
        bool overlap = true;                         ///< buckets are reduced while backward goes on
        bool once_a_step = false;  ///< micro-batches are added up on this rank first, and then over ranks
        int buckets_in_flight = 4;
        int micro_batches = 1;  ///< a step
    };

    /// All but `options` outlive it.
    ///
    ///   tier     what keeps the sums, a shard a bucket, where Options::sums_on_tier says so
    ///   failure  then gets what it meets on this rank alone; the exchanges go on
    GradientReduction(Exchange& exchange, detail::BufferPool& pool, Buckets& buckets, const Options& options,
                      ShardStore* tier = nullptr, LocalFailure* failure = nullptr);
    GradientReduction(const GradientReduction&) = delete;
    GradientReduction& operator=(const GradientReduction&) = delete;

    /// Makes what a bucket's gradients need between passes: zeros. Once for each, in order.
    void take(std::size_t bucket);
    /// Gives all of it back. No pass follows.
    void release() noexcept { sums_.clear(); }
    /// Bytes on the device that take() makes of it, and that a pass makes of a whole bucket.
    [[nodiscard]] static std::int64_t bytes_kept(const Options& options, bool excepted, std::int64_t padded,
                                                 std::int64_t share);
    /// Of sums: fp32 where several micro-batches are added up, else that of gradients.
    [[nodiscard]] static at::ScalarType sum_dtype_of(const Options& options, bool excepted) noexcept {
        return options.micro_batches > 1 ? at::kFloat : excepted ? options.excepted_dtype : options.dtype;
    }

    /// From now on complete buckets are offered, and reduce() is called for each when all ranks have theirs.
    void reduce_when_told(std::function<void(std::size_t bucket)> offer) { offer_ = std::move(offer); }

    /// Where sums are used at once: what uses them, on the channel's thread. Collective.
    ///
    ///   use  gets the gradients of a bucket (B), whose part of this rank's share (S) is the sum over ranks
    void hand_over(std::function<void(std::size_t bucket, const at::Tensor& gradient_B)> use) { use_ = std::move(use); }

    // ---- a backward pass ------------------------------------------------------------------------------------------

    /// Throws wrong_call_order when there were all micro-batches of a step.
    void begin_pass();
    /// Takes a parameter's .grad. Returns whether that completed its bucket. Inside of backward(), on its thread or, for
    /// another device than the CPU, on autograd's for that device.
    bool arrived(std::size_t parameter);
    /// Whether a bucket's gradients were all there in this pass, and left for their reduction. Local.
    [[nodiscard]] bool has_left(std::size_t bucket) const noexcept {
        return offer_ ? sums_[bucket].offered : bucket >= unreduced_;
    }
    /// Makes zeros of what no gradient came for, and returns when all buckets are reduced. Collective.
    void end_pass();
    /// A pass that threw. Where the others wait for this rank's part of it, they get it, and it counts; the sums are of no use.
    ///
    ///   began    false: no gradient has arrived
    ///   reduces  false: somebody else reduces, and sees to the others
    void fail_pass(bool began, bool reduces);
    /// The first half of end_pass() where somebody else reduces: what was not offered is prepared.
    void prepare_rest();
    /// Counts a micro-batch whose gradients are in the sums.
    void count_pass() noexcept { ++passes_; }
    /// Adds a bucket's gradients to their sum. On the channel's thread. Collective.
    void reduce(std::size_t bucket);

    // ---- between passes -------------------------------------------------------------------------------------------

    /// Backward passes since the last step; those that are wanted for one; whether this one is the last of them.
    [[nodiscard]] int passes() const noexcept { return passes_; }
    [[nodiscard]] int passes_a_step() const noexcept { return options_.micro_batches; }
    [[nodiscard]] bool in_last_pass() const noexcept { return passes_ + 1 == options_.micro_batches; }
    /// Whether a pass that threw has left gradients of other micro-batches mixed with its own.
    [[nodiscard]] bool spoiled() const noexcept { return spoiled_; }
    /// The next pass is the first one of a step.
    void start_step() noexcept {
        passes_ = 0;
        spoiled_ = false;
    }

    [[nodiscard]] bool accumulates() const noexcept { return options_.micro_batches > 1; }
    [[nodiscard]] at::ScalarType sum_dtype(std::size_t bucket) const noexcept {
        return sum_dtype_of(options_, buckets_.excepted(bucket));
    }
    [[nodiscard]] std::size_t buckets() const noexcept { return sums_.size(); }
    /// Which memory open_sum() gives: on the device, unless a tier has the sums.
    [[nodiscard]] Place memory_of(std::size_t bucket) const { return tier_ ? tier_->memory_of(bucket) : Place::device; }
    /// The sum over ranks and micro-batches of this rank's share (S), until close_sum(); one at a time, and quickest in the
    /// order of buckets. Local. Throws what a tier's disk meets.
    ///
    ///   access  read or update
    [[nodiscard]] at::Tensor open_sum(std::size_t bucket, offload::Access access);
    void close_sum(std::size_t bucket, offload::Access access);
    /// Calls look(bucket, sum_S) for all of them in order. Local. What a tier meets on this rank alone ends it and is with the
    /// LocalFailure, for tell_failure().
    void for_each_sum(offload::Access access,
                      core::FunctionRef<void(std::size_t bucket, const at::Tensor& sum_S)> look);
    /// Throws on all ranks what a tier of sums has met on one. Collective.
    void tell_failure() const {
        if (tier_ != nullptr) failure_->tell(exchange_);
    }

    // ---- where every rank has all of the state --------------------------------------------------------------------

    /// Begins to collect the sums of all ranks (B); nothing behind the last bucket. Collective.
    void gather_sums(std::size_t bucket);
    /// They are there, until drop_gathered(). Throws what collecting them threw.
    [[nodiscard]] const at::Tensor& gathered_B(std::size_t bucket) const;
    void drop_gathered(std::size_t bucket) noexcept { sums_[bucket].gathered_B.reset(); }

private:
    struct Sum {
        at::Tensor
            gradient_B;    // where gradients are sharded, only from a bucket's first one to the end of its reduction
        at::Tensor sum_S;  // a view of gradient_B where that lasts
        at::Tensor gathered_B;
        comm::Ticket ticket;  // of its reduction, or of gathered_B
        std::size_t arrived = 0;
        bool offered = false;  // it was complete in this pass
    };

    [[nodiscard]] static at::ScalarType bucket_dtype_of(const Options& options, bool excepted) noexcept {
        if (options.once_a_step && options.micro_batches > 1) return at::kFloat;
        return excepted ? options.excepted_dtype : options.dtype;
    }
    [[nodiscard]] at::ScalarType bucket_dtype(std::size_t bucket) const noexcept {
        return bucket_dtype_of(options_, buckets_.excepted(bucket));
    }
    /// Gradients are added to those of the micro-batches before, on this rank.
    [[nodiscard]] bool adds_up_here() const noexcept { return options_.once_a_step && passes_ > 0; }
    /// The sums over ranks of a pass are made, and added to those of the passes before.
    [[nodiscard]] bool reduces_now() const noexcept { return !options_.once_a_step || in_last_pass(); }
    [[nodiscard]] bool adds_sums() const noexcept { return !options_.once_a_step && passes_ > 0; }

    /// Runs what a tier may fail at on this rank alone.
    void keep(core::FunctionRef<void()> work) { tier_ == nullptr ? work() : failure_->keep(work); }

    at::Tensor& gradient_of(std::size_t bucket);
    void add_up(std::size_t bucket, const at::Tensor& sum_S);
    void prepare(std::size_t bucket);
    void reduce_next();
    void reduce_rest();
    void finish(std::size_t left);
    void end_pass_for_others();

    Exchange& exchange_;
    detail::BufferPool& pool_;
    Buckets& buckets_;
    Options options_;
    ShardStore* tier_;
    LocalFailure* failure_;
    std::function<void(std::size_t)> offer_;
    std::function<void(std::size_t, const at::Tensor&)> use_;
    std::vector<Sum> sums_;
    std::vector<char> arrived_;   // by parameter, in this pass
    std::size_t unreduced_ = 0;   // buckets 0 .. unreduced_ - 1 still wait in this pass
    std::size_t unfinished_ = 0;  // buckets unreduced_ .. unfinished_ - 1 are being reduced
    int passes_ = 0;
    bool spoiled_ = false;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/gradient_reduction.ipp>
#endif
