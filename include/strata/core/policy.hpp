#pragma once
// strata/core/policy.hpp - what a policy is, and how a pack of them in any order is read.
//
// A policy is an empty type that says which slot it fills (`using slot = slot::Sharding;`) and
// carries constants that rules read. A composition takes policies in any order, at most one of each
// slot; a slot nobody fills has a default. Which slots there are is said in policy/slots.hpp.

#include <concepts>
#include <type_traits>

namespace strata {

/// Nominal: a type is a policy because it says so, not because it happens to have the right members.
template <class P>
concept Policy = std::is_object_v<P> && requires {
    typename P::slot;
};

template <class P, class Slot>
concept PolicyFor = Policy<P> && std::same_as<typename P::slot, Slot>;

namespace detail {

/// In a requires-expression: `typename Constant<P::place>` asks that the value is known to the compiler. A `static const`
/// that is defined elsewhere has the right type too, and fails later, wherever it is first needed.
template <auto>
struct Constant;

}  // namespace detail

/// The first policy in Ps... that fills Slot, else Default.
///
/// Two policies of one slot are a mistake that rule::OneOfEachKind reports; Select alone takes the
/// first one, so that nothing else goes wrong before that sentence is printed.
template <class Slot, class Default, class... Ps>
struct Select {
    using type = Default;
};
template <class Slot, class Default, class P, class... Ps>
struct Select<Slot, Default, P, Ps...> : Select<Slot, Default, Ps...> {};
template <class Slot, class Default, PolicyFor<Slot> P, class... Ps>
struct Select<Slot, Default, P, Ps...> {
    using type = P;
};
template <class Slot, class Default, class... Ps>
using select_t = typename Select<Slot, Default, Ps...>::type;

/// How many of Ps... fill Slot.
template <class Slot, class... Ps>
inline constexpr int count_of_v = (0 + ... + static_cast<int>(PolicyFor<Ps, Slot>));

/// What a slot's tag says of its slot. The tag stands in one file with the policies that fill it; no other file
/// knows it.
///
///   name, policy        its own name, and what a user types to fill it: words that sentences have to say
///   Members<Ps...>      what a composition has of it: aliases of the policies among Ps... that fill it, or of defaults
///   at_most_one<Ps...>  false where two of Ps... would both have to act
///   broken<P>           what a policy P of this slot breaks by itself, or rule::None; read for known slots only
template <class S>
concept Slot = std::is_empty_v<S> && requires {
    { S::name } -> std::convertible_to<const char*>;
    { S::policy } -> std::convertible_to<const char*>;
    typename S::template Members<>;
    { S::template at_most_one<> } -> std::convertible_to<bool>;
};

namespace detail {

/// A std::string_view would make every composition's header three times as long to compile.
///
///   end  of the word, before its last character
constexpr bool is_said_in(const char* sentence, const char* word, char end = '\0') noexcept {
    for (; *sentence != '\0'; ++sentence) {
        const char* at = sentence;
        const char* wanted = word;
        while (*wanted != '\0' && *wanted != end && *at == *wanted) ++at, ++wanted;
        if (*wanted == '\0' || *wanted == end) return true;
    }
    return false;
}
static_assert(is_said_in("use Ema<>", "Ema<>") && !is_said_in("use Ema", "Ema<>") &&
              is_said_in("use Ema", "Ema<>", '<'));

}  // namespace detail

/// The slots that there are, each once.
template <class... Slots>
struct SlotList {
    template <class S>
    static constexpr bool contains = (std::same_as<S, Slots> || ...);

    /// What a composition of Ps... has, whether or not its rules hold.
    template <class... Ps>
    struct Members : Slots::template Members<Ps...>... {};

    /// True unless two of Ps... would both have to act in one slot.
    template <class... Ps>
    static constexpr bool at_most_one_each = (Slots::template at_most_one<Ps...> && ...);

    /// Whether a sentence says of every slot how it is filled, and what its tag's name is. static_assert wants a
    /// literal, so that sentences cannot be made of the list; they can be held to it.
    [[nodiscard]] static constexpr bool policies_are_said_in(const char* sentence) noexcept {
        return (detail::is_said_in(sentence, Slots::policy) && ...);
    }
    /// The same without the policies' arguments: "one Precision".
    [[nodiscard]] static constexpr bool templates_are_said_in(const char* sentence) noexcept {
        return (detail::is_said_in(sentence, Slots::policy, '<') && ...);
    }
    [[nodiscard]] static constexpr bool names_are_said_in(const char* sentence) noexcept {
        return (detail::is_said_in(sentence, Slots::name) && ...);
    }
};

}  // namespace strata
