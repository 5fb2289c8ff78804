#pragma once
// strata/config/impl/dispatch.ipp - choosing a composition, and the sentence where there is none to choose.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <strata/config/dispatch.hpp>
#include <strata/core/error.hpp>

namespace strata::config {
namespace detail {

using SlotTexts = std::array<std::string, Listed::slots>;
using Slots = std::array<bool, Listed::slots>;

/// Of what is wanted, what a composition has to be compared by: in one form, and nothing of shards that there are not.
STRATA_INLINE Composition comparable(Composition wanted) {
    if (wanted.state) wanted.state = simplified(*wanted.state);
    if (wanted.parameters) wanted.parameters = simplified(*wanted.parameters);
    if (wanted.gradients) wanted.gradients = simplified(*wanted.gradients);
    if (wanted.stage && *wanted.stage < 3) wanted.parameters.reset();
    if (wanted.stage && *wanted.stage < 2) wanted.gradients.reset();
    return wanted;
}

/// Which slots are wanted and different.
STRATA_INLINE Slots differences(const Composition& wanted, const Composition& has) {
    const auto differs = [](const auto& said, const auto& there) { return said && said != there; };
    return {differs(wanted.stage, has.stage),           differs(wanted.state, has.state),
            differs(wanted.parameters, has.parameters), differs(wanted.rule, has.rule),
            differs(wanted.precision, has.precision),   differs(wanted.recompute, has.recompute),
            differs(wanted.average, has.average),       differs(wanted.gradients, has.gradients),
            differs(wanted.moment, has.moment),         differs(wanted.adapter, has.adapter),
            differs(wanted.frozen, has.frozen)};
}

/// Policies as they are typed; empty where nothing is wanted.
STRATA_INLINE SlotTexts typed(const Composition& wanted) {
    SlotTexts text;
    if (wanted.stage) text[0] = "ZeroStage<" + std::to_string(*wanted.stage) + ">";
    if (wanted.state) text[1] = "OffloadTarget<" + type_name(*wanted.state) + ">";
    if (wanted.parameters) text[2] = "OffloadTarget<" + type_name(*wanted.parameters) + ", Parameters>";
    if (wanted.rule) text[3] = "Optimizer<" + type_name(*wanted.rule) + ">";
    if (wanted.precision) text[4] = "Precision<" + type_name(*wanted.precision) + ">";
    if (wanted.recompute)
        text[5] = *wanted.recompute == 0   ? "Recompute<Nothing>"
                  : *wanted.recompute == 1 ? "Recompute<Blocks>"
                                           : "Recompute<EveryOther<" + std::to_string(*wanted.recompute) + ">>";
    if (wanted.average)
        text[6] = *wanted.average == AverageName::none  ? "NoEma"
                  : *wanted.average == AverageName::cpu ? "Ema<Cpu>"
                                                        : "Ema<Device>";
    if (wanted.gradients) text[7] = "OffloadTarget<" + type_name(*wanted.gradients) + ", Gradients>";
    if (wanted.moment)
        text[8] = *wanted.moment == MomentName::in_backward ? "Update<InBackward>" : "Update<AfterBackward>";
    if (wanted.adapter)
        text[9] = *wanted.adapter == AdapterName::none ? "NoAdapter" : "Adapter<" + type_name(*wanted.adapter) + ">";
    if (wanted.frozen)
        text[10] = *wanted.frozen == FrozenName::as_computed ? "FrozenAsComputed"
                                                             : "FrozenWeights<" + type_name(*wanted.frozen) + ">";
    return text;
}

/// "ZeroStage<2>, OffloadTarget<Cpu>"; of those slots only.
STRATA_INLINE std::string joined(const SlotTexts& policies, const Slots& of) {
    std::string text;
    for (std::size_t slot = 0; slot < policies.size(); ++slot)
        if (of[slot] && !policies[slot].empty()) text += (text.empty() ? "" : ", ") + policies[slot];
    return text;
}

/// Compositions as a product: of every slot the policies it may have.
using SlotChoices = std::array<std::set<std::string>, Listed::slots>;

/// Products that together are the list, found by joining two that differ in one slot as long as there are such.
STRATA_INLINE std::vector<SlotChoices> products_of(std::span<const Listed> list) {
    std::vector<SlotChoices> products;
    for (const Listed& one : list) {
        const SlotTexts policies = one.policies();
        SlotChoices product;
        for (std::size_t slot = 0; slot < policies.size(); ++slot) product[slot] = {policies[slot]};
        if (std::find(products.begin(), products.end(), product) == products.end())
            products.push_back(std::move(product));
    }
    // The last slots first: there lists are most often whole products.
    for (bool joins = true; joins;) {
        joins = false;
        for (std::size_t slot = Listed::slots; slot-- > 0;) {
            for (std::size_t i = 0; i < products.size(); ++i) {
                for (std::size_t j = i + 1; j < products.size();) {
                    SlotChoices same = products[j];
                    same[slot] = products[i][slot];
                    if (same == products[i]) {
                        products[i][slot].merge(products[j][slot]);
                        products.erase(products.begin() + static_cast<std::ptrdiff_t>(j));
                        joins = true;
                    } else {
                        ++j;
                    }
                }
            }
        }
    }
    return products;
}

/// "OffloadTarget<Cpu>, <Nvme>": a template's name once.
STRATA_INLINE std::string choices(const std::set<std::string>& policies) {
    std::string text, last;
    for (const std::string& policy : policies) {
        const std::size_t bracket = std::min(policy.find('<'), policy.size());
        const std::string name = policy.substr(0, bracket);
        if (text.empty())
            text = policy;
        else
            text += ", " + (name == last && bracket < policy.size() ? policy.substr(bracket) : policy);
        last = name;
    }
    return text;
}

/// The list in as few words as it can be said, without slots that are alike in all of it and that nobody asked about.
STRATA_INLINE std::string compact(std::span<const Listed> list, const Slots& asked) {
    constexpr std::size_t most = 8;
    const std::vector<SlotChoices> products = products_of(list);
    Slots told = asked;
    for (const SlotChoices& product : products)
        for (std::size_t slot = 0; slot < told.size(); ++slot)
            told[slot] = told[slot] || product[slot] != products.front()[slot];
    std::string text;
    for (std::size_t i = 0; i < std::min(products.size(), most); ++i) {
        std::string one;
        for (std::size_t slot = 0; slot < told.size(); ++slot)
            if (told[slot] || products[i][slot].size() > 1)
                one += (one.empty() ? "" : " x ") + choices(products[i][slot]);
        if (products.size() > 1) one = "(" + std::to_string(i + 1) + ") " + one;
        text += (i == 0 ? "" : "; ") + one;
    }
    if (products.size() > most) text += "; and " + std::to_string(products.size() - most) + " more products";
    return text;
}

/// "optimizer.type (ds_config.json:4:17)": where a policy comes from; empty where nobody knows.
STRATA_INLINE std::string source_of(const std::string& policy, const Findings* findings) {
    if (findings == nullptr || policy.empty()) return {};
    for (const Finding& finding : findings->all())
        if (finding.to == policy && (finding.effect == Effect::acts || finding.effect == Effect::mapped))
            return finding.key.empty() ? finding.place : finding.key + " (" + finding.place + ")";
    return {};
}

[[noreturn]] STRATA_INLINE void refuse_composition(const Composition& wanted, const Listed& nearest,
                                                   std::span<const Listed> list, const Findings* findings) {
    const SlotTexts asked = typed(wanted);
    const SlotTexts has = nearest.policies();
    const Slots different = differences(wanted, nearest.composition);
    Slots said{};
    for (std::size_t slot = 0; slot < asked.size(); ++slot) said[slot] = !asked[slot].empty();
    std::string keys;
    for (std::size_t slot = 0; slot < asked.size(); ++slot)
        if (different[slot])
            if (const std::string key = source_of(asked[slot], findings); !key.empty())
                keys += (keys.empty() ? "change " : " and ") + key + ", for " + has[slot];
    const std::string instead = joined(has, different);
    const std::string fix = keys.empty() ? "ask for " + instead + " in place of " + joined(asked, different) : keys;
    throw Error{Errc::no_composition,
                "this program has no composition with " + joined(asked, said) + "; the nearest has " + instead +
                    " in place of " + joined(asked, different) + ", of " + std::to_string(list.size()) +
                    " that there are: " + compact(list, said),
                fix + "; or add the composition to the program's list and build it again"};
}

}  // namespace detail

STRATA_INLINE std::size_t choose(const Composition& wanted, std::span<const Listed> list, const Findings* findings) {
    const Composition asked = detail::comparable(wanted);
    /// Policies that are wanted and not there; then those that nobody asked for and that want numbers of their own.
    const auto distance = [&](const Listed& one) {
        const detail::Slots different = detail::differences(asked, one.composition);
        const Composition& has = one.composition;
        const int unasked = (!asked.gradients && has.gradients != KeptOn{} ? 1 : 0) +
                            (!asked.moment && has.moment == MomentName::in_backward ? 1 : 0) +
                            (!asked.adapter && has.adapter != AdapterName::none ? 1 : 0) +
                            (!asked.frozen && has.frozen != FrozenName::as_computed ? 1 : 0) +
                            (one.has_exceptions ? 1 : 0);
        return std::pair{std::count(different.begin(), different.end(), true), unasked};
    };
    const auto nearest = std::min_element(list.begin(), list.end(),
                                          [&](const Listed& a, const Listed& b) { return distance(a) < distance(b); });
    if (distance(*nearest).first != 0) detail::refuse_composition(asked, *nearest, list, findings);
    return static_cast<std::size_t>(nearest - list.begin());
}

}  // namespace strata::config
