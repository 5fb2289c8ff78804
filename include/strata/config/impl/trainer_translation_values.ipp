#pragma once
// strata/config/impl/trainer_translation_values.ipp - values of a trainer's configuration that are not strata's as they stand.

#include <strata/config/impl/trainer_translation.ipp>

namespace strata::config::detail {

inline void TrainerTranslation::optimizer(const Node& node) {
    const std::string name = lower(node.scalar());
    const auto known = node.is(NodeKind::text) ? simpletuner_optimizer(name) : std::nullopt;
    if (!known) {
        const std::string_view near = nearest_name(name, simpletuner_optimizer_names());
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", no optimizer",
                      near.empty() ? "use one of adamw_bf16, adamw, adam, lion, sgd, adagrad, lamb"
                                   : "did you mean '" + std::string{near} + "'");
    }
    if (!known->rule)
        return refuse(node, Errc::unsupported_key, "is " + node.shown() + ", a rule that strata does not have",
                      "use the nearest that it has, " + lower(type_name(known->nearest)));
    reading_.intent.composition.rule = *known->rule;
    rule_is_pure_ = known->pure_bf16;
    optimizer_ = &node;
    optimizer_defaults_ = known->defaults;
    const std::string to = "Optimizer<" + type_name(*known->rule) + ">";
    const std::string defaults =
        known->defaults.empty() ? "" : "with " + std::string{known->defaults} + " where no key says otherwise";
    const std::string words =
        std::string{known->words} + (known->words.empty() || defaults.empty() ? "" : "; ") + defaults;
    if (words.empty())
        reading_.findings.acts(node, to);
    else if (known->pure_bf16 || known->words.empty())
        reading_.findings.mapped(node, to, words);
    else
        reading_.findings.warn_mapped(node, to, words);
}

/// "weight_decay=0.0,eps=1e-8", an object, or its JSON: keys of the update rule.
inline void TrainerTranslation::optimizer_config(const Node& node) {
    const auto key_of = [](std::string name) {
        while (name.starts_with(' ')) name.erase(0, 1);
        while (name.ends_with(' ')) name.pop_back();
        if (name == "eps") name = "epsilon";
        if (name == "wd") name = "weight_decay";
        return "optimizer_" + name;
    };
    rule_numbers_ = &node;
    const auto set = [&](std::string key, nlohmann::json value) {
        numbers_.emplace_back(std::move(key), std::move(value));
    };
    if (node.is(NodeKind::object)) {
        for (const Node::Member& member : node.members()) set(key_of(member.key), json_of(member.value));
    } else if (node.is(NodeKind::text)) {
        const std::string& text = node.scalar();
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            const std::string pair = text.substr(begin, end - begin);
            const std::size_t equals = pair.find('=');
            begin = end + 1;
            if (pair.find_first_not_of(' ') == std::string::npos) continue;
            if (equals == std::string::npos)
                return refuse(node, Errc::bad_value, "has '" + pair + "', no name=value",
                              "write \"eps=1e-8,weight_decay=0\"");
            set(key_of(pair.substr(0, equals)), pair.substr(equals + 1));
        }
    } else {
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", no list of numbers",
                      "write \"eps=1e-8,weight_decay=0\"");
    }
    std::string all;
    for (const auto& [name, value] : numbers_) all += (all.empty() ? "" : ", ") + name;
    reading_.findings.mapped(node, all, "keys of the update rule; they go before those of the file");
}

inline void TrainerTranslation::precision(const Node& node) {
    const std::string word = lower(node.scalar());
    const std::vector<std::string_view> words{"no", "fp32", "bf16", "fp16"};
    auto& composed = reading_.intent.composition.precision;
    if (word == "no" || word == "fp32" || word == "false") {
        composed = FormatName::fp32;
    } else if (word == "bf16") {
        composed = FormatName::bf16;
    } else if (word == "fp16") {
        composed = FormatName::fp16;
    } else if (word == "fp8") {
        return refuse(node, Errc::unsupported_key, "is fp8, in which strata does not compute", "use bf16");
    } else {
        const std::string_view near = nearest_name(word, words);
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", no number format",
                      near.empty() ? "use one of no, bf16, fp16" : "did you mean '" + std::string{near} + "'");
    }
    precision_ = &node;
}

inline void TrainerTranslation::launch(const Node& node) {
    LaunchIntent& launch = reading_.intent.launch;
    const std::string key = plain_key(node);
    const std::string words = "`strata launch` and mpirun start ranks";
    if (key == "main_process_ip") {
        launch.main_address = node.scalar();
        return reading_.findings.mapped(node, "strata launch", words);
    }
    const auto number = node.whole();
    const std::int64_t least = key == "machine_rank" ? 0 : 1;
    if (!number || *number < least || *number > 65536)
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", no whole number from " + std::to_string(least),
                      "write a whole number");
    (key == "num_processes"  ? launch.ranks
     : key == "num_machines" ? launch.machines
     : key == "machine_rank" ? launch.machine_rank
                             : launch.main_port) = *number;
    reading_.findings.mapped(node, "strata launch", words);
}

inline void TrainerTranslation::finish() {
    Composition& composed = reading_.intent.composition;
    if (no_samples_ != nullptr) {
        own_.erase("validation_prompts");
        own_.erase("validation_prompt_file");
    } else if (!prompts_.empty()) {
        nlohmann::json all = prompts_;
        if (const auto given = own_.find("validation_prompts"); given != own_.end()) {
            if (given->is_array())
                for (const auto& prompt : *given) all.push_back(prompt);
            else
                all.push_back(*given);
        }
        const Node* const node = nodes_.contains("validation_prompts") ? nodes_["validation_prompts"] : prompts_node_;
        put("validation_prompts", *node, std::move(all));
    }
    if (recompute_.value_or(true) && recompute_every_ > 1) composed.recompute = recompute_every_;
    if (pure_ != nullptr || (rule_is_pure_ && (precision_ == nullptr || composed.precision == FormatName::bf16)))
        composed.precision = FormatName::pure_bf16;
    const bool is_pure = composed.precision == FormatName::pure_bf16;
    if (precision_ != nullptr && is_pure)
        reading_.findings.mapped(*precision_, "Precision<PureBf16>",
                                 "weights and states are in bf16 as well, as `optimizer` says");
    else if (precision_ != nullptr)
        reading_.findings.acts(*precision_, "Precision<" + type_name(*composed.precision) + ">");
    for (auto& [key, value] : numbers_) {  // "optimizer_beta1", whose other name is "adam_beta1"
        for (const std::string& name : {key, "adam_" + key.substr(key.find('_') + 1)})
            if (const auto given = nodes_.find(name); given != nodes_.end()) {
                reading_.findings.no_effect(*given->second, "`optimizer_config` says it");
                own_.erase(name);
                nodes_.erase(given);
            }
        put(key, *rule_numbers_, std::move(value));
    }
    if (!optimizer_defaults_.empty()) {
        const std::size_t equals = optimizer_defaults_.find('=');
        const std::string name{optimizer_defaults_.substr(0, equals)};
        const bool is_given = own_.contains("optimizer_" + name) || own_.contains("adam_" + name);
        if (!is_given) put("optimizer_" + name, *optimizer_, std::string{optimizer_defaults_.substr(equals + 1)});
    }
    if (is_fsdp_) {
        composed.stage = fsdp_stage_;
        if (fsdp_offloads_) composed.state = KeptOn::all_on(TierName::cpu);
    }
    if (deepspeed_ != nullptr) read_deepspeed_config();
    if (accelerate_ != nullptr) accelerate_config(*accelerate_);
    if (offload_path_ == nullptr) return;
    if (deepspeed_ != nullptr)
        reading_.findings.mapped(*offload_path_, "engine.tiers.nvme_path", "the disk of `deepspeed_config`");
    else
        reading_.findings.warn_no_effect(*offload_path_, "nothing is offloaded to a disk",
                                         "say so in `deepspeed_config`: \"offload_optimizer\": {\"device\": \"nvme\"}");
}

}  // namespace strata::config::detail
