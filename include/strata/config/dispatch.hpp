#pragma once
// strata/config/dispatch.hpp - dispatch(): the composition that a configuration asks for, of those that a program has.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <strata/config/combinations.hpp>
#include <strata/config/composition_of.hpp>
#include <strata/config/findings.hpp>
#include <strata/config/intent.hpp>
#include <strata/core/inline.hpp>
#include <strata/policy/policy_name.hpp>

namespace strata::config {

/// A composition that a program has.
struct Listed {
    static constexpr std::size_t slots = 11;  ///< those that a configuration has words for

    Composition composition;  ///< in the words of a configuration
    /// Its policies as they are typed, those of a program's own included: "ZeroStage<2>", "OffloadTarget<Cpu>".
    std::array<std::string, slots> (*policies)() = nullptr;
    bool has_exceptions = false;  ///< Precision<Format, Except<...>>, for which no configuration has a word
};

namespace detail {

/// OffloadTarget has three roles, so its name is made of the tier's.
template <class Setup>
std::array<std::string, Listed::slots> policies_of() {
    const auto name = [](std::string_view text) { return std::string{text}; };
    return {name(policy_name_v<typename Setup::sharding>),
            "OffloadTarget<" + name(type_name_v<typename Setup::offload::tier>) + ">",
            "OffloadTarget<" + name(type_name_v<typename Setup::parameter_offload::tier>) + ", Parameters>",
            name(policy_name_v<typename Setup::optimizer>),
            name(policy_name_v<typename Setup::precision>),
            name(policy_name_v<typename Setup::recompute>),
            name(policy_name_v<typename Setup::averaging>),
            "OffloadTarget<" + name(type_name_v<typename Setup::gradient_offload::tier>) + ", Gradients>",
            name(policy_name_v<typename Setup::timing>),
            name(policy_name_v<typename Setup::adaptation>),
            name(policy_name_v<typename Setup::frozen_weights>)};
}

template <class List>
struct ListOf;
template <class... Setups>
struct ListOf<Combinations<Setups...>> {
    static constexpr std::array<Listed, sizeof...(Setups)> all{
        Listed{composition_of<Setups>(), &policies_of<Setups>,
               strata::detail::has_exceptions_v<typename Setups::precision>}...};
};

/// A call of the visitor for every composition.
template <class List, class Visitor>
struct CallsOf;
template <class First, class... Setups, class Visitor>
struct CallsOf<Combinations<First, Setups...>, Visitor> {
    using Result = std::invoke_result_t<Visitor&, First>;
    static_assert(
        (std::is_same_v<Result, std::invoke_result_t<Visitor&, Setups>> && ...),
        "config::dispatch() returns what its visitor returns, so it returns the same type for every composition.");

    template <class Setup>
    static Result call(Visitor& visitor) {
        return visitor(Setup{});
    }
    static constexpr std::array<Result (*)(Visitor&), 1 + sizeof...(Setups)> all{&call<First>, &call<Setups>...};
};

}  // namespace detail

/// The compositions of a list, in its order.
///
///   List  Combinations<...> or Each<...>
template <class List>
inline constexpr std::span<const Listed> listed_v = detail::ListOf<flat_t<List>>::all;

/// Number in the list of the first composition that does all that is wanted. What is not said may be anything, with these
/// exceptions: gradients on a tier, updates in backward and Except<...>, which take numbers of their own to be of use; and
/// adapters and quantised weights, which train something else than the model. One
/// with fewer of these goes before one with more, wherever it stands, unless they are asked for. Where parameters are kept
/// says nothing below stage 3, and where gradients are kept nothing below stage 2, which have no shards of them.
///
/// Local. Throws Errc::no_composition, naming what is wanted, the nearest that there is, the keys that make the
/// difference, and the list.
///
///   list      at least one
///   findings  say which keys a policy comes from; nullptr: the sentence names policies only
[[nodiscard]] std::size_t choose(const Composition& wanted, std::span<const Listed> list,
                                 const Findings* findings = nullptr);

/// Calls `visitor(setup)` with an object of the first type Setup<...> in the list that does all that the configuration
/// says, and returns what the visitor returns: the same type for all of them. The visitor is compiled for every one.
///
///   config::dispatch(intent, MyCombinations{}, [&](auto setup) { train<decltype(setup)>(...); });
///
///   list  Combinations<...> or Each<...>
/// Local. Throws Errc::no_composition.
template <class List, class Visitor>
decltype(auto) dispatch(const Intent& intent, const Findings* findings, List, Visitor&& visitor) {
    using Calls = detail::CallsOf<flat_t<List>, std::remove_reference_t<Visitor>>;
    return Calls::all[choose(intent.composition, listed_v<List>, findings)](visitor);
}
template <class List, class Visitor>
decltype(auto) dispatch(const Intent& intent, List list, Visitor&& visitor) {
    return dispatch(intent, nullptr, list, std::forward<Visitor>(visitor));
}

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/dispatch.ipp>
#endif
