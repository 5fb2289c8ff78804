#pragma once
// strata/zero/tier.hpp - what the two classes of a tier are lent by an engine, and what they do for it.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/elements.hpp>
#include <strata/core/inline.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>

namespace strata::zero {

/// A run of elements of one bucket that is updated as one, in host memory.
///
///   Kept    what weights and states are kept in
///   states  how many states an element has
template <class Kept, std::size_t states>
struct StateRun {
    static constexpr Place memory = Place::host;  ///< where the spans are
    std::size_t bucket = 0;
    std::int64_t begin = 0;  ///< in the rank's share of the bucket; at stage 0 in the bucket
    std::int64_t numel = 0;
    std::span<Kept> weight;  ///< the master; where there is none, the engine puts the parameters themselves here
    std::array<std::span<Kept>, states> state;
    bool last = true;  ///< of its bucket
};
/// The same with spans of device addresses.
template <class Kept, std::size_t states>
struct DeviceRun : StateRun<Kept, states> {
    static constexpr Place memory = Place::device;
};

/// Of all shares together: for what bytes() of a class says.
[[nodiscard]] inline std::int64_t sum_of(std::span<const std::int64_t> numels) noexcept {
    return std::accumulate(numels.begin(), numels.end(), std::int64_t{0});
}

/// What an engine lends the classes of its tiers; all of it outlives them.
class TierContext {
public:
    /// What a class gets that an engine makes: `name` is "optimizer" for state, and for shards "parameters" or "gradients".
    TierContext(detail::BufferPool& pool, const offload::SwapFolder* folder, std::string name, MemoryKind kind,
                offload::PipelineOptions windows);
    TierContext(const TierContext&);
    TierContext(TierContext&&) noexcept;
    TierContext& operator=(const TierContext&);
    TierContext& operator=(TierContext&&) noexcept;
    ~TierContext();

    /// A tensor of one dimension in host memory, which the device knows, or in the device's; contents undefined.
    /// Counted until it is gone.
    template <class T>
    [[nodiscard]] at::Tensor empty(std::int64_t numel, MemoryKind kind, Place place) const {
        return pool_->empty(numel, detail::dtype_v<T>, kind, place);
    }
    /// For what does not come from empty(): bytes are added when they are there, and subtracted when they are not.
    [[nodiscard]] MemoryMeter& meter() const noexcept { return pool_->meter(); }
    /// This rank's folder on a local disk; only for a class that says wants_folder.
    [[nodiscard]] const offload::SwapFolder& folder() const noexcept { return *folder_; }
    /// What the class keeps, for empty() and meter(): shards may be of parameters or of gradients.
    [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }
    /// For names of files, and messages.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// TierOptions::state, units or gradients: the memory for buffers, and how files are read and written.
    [[nodiscard]] const offload::PipelineOptions& windows() const noexcept { return windows_; }

    /// For one of the tiers that a tier is made of.
    ///
    ///   sharers  of the memory for buffers
    [[nodiscard]] TierContext part(std::string_view name, std::size_t sharers) const;

private:
    detail::BufferPool* pool_;
    const offload::SwapFolder* folder_;
    std::string name_;
    MemoryKind kind_;
    offload::PipelineOptions windows_;
};

/// Gives a run of host memory its first values.
///
///   initial  of the states
///   weight   of the run's bucket, from its element 0: what weight_of() of fill() has returned; without a master not used
template <class Kept, std::size_t states>
void start_run(const StateRun<Kept, states>& run, const std::array<float, states>& initial, const at::Tensor& weight) {
    if (!run.weight.empty()) {
        const auto from =
            detail::elements<const float>(weight).subspan(static_cast<std::size_t>(run.begin), run.weight.size());
        std::transform(from.begin(), from.end(), run.weight.begin(),
                       [](float value) { return to_element<Kept>(value); });
    }
    for (std::size_t k = 0; k < states; ++k) {
        std::fill(run.state[k].begin(), run.state[k].end(), to_element<Kept>(initial[k]));
    }
}

namespace detail {

template <class T>
concept Complete = requires {
    sizeof(T);
};

struct AnyRun {
    template <class Run>
    void operator()(const Run&) const;
};
struct AnyWeights {
    at::Tensor operator()(std::size_t bucket) const;
};

template <class S>
concept GivesBuckets = requires(S& state, std::size_t bucket, offload::Access access) {
    state.run_bucket(bucket, access, AnyRun{});
    state.prefetch_bucket(bucket);
};

}  // namespace detail

/// What `state<Kept, states, has_master>` of a tier does; testing::tier_failures() tries it.
///
///   memory        where it wants starting values: Place::device for device addresses, else Place::host
///   fails_alone   a call may throw on this rank only, as a disk does: ranks then tell each other at the end of a pass.
///                 With false, what a call throws ends the job
///   wants_folder  it keeps files, below TierOptions::nvme_path
///   bytes(numels)
///                 what it is going to keep in every place, for parts of these sizes; at most, where that is not known
///   make(context, numels)
///                 this rank's part of every bucket has so many elements, one at least. Once, before the others
///   fill(initial, weight_of)
///                 sets the states to `initial`, and the masters to the fp32 values that weight_of(bucket) returns. Asks
///                 for every bucket once, in order, masters or not. Once
///   run(access, call)
///                 calls `call` with StateRuns, or DeviceRuns, that hold every element once, in the order of buckets and
///                 of their elements; after Access::write and ::update it has what they then hold
///   prefetch()    a pass comes soon. Keeps to itself what it meets
/// An exception of `call` or of weight_of() comes out of it. One thread at a time.
template <class S, class Kept, std::size_t states>
concept TierState = detail::Complete<S> && std::default_initializable<S> &&
    requires(S& state, const TierContext& context, std::vector<std::int64_t> numels,
             const std::array<float, states>& initial, offload::Access access) {
    { S::memory } -> std::convertible_to<Place>;
    { S::fails_alone } -> std::convertible_to<bool>;
    { S::wants_folder } -> std::convertible_to<bool>;
    typename strata::detail::Constant<static_cast<Place>(S::memory)>;
    typename strata::detail::Constant<static_cast<bool>(S::fails_alone)>;
    typename strata::detail::Constant<static_cast<bool>(S::wants_folder)>;
    { S::bytes(std::span<const std::int64_t>{numels}) } -> std::same_as<PlaceBytes>;
    state.make(context, std::move(numels));
    state.fill(initial, detail::AnyWeights{});
    state.run(access, detail::AnyRun{});
    state.prefetch();
};

/// What it does besides where Update<InBackward> updates a bucket as soon as its gradients are reduced:
///
///   run_bucket(bucket, access, call)
///                 what run() does, with the elements of one bucket, which may be any
///   prefetch_bucket(bucket)
///                 run_bucket() of it comes soon. Keeps to itself what it meets
template <class S, class Kept, std::size_t states>
concept TierStateByBucket = TierState<S, Kept, states> && detail::GivesBuckets<S>;

/// What `shards<Element>` of a tier does: it keeps a rank's shards of units, or a sum of gradients for every bucket. Elements
/// of parameters are those of a Precision, sums are of these or of fp32; quantised frozen weights are std::uint8_t.
///
///   fails_alone, wants_folder, bytes(), make()
///                  as of state; there may be no shards
///   gathers_alone  in a world of one, too, units are shards between their uses, because they are smaller or elsewhere
///                  there; with false they stay whole
///   open(shard, access)
///                  its elements until close(), in memory of the host or of the device, as memory_of(shard) says; with
///                  Access::write they are undefined at first. One at a time
///   close(shard, access)
///                  after Access::write and ::update it has what they then hold
///   read_ahead(shard, access)
///                  this shard is opened soon. Keeps to itself what it meets
///   reads_ahead()  of how many shards it is good to know before they are opened; 0: none
template <class S, class Element>
concept TierShards = detail::Complete<S> && std::default_initializable<S> &&
    requires(S& shards, const S& constant, const TierContext& context, std::span<const std::int64_t> numels,
             std::size_t shard, offload::Access access) {
    { S::fails_alone } -> std::convertible_to<bool>;
    { S::wants_folder } -> std::convertible_to<bool>;
    { S::gathers_alone } -> std::convertible_to<bool>;
    typename strata::detail::Constant<static_cast<bool>(S::fails_alone)>;
    typename strata::detail::Constant<static_cast<bool>(S::wants_folder)>;
    typename strata::detail::Constant<static_cast<bool>(S::gathers_alone)>;
    { S::bytes(numels) } -> std::same_as<PlaceBytes>;
    shards.make(context, numels);
    { shards.open(shard, access) } -> std::same_as<std::span<Element>>;
    shards.close(shard, access);
    shards.read_ahead(shard, access);
    { constant.count() } -> std::convertible_to<std::size_t>;
    { constant.reads_ahead() } -> std::convertible_to<std::size_t>;
    { constant.memory_of(shard) } -> std::convertible_to<Place>;
};

namespace detail {

/// The class that keeps the state on a tier. Where there is none, nothing is kept anywhere, and updates run beside the
/// parameters.
template <class Tier, class Kept, std::size_t states, bool has_master>
struct StateOn {
    using given = typename Tier::template state<Kept, states, has_master>;
    static constexpr bool holds = TierState<given, Kept, states>;
    static_assert(
        holds,
        "[ST0122] The class state<Kept, states, has_master> of a tier is not defined here, or lacks one of memory, "
        "fails_alone, wants_folder, bytes(), make(), fill(), run() and prefetch(). Fix: include the header that "
        "defines it, and write what zero::TierState asks for (docs/write-a-tier.md).");
    using type = typename std::conditional_t<holds, Tier, Device>::template state<Kept, states, has_master>;
};
template <class Tier, class Kept>
struct StateOn<Tier, Kept, 0, false> {
    using type = Device::state<Kept, 0, false>;
};
template <class Tier, class Kept, std::size_t states, bool has_master>
using state_on_t = typename StateOn<Tier, Kept, states, has_master>::type;

/// What Update<InBackward> asks of the class that keeps the state.
template <bool in_backward, class State>
struct UpdatesByBucket {
    static constexpr bool holds = !in_backward || GivesBuckets<State>;
    struct Report {
        static_assert(
            holds,
            "[ST0124] Update<InBackward> updates one bucket at a time, and the class state<Kept, states, has_master> "
            "of a tier lacks run_bucket() and prefetch_bucket(). Fix: write what zero::TierStateByBucket asks for "
            "(docs/write-a-tier.md), or drop Update<InBackward>.");
    };
};

template <class Tier, class Element>
struct ShardsOn {
    using given = typename Tier::template shards<Element>;
    static constexpr bool holds = TierShards<given, Element>;
    static_assert(
        holds,
        "[ST0123] The class shards<Element> of a tier is not defined here, or lacks one of fails_alone, wants_folder, "
        "gathers_alone, bytes(), make(), open(), close(), read_ahead(), count(), reads_ahead() and memory_of(). Fix: "
        "include the header that defines it, and write what zero::TierShards asks for (docs/write-a-tier.md).");
    using type = typename std::conditional_t<holds, Tier, Device>::template shards<Element>;
};
template <class Tier, class Element>
using shards_on_t = typename ShardsOn<Tier, Element>::type;

}  // namespace detail

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/tier.ipp>
#endif
