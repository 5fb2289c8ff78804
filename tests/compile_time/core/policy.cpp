// tests/compile_time/core/policy.cpp - what counts as a policy, and how a pack is read.

#include <strata/core/policy.hpp>

namespace strata {
namespace {

namespace slot {
struct Update {};
struct Sharding {};
}  // namespace slot

struct Fast {
    using slot = slot::Update;
};
struct Slow {
    using slot = slot::Update;
};
struct Wide {
    using slot = slot::Sharding;
};
struct Default {};
struct NoPolicy {
    static constexpr int stage = 2;
};

static_assert(Policy<Fast>);
static_assert(!Policy<NoPolicy>, "looking like a policy is not enough");
static_assert(!Policy<int> && !Policy<void> && !Policy<Fast&>);

static_assert(PolicyFor<Fast, slot::Update>);
static_assert(!PolicyFor<Fast, slot::Sharding>);
static_assert(!PolicyFor<NoPolicy, slot::Sharding>);

static_assert(std::same_as<select_t<slot::Update, Default>, Default>);
static_assert(std::same_as<select_t<slot::Update, Default, Wide>, Default>);
static_assert(std::same_as<select_t<slot::Update, Default, Wide, Fast>, Fast>, "the order of the pack is free");
static_assert(std::same_as<select_t<slot::Update, Default, Fast, Wide>, Fast>);
static_assert(std::same_as<select_t<slot::Update, Default, Slow, Fast>, Slow>, "the first of two");
static_assert(std::same_as<select_t<slot::Update, Default, int, NoPolicy, Fast>, Fast>, "no policy is in the way");

static_assert(count_of_v<slot::Update> == 0);
static_assert(count_of_v<slot::Update, Fast, Wide, Slow, int> == 2);

// A tag that says of its slot what a list of slots needs.
template <class Tag, class Default>
struct Described {
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Tag, Ps...> <= 1;
};
struct Pace : Described<Pace, Default> {
    static constexpr const char* name = "Pace";
    static constexpr const char* policy = "Steps<N>";
    template <class... Ps>
    struct Members {
        using pace = select_t<Pace, Default, Ps...>;
    };
};
struct Length : Described<Length, Default> {
    static constexpr const char* name = "Length";
    static constexpr const char* policy = "Metres<>";
    template <class... Ps>
    struct Members {
        using length = select_t<Length, Default, Ps...>;
    };
};
struct Quick {
    using slot = Pace;
};
static_assert(Slot<Pace> && !Slot<slot::Update> && !Slot<int>);
using Slots = SlotList<Pace, Length>;
static_assert(Slots::contains<Length> && !Slots::contains<slot::Update>);
static_assert(std::same_as<Slots::Members<Quick>::pace, Quick> && std::same_as<Slots::Members<Quick>::length, Default>);
static_assert(Slots::at_most_one_each<Quick, Fast> && !Slots::at_most_one_each<Quick, Quick>);
static_assert(Slots::policies_are_said_in("Steps<N> or Metres<>") && !Slots::policies_are_said_in("Steps or Metres<>"));
static_assert(Slots::templates_are_said_in("Steps and Metres") && !Slots::templates_are_said_in("Steps"));
static_assert(Slots::names_are_said_in("Pace, Length") && !Slots::names_are_said_in("Pace"));

}  // namespace
}  // namespace strata
