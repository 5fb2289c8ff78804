#pragma once
// strata/config/impl/disagreements.ipp - two intents, member by member.

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include <strata/config/detail/quoted.hpp>
#include <strata/config/disagreements.hpp>
#include <strata/config/key.hpp>

namespace strata::config {

namespace detail {

inline std::string shown_scalar(const OptionScalar& scalar) {
    return std::visit(
        [](const auto& value) -> std::string {
            using Value = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, bool>)
                return value ? "true" : "false";
            else if constexpr (std::is_same_v<Value, std::string>)
                return detail::quoted(std::string_view{value});
            else if constexpr (std::is_same_v<Value, double>)
                return shown(value);
            else
                return std::to_string(value);
        },
        scalar);
}

}  // namespace detail

STRATA_INLINE std::vector<Disagreement> disagreements(const Intent& base, const Intent& above) {
    std::vector<Disagreement> all;
    const auto compare = [&](const auto& one, const auto& other, const auto& named) {
        if (one && other && *one != *other) all.push_back({named(*other), named(*one)});
    };
    const Composition &a = base.composition, &b = above.composition;
    compare(a.stage, b.stage, [](int stage) { return "ZeroStage<" + std::to_string(stage) + ">"; });
    const auto target = [](const char* what) {
        return [what](const KeptOn& kept) { return "OffloadTarget<" + type_name(kept) + what + ">"; };
    };
    compare(a.state, b.state, target(""));
    compare(a.parameters, b.parameters, target(", Parameters"));
    compare(a.gradients, b.gradients, target(", Gradients"));
    compare(a.rule, b.rule, [](RuleName rule) { return "Optimizer<" + type_name(rule) + ">"; });
    compare(a.precision, b.precision, [](FormatName format) { return "Precision<" + type_name(format) + ">"; });
    const auto named = [](const std::string& what) {
        return [what](std::int64_t number) { return what + std::to_string(number); };
    };
    compare(a.recompute, b.recompute, named("one of so many blocks computed again: "));
    compare(base.batch.micro, above.batch.micro, named("samples of a micro-batch: "));
    compare(base.batch.global, above.batch.global, named("samples of a step: "));
    compare(base.launch.ranks, above.launch.ranks, named("ranks: "));
    compare(base.launch.machines, above.launch.machines, named("machines: "));
    for (const OptionValue& mine : above.options) {
        const OptionValue* const other = base.find(mine.path);
        if (other == nullptr || mine.place.empty() || other->place.empty()) continue;  // a default that nobody wrote
        const auto x = base.number(mine.path), y = above.number(mine.path);
        if (x && y ? *x == *y : other->value == mine.value) continue;
        all.push_back({mine.path + " = " + detail::shown_scalar(mine.value), detail::shown_scalar(other->value)});
    }
    const bool have_rates = base.rate.index() != 0 && above.rate.index() != 0;
    if (have_rates && base.rate != above.rate) all.push_back({"its schedule of the learning rate", "that"});
    return all;
}

STRATA_INLINE std::string sentence(const std::vector<Disagreement>& all) {
    std::string text;
    for (const Disagreement& one : all) text += (text.empty() ? "" : "; ") + one.counts + " and not " + one.instead;
    return text;
}

}  // namespace strata::config
