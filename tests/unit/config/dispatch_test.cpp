#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include <strata/config/dispatch.hpp>
#include <strata/policy/policy_name.hpp>

#include "temporary_json.hpp"

namespace mine {

/// A sharding for which no configuration has a word.
struct Sharding {
    using slot = strata::slot::Sharding;
    static constexpr strata::ShardedOver shards_state = strata::ShardedOver::world;
    static constexpr strata::ShardedOver shards_gradients = strata::ShardedOver::nothing;
    static constexpr strata::ShardedOver shards_parameters = strata::ShardedOver::nothing;
};

}  // namespace mine

namespace {

using namespace strata;
using namespace strata::config;
using strata_test::thrown_by;

//! [list]
using Products = Each<AnyOf<ZeroStage<0>, ZeroStage<1>, ZeroStage<2>, ZeroStage<3>>,
                      AnyOf<OffloadTarget<Device>, OffloadTarget<Cpu>, OffloadTarget<Nvme>>,
                      AnyOf<Optimizer<AdamW>, Optimizer<Lion>>>;
//! [list]

/// The composition that was chosen, as it is written.
template <class List>
std::string chosen(const Composition& wanted) {
    Intent intent;
    intent.composition = wanted;
    return dispatch(intent, List{}, [](auto setup) { return policies(composition_of<decltype(setup)>()); });
}

TEST(Dispatch, TypesAreDescribedInTheWordsOfAConfiguration) {
    using Everything = strata::Setup<ZeroStage<3>, OffloadTarget<Split<Cpu, Nvme, 30>>, OffloadTarget<Nvme, Parameters>,
                                     Optimizer<Lion>, Precision<PureBf16>, Recompute<EveryOther<2>>, Ema<Device>>;
    EXPECT_EQ(composition_of<Everything>(), (Composition{.stage = 3,
                                                         .state = KeptOn{TierName::cpu, TierName::nvme, 30},
                                                         .parameters = KeptOn::all_on(TierName::nvme),
                                                         .rule = RuleName::lion,
                                                         .precision = FormatName::pure_bf16,
                                                         .recompute = 2,
                                                         .average = AverageName::device,
                                                         .gradients = KeptOn{},
                                                         .moment = MomentName::after_backward,
                                                         .adapter = AdapterName::none,
                                                         .frozen = FrozenName::as_computed}));
    using Gradients = strata::Setup<ZeroStage<2>, OffloadTarget<Cpu, OptimizerState, Gradients>>;
    EXPECT_EQ(composition_of<Gradients>().gradients, KeptOn::all_on(TierName::cpu));
    EXPECT_EQ(composition_of<strata::Setup<strata::Update<InBackward>>>().moment, MomentName::in_backward);
    EXPECT_EQ(composition_of<strata::Setup<>>(), Composition{}.completed());
    // A split with nothing on one side is a whole tier.
    using Whole = strata::Setup<ZeroStage<1>, OffloadTarget<Split<Cpu, Nvme, 0>>>;
    EXPECT_EQ(composition_of<Whole>().state, KeptOn::all_on(TierName::nvme));
    // What a configuration cannot say is empty.
    EXPECT_EQ(composition_of<strata::Setup<mine::Sharding>>().stage, std::nullopt);
    using Nested = strata::Setup<ZeroStage<1>, OffloadTarget<Split<Split<Device, Cpu, 50>, Nvme, 30>>>;
    EXPECT_EQ(composition_of<Nested>().state, std::nullopt);
}

TEST(Dispatch, EveryNameOfAConfigurationHasItsType) {
    // policies() writes C++ for people and for generated code; what it writes is what the types are called.
    EXPECT_EQ(policies(composition_of<strata::Setup<Optimizer<Adagrad>>>()), policy_name_v<Optimizer<Adagrad>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Optimizer<Adam>>>()), policy_name_v<Optimizer<Adam>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Optimizer<Lamb>>>()), policy_name_v<Optimizer<Lamb>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Optimizer<Lion>>>()), policy_name_v<Optimizer<Lion>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Optimizer<Sgd>>>()), policy_name_v<Optimizer<Sgd>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Precision<Bf16>>>()), policy_name_v<Precision<Bf16>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Precision<Fp16>>>()), policy_name_v<Precision<Fp16>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Precision<PureBf16>>>()), policy_name_v<Precision<PureBf16>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Recompute<Blocks>>>()), policy_name_v<Recompute<Blocks>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Recompute<EveryOther<3>>>>()),
              policy_name_v<Recompute<EveryOther<3>>>);
    EXPECT_EQ(policies(composition_of<strata::Setup<Ema<Device>>>()), policy_name_v<Ema<Device>>);
    using Both = strata::Setup<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>;
    EXPECT_EQ(policies(composition_of<Both>()), "ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>");
    EXPECT_EQ(policies(composition_of<strata::Setup<strata::Update<InBackward>>>()),
              policy_name_v<strata::Update<InBackward>>);
    using Gradients = strata::Setup<ZeroStage<2>, OffloadTarget<Cpu, strata::Gradients>>;
    EXPECT_EQ(policies(composition_of<Gradients>()), "ZeroStage<2>, OffloadTarget<Cpu, Gradients>");
}

TEST(Dispatch, AProductLeavesOutWhatCannotBeComposed) {
    // Stage 0 has no state to move: 3 stages x 3 tiers x 2 rules, and 1 x 1 x 2.
    EXPECT_EQ(listed_v<Products>.size(), 20U);
    using Choice = Each<AnyOf<Policies<>, Policies<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>>>;
    EXPECT_TRUE(
        (std::is_same_v<Choice,
                        Combinations<strata::Setup<>,
                                     strata::Setup<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>>>));
    // Lists in lists, in their order.
    EXPECT_TRUE(
        (std::is_same_v<flat_t<Combinations<strata::Setup<ZeroStage<1>>, Combinations<Combinations<>, Choice>>>,
                        Combinations<strata::Setup<ZeroStage<1>>, strata::Setup<>,
                                     strata::Setup<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>>>));
}

TEST(Dispatch, TheFirstThatDoesAllThatIsSaidIsTaken) {
    EXPECT_EQ(chosen<Products>({}), "");
    EXPECT_EQ(chosen<Products>({.rule = RuleName::lion}), "Optimizer<Lion>");
    EXPECT_EQ(chosen<Products>({.stage = 2, .state = KeptOn::all_on(TierName::nvme)}),
              "ZeroStage<2>, OffloadTarget<Nvme>");
    EXPECT_EQ(chosen<Products>({.state = KeptOn{TierName::cpu, TierName::nvme, 100}}),
              "ZeroStage<1>, OffloadTarget<Cpu>");
    // Below stage 3 there are no shards of parameters to keep anywhere.
    EXPECT_EQ(chosen<Products>({.stage = 1, .parameters = KeptOn::all_on(TierName::cpu)}), "ZeroStage<1>");
    // What nobody can ask for is there for those who do not ask.
    using Own = Combinations<strata::Setup<mine::Sharding>, strata::Setup<ZeroStage<2>>>;
    const auto number = [](const Composition& wanted) { return choose(wanted, listed_v<Own>); };
    EXPECT_EQ(number({}), 0U);
    EXPECT_EQ(number({.stage = 2}), 1U);
}

TEST(Dispatch, WhatWantsNumbersOfItsOwnIsTakenOnlyWhereItIsAskedForOrNothingElseIsThere) {
    using Special = Combinations<strata::Setup<ZeroStage<2>, Precision<Bf16, Except<Fp32>>>,
                                 strata::Setup<ZeroStage<2>, strata::Update<InBackward>>,
                                 strata::Setup<ZeroStage<2>, OffloadTarget<Cpu, Gradients>>,
                                 strata::Setup<ZeroStage<2>, Optimizer<AdamW>>>;
    const auto number = [](const Composition& wanted) { return choose(wanted, listed_v<Special>); };
    EXPECT_EQ(number({}), 3U) << "the plain one, wherever it stands";
    EXPECT_EQ(number({.stage = 2}), 3U);
    EXPECT_EQ(number({.stage = 2, .moment = MomentName::in_backward}), 1U);
    EXPECT_EQ(number({.stage = 2, .gradients = KeptOn::all_on(TierName::cpu)}), 2U);
    EXPECT_EQ(number({.gradients = KeptOn{}, .moment = MomentName::after_backward}), 3U);
    using Only = Combinations<strata::Setup<strata::Update<InBackward>>>;
    EXPECT_EQ(choose({}, listed_v<Only>), 0U) << "there is no other";
    // A program that has none says so by name.
    Intent intent;
    intent.composition = {.stage = 2, .gradients = KeptOn::all_on(TierName::cpu), .moment = MomentName::in_backward};
    using Plain = Combinations<strata::Setup<ZeroStage<2>>>;
    const auto error = thrown_by([&] { dispatch(intent, Plain{}, [](auto) {}); });
    EXPECT_TRUE(
        error.says("no composition with ZeroStage<2>, OffloadTarget<Cpu, Gradients>, Update<InBackward>; the "
                   "nearest has OffloadTarget<Device, Gradients>, Update<AfterBackward> in place of"))
        << error.message;
    // An exception is no format that a configuration can ask for.
    using Excepting = Combinations<strata::Setup<Precision<Bf16, Except<Fp32>>>>;
    intent.composition = {.precision = FormatName::bf16};
    const auto other = thrown_by([&] { dispatch(intent, Excepting{}, [](auto) {}); });
    EXPECT_TRUE(other.says("the nearest has Precision<Bf16, Except<Fp32>> in place of Precision<Bf16>"))
        << other.message;
    // Below stage 2 no rank has a share of the gradients to keep anywhere.
    intent.composition = {.stage = 1, .gradients = KeptOn::all_on(TierName::cpu)};
    EXPECT_NO_THROW(dispatch(intent, Combinations<strata::Setup<ZeroStage<1>>>{}, [](auto) {}));
}

TEST(Dispatch, VisitorsGetTheTypeAndReturnWhatTheyLike) {
    Intent intent;
    intent.composition.stage = 3;
    int calls = 0;
    const int stage = dispatch(intent, Products{}, [&](auto setup) {
        ++calls;
        return decltype(setup)::sharding::stage;
    });
    EXPECT_EQ(stage, 3);
    EXPECT_EQ(calls, 1);
    dispatch(intent, Products{}, [&](auto) { ++calls; });
    EXPECT_EQ(calls, 2);
}

TEST(Dispatch, ARefusalNamesTheNearestTheKeysAndTheListInFewWords) {
    Intent intent;
    intent.composition = {.stage = 2, .state = KeptOn::all_on(TierName::cpu), .rule = RuleName::lamb};
    Findings findings;
    Finding stage, rule;
    stage.effect = rule.effect = Effect::acts;
    stage.key = "zero_optimization.stage";
    stage.to = "ZeroStage<2>";
    rule.place = "ds.json:9:17";
    rule.key = "optimizer.type";
    rule.to = "Optimizer<Lamb>";
    findings.add(stage);
    findings.add(rule);
    const auto visit = [](auto) {};
    const auto named = thrown_by([&] { dispatch(intent, &findings, Products{}, visit); });
    EXPECT_EQ(named.code, Errc::no_composition);
    EXPECT_EQ(named.message,
              "[ST2107] this program has no composition with ZeroStage<2>, OffloadTarget<Cpu>, Optimizer<Lamb>; the "
              "nearest has Optimizer<AdamW> in place of Optimizer<Lamb>, of 20 that there are: (1) ZeroStage<0> x "
              "OffloadTarget<Device> x Optimizer<AdamW>, <Lion>; (2) ZeroStage<1>, <2>, <3> x OffloadTarget<Cpu>, "
              "<Device>, <Nvme> x Optimizer<AdamW>, <Lion>. Fix: change optimizer.type (ds.json:9:17), for "
              "Optimizer<AdamW>; or add the composition to the program's list and build it again.");
    const auto unnamed = thrown_by([&] { dispatch(intent, Products{}, visit); });
    EXPECT_TRUE(unnamed.says("Fix: ask for Optimizer<AdamW> in place of Optimizer<Lamb>; or add the composition"))
        << unnamed.message;
}

TEST(Dispatch, TheNearestDiffersInTheFewestPolicies) {
    Intent intent;
    intent.composition = {.stage = 0, .state = KeptOn::all_on(TierName::nvme), .precision = FormatName::bf16};
    using Few = Combinations<strata::Setup<>, strata::Setup<ZeroStage<1>, OffloadTarget<Nvme>, Precision<Bf16>>>;
    const auto error = thrown_by([&] { dispatch(intent, Few{}, [](auto) {}); });
    EXPECT_TRUE(error.says(
        "this program has no composition with ZeroStage<0>, OffloadTarget<Nvme>, Precision<Bf16>; the nearest has "
        "ZeroStage<1> in place of ZeroStage<0>, of 2 that there are: (1) ZeroStage<0> x OffloadTarget<Device> x "
        "Precision<Fp32>; (2) ZeroStage<1> x OffloadTarget<Nvme> x Precision<Bf16>."))
        << error.message;
    // Policies of a program's own are in the list by their names.
    intent.composition = {.stage = 3};
    const auto own = thrown_by([&] { dispatch(intent, Combinations<strata::Setup<mine::Sharding>>{}, [](auto) {}); });
    EXPECT_TRUE(own.says("the nearest has mine::Sharding in place of ZeroStage<3>")) << own.message;
}

}  // namespace
