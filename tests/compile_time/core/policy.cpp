// tests/compile_time/core/policy.cpp - what counts as a policy, and how a pack is read.

#include <strata/core/policy.hpp>

namespace strata {
namespace {

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

static_assert(is_known_slot_v<slot::Numerics>);
static_assert(!is_known_slot_v<Default>);

}  // namespace
}  // namespace strata
