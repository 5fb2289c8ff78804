#pragma once
// strata/train/adapter_facts.hpp - what checkpoints say of an adapter beside its tensors.

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <strata/adapters/saved_adapter.hpp>
#include <strata/checkpoint/facts.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/text.hpp>
#include <strata/options/adapter_options.hpp>

namespace strata::train {

namespace detail {

/// The name of the fact for layers with options of their own (LayerOptions::layers and also).
[[nodiscard]] inline std::string alpha_of_layers(const std::string& layers, const std::string& also) {
    return "alpha of " + layers + (also.empty() ? "" : " and " + also);
}

}  // namespace detail

/// What checkpoints say of an adapter: its kind, the layers that are asked for, and the kind's described numbers, words and flags; an alpha of 0
/// is the rank that it stands for, and layers with options of their own have their alpha. What an adapter begins with ("start") is no matter once it has begun.
template <class Kind>
[[nodiscard]] checkpoint::Facts adapter_facts(const AdapterOptions<Kind>& options) {
    using Options = typename Kind::Options;
    checkpoint::Facts facts{{"kind", std::string{Kind::name}}};
    visit_options<Options>([&](const auto& option) {
        using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
        const Member& value = options.kind.*option.member;
        if (option.name == "start") return;
        if constexpr (std::same_as<Member, bool>) {
            facts.emplace_back(option.name, value ? "true" : "false");
        } else if constexpr (std::is_enum_v<Member>) {
            for (const auto& known : option.values)
                if (known.value == value) facts.emplace_back(option.name, known.name);
        } else if constexpr (std::is_arithmetic_v<Member>) {
            auto number = static_cast<double>(value);
            if constexpr (requires { options.kind.rank; })
                if (option.name == "alpha" && number == 0) number = static_cast<double>(options.kind.rank);
            facts.emplace_back(option.name, core::shortest_text(number));
        } else if constexpr (std::same_as<Member, std::string>) {
            facts.emplace_back(option.name, value);
        }
    });
    if constexpr (requires {
                      options.kind.alpha;
                      options.kind.rank;
                  })
        for (const auto& own : options.by_layer)
            facts.emplace_back(detail::alpha_of_layers(own.layers, own.also),
                               core::shortest_text(own.options.alpha == 0 ? static_cast<double>(own.options.rank)
                                                                          : static_cast<double>(own.options.alpha)));
    facts.emplace_back("targets", options.targets);
    facts.emplace_back("excluded", options.excluded.empty() ? "none" : options.excluded);
    return facts;
}

/// What these facts say of the adapter's tensors. Nothing for a kind of one's own: its tensors are for its program alone.
[[nodiscard]] std::optional<adapters::AdapterFacts> facts_of_tensors(const checkpoint::Facts& facts);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/adapter_facts.ipp>
#endif
