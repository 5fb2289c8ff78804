#pragma once
// strata/config/impl/deepspeed_optimizer.ipp - DeepSpeed's optimizer as a rule of strata's.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/peer_names.ipp>
#include <strata/config/peer_names.hpp>
#include <strata/config/reading.hpp>

namespace strata::config::detail {

/// Numbers that a rule has, by DeepSpeed's names, with DeepSpeed's defaults; not all of them are strata's.
struct RuleNumber {
    std::string_view key;     ///< "eps"
    std::string_view option;  ///< "epsilon"
    OptionScalar fallback;
};
inline std::vector<RuleNumber> numbers_of(RuleName rule) {
    const RuleNumber decay{"weight_decay", "weight_decay", 0.0};
    switch (rule) {
        case RuleName::adam:
        case RuleName::adamw:
            return {decay, {"eps", "epsilon", 1e-8}};
        case RuleName::lamb:
            return {decay, {"eps", "epsilon", 1e-8}, {"bias_correction", "bias_correction", true}};
        case RuleName::lion:
            return {decay};
        case RuleName::adagrad:
            return {decay,
                    {"eps", "epsilon", 1e-10},
                    {"lr_decay", "lr_decay", 0.0},
                    {"initial_accumulator_value", "initial_accumulator_value", 0.0}};
        case RuleName::sgd:
            break;
    }
    return {decay, {"momentum", "momentum", 0.0}, {"dampening", "dampening", 0.0}, {"nesterov", "nesterov", false}};
}
inline bool has_betas(RuleName rule) { return rule != RuleName::sgd && rule != RuleName::adagrad; }

/// The two decays; false where the list is none of two numbers in their ranges.
inline void read_betas(Reading& keys, Intent& intent) {
    const std::string path = "optimizer.params.betas";
    if (keys.is_auto(path)) return;
    const Node* const list = keys.at(path);
    if (list == nullptr) {
        intent.set("engine.update.beta1", 0.9);
        intent.set("engine.update.beta2", 0.999);
        return;
    }
    const std::vector<Node>& two = list->elements();
    const auto one = two.size() == 2 ? two[0].number() : std::nullopt;
    const auto other = two.size() == 2 ? two[1].number() : std::nullopt;
    if (!one || !other || !ranges::beta1.holds(*one) || !ranges::beta2.holds(*other))
        return keys.refuse(path, Errc::bad_value, "is " + list->shown() + ", not two numbers from 0 to below 1",
                           "write [0.9, 0.999], for instance");
    intent.set("engine.update.beta1", *one, two[0].place());
    intent.set("engine.update.beta2", *other, two[1].place());
    keys.acts(path, "engine.update.beta1, engine.update.beta2");
}

/// DeepSpeed's Adam is AdamW unless adam_w_mode is false, and so are torch's names for it.
inline RuleName chosen_rule(Reading& keys, const PeerRule& named, const std::string& type) {
    RuleName rule = *named.rule;
    const auto decoupled = keys.flag("optimizer.params.adam_w_mode");
    const bool is_adam = rule == RuleName::adam || rule == RuleName::adamw;
    std::string words = named.words;
    bool warns = !words.empty();
    if (rule == RuleName::adam && decoupled.value_or(true)) {
        rule = RuleName::adamw;
        words += std::string{words.empty() ? "" : "; "} +
                 "DeepSpeed's Adam decouples weight decay unless adam_w_mode is false";
    } else if (plain_name(type).find("adamw") == std::string::npos && rule == RuleName::adamw && decoupled == false) {
        rule = RuleName::adam;  // cpuadam and its like
    }
    const std::string to = "Optimizer<" + type_name(rule) + ">";
    if (!is_adam)
        keys.none("optimizer.params.adam_w_mode", "a number of Adam's");
    else if (decoupled == false && rule == RuleName::adamw)
        keys.none("optimizer.params.adam_w_mode", "AdamW decouples weight decay by its name, in DeepSpeed too");
    else
        keys.acts("optimizer.params.adam_w_mode", to);
    if (warns)
        keys.warn_mapped("optimizer.type", to, words, "write \"" + type_name(rule) + "\"");
    else if (!words.empty())
        keys.mapped("optimizer.type", to, words);
    else
        keys.acts("optimizer.type", to);
    return rule;
}

inline void read_deepspeed_optimizer(Reading& keys, Intent& intent) {
    const std::string params = "optimizer.params.";
    if (const auto norm = keys.number(params + "max_grad_norm")) {
        const auto clip = keys.number("gradient_clipping");
        const std::string fix = "write it as gradient_clipping, and remove it here";
        if (clip && *clip != *norm) {
            keys.refuse(params + "max_grad_norm", Errc::bad_value,
                        "is " + shown(*norm) + ", and gradient_clipping is " + shown(*clip), "keep gradient_clipping");
        } else {
            if (!clip) intent.set("engine.max_grad_norm", *norm, keys.at(params + "max_grad_norm")->place());
            keys.warn_mapped(params + "max_grad_norm", "engine.max_grad_norm",
                             "as gradient_clipping; DeepSpeed refuses it here", fix);
        }
    }
    for (const auto& [key, what] :
         {std::pair{"amsgrad", "the largest second mean so far"}, std::pair{"maximize", "steps uphill"}})
        if (keys.is_on(params + key))
            keys.refuse(params + key, Errc::unsupported_key,
                        std::string{"asks for "} + what + ", which strata's rules do not have", "remove it");

    const std::string type = keys.text("optimizer.type");
    if (keys.is_auto("optimizer.type")) return;
    if (type.empty()) {
        keys.warn_none("optimizer", "it has no type, and the rule is the program's", "add \"type\": \"AdamW\"");
        keys.none_within("optimizer.params", "no optimizer.type says of which rule");
        return;
    }
    const PeerRule named = peer_rule(type);
    if (!named.rule) {
        keys.refuse("optimizer.type", Errc::unsupported_key,
                    "is " + keys.at("optimizer.type")->shown() + ", which " + named.words, named.fix);
        keys.none_within("optimizer.params", "the rule is not known");
        return;
    }
    const RuleName rule = chosen_rule(keys, named, type);
    intent.composition.rule = rule;
    if (keys.at(params + "lr") == nullptr && !keys.is_auto(params + "lr")) intent.set("schedule.lr", 1e-3);
    if (has_betas(rule))
        read_betas(keys, intent);
    else
        keys.none(params + "betas", "no numbers of " + type_name(rule));
    if ((rule == RuleName::adam || rule == RuleName::adamw) && keys.flag(params + "bias_correction") == false)
        keys.refuse(params + "bias_correction", Errc::unsupported_key,
                    "is false, and " + type_name(rule) + " always corrects its means",
                    "remove it, or use Lamb, which can do without");
    const std::vector<RuleNumber> numbers = numbers_of(rule);
    for (const RuleNumber& number : numbers) {
        const std::string key = params + std::string{number.key};
        const std::string option = "engine.update." + std::string{number.option};
        if (keys.is_auto(key)) continue;
        const Node* const node = keys.at(key);
        if (node == nullptr)
            intent.set(option, number.fallback);  // DeepSpeed's
        else if (std::holds_alternative<bool>(number.fallback))
            intent.set(option, keys.is_on(key), node->place());
        else
            intent.set(option, *keys.number(key), node->place());
        keys.acts(key, option);
    }
    for (const char* key : {"weight_decay", "eps", "momentum", "dampening", "nesterov", "lr_decay",
                            "initial_accumulator_value", "bias_correction", "max_coeff", "min_coeff"})
        if (std::none_of(numbers.begin(), numbers.end(), [&](const RuleNumber& one) { return one.key == key; }) &&
            !(rule == RuleName::lamb && std::string_view{key}.ends_with("_coeff")))
            keys.none(params + key, "a number of other rules than " + type_name(rule));
}

}  // namespace strata::config::detail
