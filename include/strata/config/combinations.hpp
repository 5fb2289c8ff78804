#pragma once
// strata/config/combinations.hpp - Combinations<...>: compositions to choose from, written as lists and products.

#include <type_traits>

#include <strata/core/rule.hpp>
#include <strata/policy/setup.hpp>

namespace strata::config {

/// Compositions that a program has, each compiled into it: Setup<...>, and other Combinations, Each<...> among them.
///
///   Combinations<Setup<ZeroStage<2>>, Setup<ZeroStage<3>, OffloadTarget<Nvme>>>
///
/// Order matters where a configuration leaves something open: the first that does all it says is taken.
template <class... Setups>
struct Combinations {};

/// Policies that go together, or none: what a composition is made of.
template <class... Ps>
struct Policies {};

/// One of several: policies, or Policies<...> where a choice is of more than one policy, or of none.
template <class... Choices>
struct AnyOf {};

namespace detail {

template <class... Lists>
struct Joined {
    using type = Combinations<>;
};
template <class... Setups>
struct Joined<Combinations<Setups...>> {
    using type = Combinations<Setups...>;
};
template <class... As, class... Bs, class... Lists>
struct Joined<Combinations<As...>, Combinations<Bs...>, Lists...> : Joined<Combinations<As..., Bs...>, Lists...> {};

template <class Setup>
struct Flat {
    using type = Combinations<Setup>;
};
template <class... Setups>
struct Flat<Combinations<Setups...>> : Joined<typename Flat<Setups>::type...> {};

/// A choice as a list of Policies.
template <class P>
struct ChoicesOf {
    using type = AnyOf<Policies<P>>;
};
template <class... Ps>
struct ChoicesOf<Policies<Ps...>> {
    using type = AnyOf<Policies<Ps...>>;
};
template <class... Lists>
struct JoinedChoices {
    using type = AnyOf<>;
};
template <class... As>
struct JoinedChoices<AnyOf<As...>> {
    using type = AnyOf<As...>;
};
template <class... As, class... Bs, class... Lists>
struct JoinedChoices<AnyOf<As...>, AnyOf<Bs...>, Lists...> : JoinedChoices<AnyOf<As..., Bs...>, Lists...> {};
template <class... Choices>
struct ChoicesOf<AnyOf<Choices...>> : JoinedChoices<typename ChoicesOf<Choices>::type...> {};

/// Every one of the first list with every one of the second.
template <class A, class Bs>
struct WithEach;
template <class... As, class... Bs>
struct WithEach<Policies<As...>, AnyOf<Bs...>> {
    template <class B>
    struct Both;
    template <class... Ps>
    struct Both<Policies<Ps...>> {
        using type = Policies<As..., Ps...>;
    };
    using type = AnyOf<typename Both<Bs>::type...>;
};
template <class Done, class... Lists>
struct Product {
    using type = Done;
};
template <class... Dones, class List, class... Lists>
struct Product<AnyOf<Dones...>, List, Lists...>
    : Product<typename JoinedChoices<typename WithEach<Dones, List>::type...>::type, Lists...> {};

/// The Setup of these policies. Left out when only the way in which they are put together breaks a rule: a product has
/// such ones. What is no policy, or two of a kind, is a mistake wherever it stands, and Setup says which.
template <class Chosen>
struct SetupOfPolicies;
template <class... Ps>
struct SetupOfPolicies<Policies<Ps...>> {
    static constexpr bool can_be_read =
        rule::first_broken_t<rule::OnlyPolicies<Ps...>, broken_policy_t<Ps>..., rule::OneOfEachKind<Ps...>>::holds;
    static constexpr bool is_left_out = can_be_read && !broken_rule_t<Ps...>::holds;
    using type = std::conditional_t<is_left_out, Combinations<>, Combinations<Setup<Ps...>>>;
};

template <class List>
struct SetupsOf;
template <class... Chosen>
struct SetupsOf<AnyOf<Chosen...>> : Joined<typename SetupOfPolicies<Chosen>::type...> {};

}  // namespace detail

/// Every choice with every other, as Combinations. Those that break a rule, such as ZeroStage<0> with
/// OffloadTarget<Cpu>, are left out.
///
///   Each<AnyOf<ZeroStage<1>, ZeroStage<2>>, AnyOf<Optimizer<AdamW>, Optimizer<Lion>>, Precision<Bf16>>    four
///
///   Choices  policies, AnyOf<...>, Policies<...>; the last one varies fastest
template <class... Choices>
using Each = typename detail::SetupsOf<
    typename detail::Product<AnyOf<Policies<>>, typename detail::ChoicesOf<Choices>::type...>::type>::type;

/// Combinations without Combinations in them.
template <class List>
using flat_t = typename detail::Flat<List>::type;

static_assert(
    std::is_same_v<Each<AnyOf<ZeroStage<0>, ZeroStage<1>>, AnyOf<Policies<>, OffloadTarget<Cpu>>>,
                   Combinations<Setup<ZeroStage<0>>, Setup<ZeroStage<1>>, Setup<ZeroStage<1>, OffloadTarget<Cpu>>>>);

}  // namespace strata::config
