#pragma once
// strata/policy/tier.hpp - OffloadTier: what a tier is, and the three there are of one piece: Device, Cpu and Nvme.
//
// A tier brings the classes that do its work, as a layout of std::mdspan brings its mapping. They are declared here,
// without libtorch, and defined in zero/tiers/. An engine uses them through zero/tier.hpp and never asks which tier it
// has.

#include <concepts>
#include <cstddef>

#include <strata/core/policy.hpp>
#include <strata/policy/place.hpp>

namespace strata {

/// Where it computes: no offload.
struct Device {
    static constexpr Place place = Place::device;
    template <class Kept, std::size_t states, bool has_master>
    class state;
    template <class Element>
    class shards;
};

/// Host memory, pinned when there is a GPU.
struct Cpu {
    static constexpr Place place = Place::host;
    template <class Kept, std::size_t states, bool has_master>
    class state;
    template <class Element>
    class shards;
};

/// Files on a local disk, a few windows of them in host memory.
struct Nvme {
    static constexpr Place place = Place::disk;
    template <class Kept, std::size_t states, bool has_master>
    class state;
    template <class Element>
    class shards;
};

/// A tier says where it is and brings two classes:
///
///   place    what it is beside the compute device: state on a tier of Place::device is not offloaded
///   state    keeps this rank's share of the update rule's states, and of the master weights where there are some
///   shards   keeps this rank's shares of the parameters under ZeroStage<3>, between the uses of a unit, or its sums of
///            gradients under ZeroStage<2> and <3>, between their reduction and the update
///
/// They may be incomplete here. What they do is zero::TierState and zero::TierShards (zero/tier.hpp), checked where a
/// trainer is made, and what that means testing::tier_failures() (testing/tier_conformance.hpp). A tier that derives
/// from another one has the other one's classes where it brings none itself.
template <class T>
concept OffloadTier = requires {
    { T::place } -> std::convertible_to<Place>;
    typename detail::Constant<static_cast<Place>(T::place)>;
    typename T::template state<float, 2, true>;
    typename T::template shards<float>;
};

static_assert(OffloadTier<Device> && OffloadTier<Cpu> && OffloadTier<Nvme> && !OffloadTier<int>);

namespace detail {

/// T, or Device in its place after the sentence that T is no tier, so that no second error follows.
template <class T>
struct TierOrDevice {
    using type = Device;
};
template <OffloadTier T>
struct TierOrDevice<T> {
    using type = T;
};

}  // namespace detail

}  // namespace strata
