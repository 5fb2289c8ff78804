#pragma once
// strata/policy/split.hpp - Split<First, Second, Percent>: a tier made of two.

#include <cstddef>

#include <strata/core/rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>

namespace strata {

namespace rule {

template <class First, class Second, int Percent>
struct SplitIsOfTwoTiers {
    static constexpr bool holds = OffloadTier<First> && OffloadTier<Second> && 0 <= Percent && Percent <= 100;
    struct Report {
        static_assert(holds,
                      "[ST0120] Split<First, Second, Percent> keeps Percent of 100 elements on one tier and the others "
                      "on a second one. Fix: type two tiers and a whole number from 0 to 100, as in Split<Cpu, Nvme, "
                      "30>.");
    };
};

}  // namespace rule

/// Keeps a part of every rank's elements on one tier and the rest on another: as much state on the device, or in host
/// memory, as there is room for. DeepSpeed calls the same `ratio` (ZeRO-Offload++).
///
///   OffloadTarget<Split<Cpu, Nvme, 30>>     30 % of the state in host memory, 70 % on disk
///   OffloadTarget<Split<Device, Cpu, 20>>   20 % updated by the device, 80 % by the host
///
/// Of state, the first Percent of a rank's elements are on First, in whole buckets but for one, which is cut; passes
/// are in the order of one tier, and so are bits. Parameter shards are split as wholes, spread over the model. A part
/// may be a Split.
///
///   Percent  0 to 100
template <class First, class Second, int Percent>
struct Split {
    using broken = rule::first_broken_t<rule::SplitIsOfTwoTiers<First, Second, Percent>, rule::broken_alone_t<First>,
                                        rule::broken_alone_t<Second>>;
    using first = typename detail::TierOrDevice<First>::type;
    using second = typename detail::TierOrDevice<Second>::type;
    static constexpr int percent = Percent;
    static constexpr Place place = first::place < second::place ? second::place : first::place;  // the farther one

    template <class Kept, std::size_t states, bool has_master>
    class state;
    template <class Element>
    class shards;
};

static_assert(OffloadTier<Split<Cpu, Nvme, 30>> && Split<Device, Cpu, 20>::place == Place::host);

}  // namespace strata
