// tests/compile_time/policy/nearly_policies.cpp - policies of one's own that are nearly right break a rule, and none of them an assertion
// of the compiler's own: a composition with one of them is one sentence.

#include <concepts>
#include <cstdint>

#include <strata/policy/setup.hpp>

namespace strata {
namespace nearly {

/// Whether a composition with P is refused by the rule, or by no rule at all.
template <template <class> class Rule, class P>
constexpr bool breaks = std::same_as<broken_rule_t<P>, Rule<P>>;
template <class... Ps>
constexpr bool holds = std::same_as<broken_rule_t<Ps...>, rule::None>;

// ---- facts whose values the compiler does not know -------------------------------------------------------------------

struct ShardsElsewhere : ZeroStage<1> {
    static const ShardedOver shards_state;
};
static_assert(breaks<rule::SaysWhatIsSharded, ShardsElsewhere>);
struct ShardsOverSeven : ZeroStage<1> {
    static constexpr ShardedOver shards_state{7};
};
static_assert(breaks<rule::SaysWhatIsSharded, ShardsOverSeven>, "no set of ranks that there is");

struct TierSomewhere : Cpu {
    static const Place place;
};
struct OffloadsThere {
    using slot = slot::Offload;
    using tier = TierSomewhere;
};
static_assert(!OffloadTier<TierSomewhere> && breaks<rule::OffloadNamesATier, OffloadsThere>);
static_assert(
    std::same_as<broken_rule_t<ZeroStage<1>, OffloadTarget<TierSomewhere>>, rule::FirstIsATier<TierSomewhere>>);
struct MovesWhoKnows {
    using slot = slot::Offload;
    using tier = Cpu;
    template <class State>
    static const bool moves;
};
static_assert(breaks<rule::OffloadNamesATier, MovesWhoKnows>);
struct MovesParameters {
    using slot = slot::Offload;
    using tier = Cpu;
    template <class State>
    static constexpr bool moves = std::same_as<State, Parameters>;
};
static_assert(holds<ZeroStage<3>, MovesParameters>);
static_assert(std::same_as<Setup<ZeroStage<3>, MovesParameters>::parameter_offload, MovesParameters>);

struct AverageSomewhere : Ema<> {
    static const Place place;
};
struct AverageSometimes : Ema<> {
    static const bool enabled;
};
static_assert(breaks<rule::AveragingBringsItsClass, AverageSomewhere> &&
              breaks<rule::AveragingBringsItsClass, AverageSometimes>);

struct UpdatesSometimes {
    static const bool in_backward;
};
struct UpdatesSometimesItself : UpdatesSometimes {
    using slot = slot::Timing;
};
static_assert(breaks<rule::TimingSaysWhen, UpdatesSometimesItself>);
static_assert(std::same_as<broken_rule_t<Update<UpdatesSometimes>>, rule::UpdatesAtAKnownMoment<UpdatesSometimes>>);

struct MasterSometimes : Precision<Bf16> {
    static const bool has_master;
};
static_assert(breaks<rule::PrecisionCanBeTrained, MasterSometimes>);

struct RecomputesAnyTime {
    static bool any;
    static bool recomputes(std::int32_t, std::int32_t) { return true; }
};
struct RecomputesAnyTimeItself : RecomputesAnyTime {
    using slot = slot::Activations;
};
static_assert(breaks<rule::RecomputeSaysWhich, RecomputesAnyTimeItself>);
static_assert(std::same_as<broken_rule_t<Recompute<RecomputesAnyTime>>, rule::RecomputesKnownUnits<RecomputesAnyTime>>);

// ---- calls of another shape ------------------------------------------------------------------------------------------

struct AsksAnObject {
    bool recomputes(std::int32_t, std::int32_t) const { return true; }
};
struct AnswersANumber {
    static int recomputes(std::int32_t, std::int32_t) { return 1; }
};
static_assert(!UnitPredicate<AsksAnObject> && !UnitPredicate<AnswersANumber>);

// ---- policies that are policies all the same -------------------------------------------------------------------------

static_assert(holds<const ZeroStage<1>> && Setup<const ZeroStage<1>>::sharding::stage == 1);
static_assert(!holds<ZeroStage<1>&> && !holds<ZeroStage<1>*>);
class Hidden : ZeroStage<1> {};
static_assert(std::same_as<broken_rule_t<Hidden>, rule::OnlyPolicies<Hidden>>, "its slot is private");

}  // namespace nearly
}  // namespace strata
