// tests/compile_time/policy/slots.cpp - the one list of slots, and that its sentences name each of them.

#include <strata/policy/slots.hpp>

namespace strata {
namespace {

template <class>
inline constexpr bool all_are_slots = false;
template <class... Slots>
inline constexpr bool all_are_slots<SlotList<Slots...>> = (Slot<Slots> && ...);
static_assert(all_are_slots<all_slots>);

static_assert(is_known_slot_v<slot::Numerics> && KnownPolicy<Ema<>>);
struct OfAnotherHouse {
    struct slot {};
};
static_assert(!is_known_slot_v<Cpu> && Policy<OfAnotherHouse> && !KnownPolicy<OfAnotherHouse>);

// A slot that is added to the list and not to what a user reads fails here.
static_assert(all_slots::policies_are_said_in(rule::OnlyPolicies<>::sentence),
              "[ST0001] shows how each slot is filled");
static_assert(all_slots::names_are_said_in(rule::OnlyPolicies<>::sentence), "[ST0001] names each tag");
static_assert(all_slots::templates_are_said_in(rule::OneOfEachKind<>::sentence), "[ST0002] names each kind");

}  // namespace
}  // namespace strata
