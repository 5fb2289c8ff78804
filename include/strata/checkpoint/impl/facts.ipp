#pragma once
// strata/checkpoint/impl/facts.ipp - the comparison of facts.

#include <algorithm>
#include <string_view>

#include <strata/checkpoint/facts.hpp>

namespace strata::checkpoint {

STRATA_INLINE std::vector<FactChange> changes(const Facts& then, const Facts& now) {
    const auto value_in = [](const Facts& facts, std::string_view name) -> std::string {
        const auto found =
            std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == name; });
        return found == facts.end() ? "none" : found->second;
    };
    std::vector<FactChange> changed;
    for (const auto& [name, value] : now)
        if (std::string before = value_in(then, name); before != value)
            changed.push_back({name, std::move(before), value});
    for (const auto& [name, value] : then)
        if (value_in(now, name) == "none" && value != "none") changed.push_back({name, value, "none"});
    return changed;
}

}  // namespace strata::checkpoint
