#pragma once
// strata/config/impl/trainer_translation.ipp - a trainer's configuration as people write it, in strata's own keys.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/json_of_node.ipp>
#include <strata/config/impl/reading.ipp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/trainer_reading.hpp>

namespace strata::config::detail {

/// What is left for the schema when all that other trainers say is understood.
class TrainerTranslation {
public:
    TrainerTranslation(const Document& document, TrainerReading& reading) : document_{document}, reading_{reading} {}

    /// Keys of trainer_schema(), without dashes; what was refused is not among them.
    [[nodiscard]] const nlohmann::json& own() const { return own_; }
    /// Of a key in own(): what the file has in its place, with its dashes.
    [[nodiscard]] std::string written(const std::string& key) const {
        const auto found = written_.find(key);
        return found == written_.end() ? key : found->second;
    }
    /// The values that own() was made of.
    [[nodiscard]] const std::map<std::string, const Node*>& nodes() const { return nodes_; }
    /// What `accelerate_config` and `deepspeed_config` ask for; it goes before the other keys.
    [[nodiscard]] const std::optional<Intent>& deepspeed() const { return deepspeed_intent_; }
    [[nodiscard]] const Node* deepspeed_node() const { return deepspeed_ != nullptr ? deepspeed_ : asked_by_; }
    /// Where the file asks for updates in backward, and for gradients in host memory; nullptr otherwise.
    [[nodiscard]] const Node* releases_gradients() const { return releases_gradients_; }
    [[nodiscard]] const Node* offloads_gradients() const { return offloads_gradients_; }

    /// Takes keys about adapters out of own() where none is trained, and tells of them.
    void leave_out_adapter(ModelType type);

    void read() {
        std::map<std::string, std::string> seen;
        for (const Node::Member& member : document_.root.members()) {
            const std::string key = member.key.starts_with("--") ? member.key.substr(2) : member.key;
            const auto [first, is_new] = seen.emplace(key, member.key);
            if (!is_new) {
                refuse(member.value, Errc::bad_value, "and '" + first->second + "' are the same key",
                       "keep one of them");
                continue;
            }
            if (member.value.is(NodeKind::null)) {
                reading_.findings.no_effect(member.value, "null is the same as leaving the key out");
                continue;
            }
            if (key.starts_with("_") || key == "$schema") {
                reading_.findings.no_effect(member.value, "a note for people and editors");
                continue;
            }
            take(key, member.value);
        }
        finish();
    }

private:
    using Handler = void (TrainerTranslation::*)(const Node&);

    void refuse(const Node& node, Errc code, std::string what, std::string fix) {
        reading_.findings.refuse(node, code, std::move(what), std::move(fix));
    }
    void put(const std::string& key, const Node& node, nlohmann::json value) {
        own_[key] = std::move(value);
        written_[key] = node.path();
        nodes_[key] = &node;
    }

    void take(const std::string& key, const Node& node) {
        if (const Handler handler = handler_of(key)) return translate(handler, node);
        const auto& keys = trainer_schema().keys();
        const bool is_own = std::any_of(keys.begin(), keys.end(),
                                        [&](const KeyInfo& info) { return info.key == key || info.alias == key; });
        const ForeignKey* const foreign = is_own ? nullptr : find_simpletuner_key(key);
        // What the program's own update rule or average describes is known where its schema reads.
        const bool is_programs = (key.starts_with("optimizer_") || key.starts_with("ema_")) && foreign == nullptr;
        if (is_own || is_programs) {
            Problems problems;
            nlohmann::json value = json_of(node, problems);
            if (problems.empty())
                put(key, node, std::move(value));
            else
                too_large(node);
            return;
        }
        if (foreign == nullptr) return unknown(key, node);
        const std::string instead{foreign->instead};
        if (foreign->is_fine(node)) return reading_.findings.no_effect(node, instead);
        if (foreign->effect == ForeignEffect::refused)
            return refuse(node, Errc::unsupported_key, "is " + node.shown() + ": " + instead,
                          "remove it" + (foreign->fine.empty() ? "" : ", or write " + first_of(foreign->fine)));
        reading_.findings.warn_no_effect(node, instead);
    }
    void translate(Handler handler, const Node& node) {
        try {
            (this->*handler)(node);
        } catch (const Error& problem) {  // of json_of(), and none else
            assert(problem.code() == Errc::bad_value);
            too_large(node);
        }
    }
    void too_large(const Node& node) {
        refuse(node, Errc::bad_value, "is " + node.shown() + ", which is larger than any number a computer keeps",
               "write a number between -1.7e308 and 1.7e308");
    }
    static std::string first_of(std::string_view fine) { return std::string{fine.substr(0, fine.find('|'))}; }

    void unknown(const std::string& key, const Node& node) {
        std::vector<std::string_view> names;
        for (const KeyInfo& info : trainer_schema().keys()) {
            names.push_back(info.key);
            if (!info.alias.empty()) names.push_back(info.alias);
        }
        for (const ForeignKey& foreign : simpletuner_keys())
            if (!foreign.key.ends_with('*')) names.push_back(foreign.key);
        const std::string_view near = nearest_name(key, names);
        refuse(node, Errc::unknown_key, "is unknown",
               near.empty() ? "remove it; docs/configuration.md and docs/config/simpletuner.md have the keys there are"
                            : "did you mean '" + std::string{near} + "'");
    }

    static Handler handler_of(std::string_view key) {
        using T = TrainerTranslation;
        static const std::map<std::string_view, Handler> handlers{
            {"checkpointing_steps", &T::checkpoint_interval},
            {"validation_steps", &T::validation_interval},
            {"validation_prompt", &T::prompt},
            {"user_prompt_library", &T::prompt_library},
            {"validation_disable", &T::no_samples},
            {"optimizer", &T::optimizer},
            {"optimizer_config", &T::optimizer_config},
            {"mixed_precision", &T::precision},
            {"pure_bf16", &T::pure_bf16},
            {"gradient_checkpointing", &T::recompute},
            {"gradient_checkpointing_interval", &T::recompute_interval},
            {"deepspeed_config", &T::deepspeed_config},
            {"offload_param_path", &T::offload_path},
            {"accelerate_config", &T::accelerate_file},
            {"fsdp_enable", &T::fsdp},
            {"fsdp_reshard_after_forward", &T::fsdp_keeps_whole},
            {"fsdp_cpu_offload", &T::fsdp_offload},
            {"model_family", &T::model},
            {"model_flavour", &T::model},
            {"pretrained_model_name_or_path", &T::model},
            {"num_processes", &T::launch},
            {"num_machines", &T::launch},
            {"machine_rank", &T::launch},
            {"main_process_ip", &T::launch},
            {"main_process_port", &T::launch},
            {"seed", &T::seed},
            {"optimizer_release_gradients", &T::release_gradients},
            {"optimizer_offload_gradients", &T::offload_gradients},
        };
        const auto found = handlers.find(key);
        return found == handlers.end() ? nullptr : found->second;
    }
    static std::string plain_key(const Node& node) {
        const std::string path = node.path();
        return path.starts_with("--") ? path.substr(2) : path;
    }

    // ---- keys with another name here ----
    void renamed(const Node& node, const std::string& to) {
        const Node* const own =
            document_.root.find(to) != nullptr ? document_.root.find(to) : document_.root.find("--" + to);
        if (own == nullptr) {
            put(to, node, json_of(node));
            return reading_.findings.mapped(node, to, "the key is `" + to + "` here");
        }
        if (own->same_as(node)) return reading_.findings.no_effect(node, "`" + to + "` says the same");
        refuse(node, Errc::bad_value, "is " + node.shown() + ", and `" + to + "`, its name here, is " + own->shown(),
               "keep one of them");
    }
    void checkpoint_interval(const Node& node) { renamed(node, "checkpoint_step_interval"); }
    void validation_interval(const Node& node) { renamed(node, "validation_step_interval"); }

    // ---- samples ----
    void prompt(const Node& node) {
        if (!node.is(NodeKind::text))
            return refuse(node, Errc::bad_value, "is " + node.shown() + ", not text", "write it in double quotes");
        if (node.scalar().empty()) return reading_.findings.no_effect(node, "an empty prompt is none");
        prompts_.insert(prompts_.begin(), node.scalar());
        prompts_node_ = &node;
        reading_.findings.mapped(node, "validation_prompts", "one of the captions that samples are drawn for");
    }
    void prompt_library(const Node& node);
    void no_samples(const Node& node) {
        const auto off = flag(node);
        if (!off) return;
        if (*off) no_samples_ = &node;
        reading_.findings.mapped(node, "validation_prompts", *off ? "no samples are drawn" : "samples are drawn");
    }
    void seed(const Node& node) {
        const auto number = node.whole();
        if (!number || *number >= 0) return put("seed", node, json_of(node));
        reading_.findings.warn_no_effect(
            node, "a run has a seed of its own, 42 where none is given, so that it can be repeated",
            "give another seed for another run");
    }

    // ---- composition ----
    void optimizer(const Node& node);
    void optimizer_config(const Node& node);
    void precision(const Node& node);
    void pure_bf16(const Node& node);
    void recompute(const Node& node);
    void recompute_interval(const Node& node);
    void fsdp(const Node& node);
    void fsdp_keeps_whole(const Node& node);
    void fsdp_offload(const Node& node);
    void deepspeed_config(const Node& node) { deepspeed_ = &node; }
    void read_deepspeed_config();
    /// The same with the disk that the file names for it.
    [[nodiscard]] Node with_disk(const Node& root) const;
    void accelerate_file(const Node& node) { accelerate_ = &node; }
    void accelerate_config(const Node& node);
    void offload_path(const Node& node) { offload_path_ = &node; }

    // ---- what it is trained with, and where ----
    void model(const Node& node);
    void launch(const Node& node);

    // ---- gradients: told where the numbers of the run are known (trainer_gradients.ipp) ----
    void release_gradients(const Node& node);
    void offload_gradients(const Node& node);

    [[nodiscard]] std::optional<bool> flag(const Node& node) {
        const auto value = node.flag();
        if (!value) refuse(node, Errc::bad_value, "is " + node.shown() + ", not true or false", "write true or false");
        return value;
    }
    /// A file that a value names: below the working directory, as SimpleTuner has it, or else beside this file.
    [[nodiscard]] std::optional<std::filesystem::path> named_file(const Node& node, std::string_view what);
    void finish();

    const Document& document_;
    TrainerReading& reading_;
    nlohmann::json own_ = nlohmann::json::object();
    std::map<std::string, std::string> written_;
    std::map<std::string, const Node*> nodes_;
    std::vector<std::string> prompts_;
    const Node* prompts_node_ = nullptr;
    const Node* no_samples_ = nullptr;
    const Node* optimizer_ = nullptr;
    const Node* rule_numbers_ = nullptr;                           // of optimizer_config
    std::vector<std::pair<std::string, nlohmann::json>> numbers_;  // what it says, by keys of the update rule
    std::string_view optimizer_defaults_;
    bool rule_is_pure_ = false;
    const Node* precision_ = nullptr;
    const Node* pure_ = nullptr;
    std::optional<bool> recompute_;
    int recompute_every_ = 1;
    bool is_fsdp_ = false;
    int fsdp_stage_ = 3;
    bool fsdp_offloads_ = false;
    const Node* offload_path_ = nullptr;
    const Node* accelerate_ = nullptr;
    const Node* asked_by_ = nullptr;  // what deepspeed_intent_ comes from, where that is not deepspeed_
    const Node* deepspeed_ = nullptr;
    const Node* releases_gradients_ = nullptr;
    const Node* offloads_gradients_ = nullptr;
    std::optional<Intent> deepspeed_intent_;
};

}  // namespace strata::config::detail

#include <strata/config/impl/trainer_translation_adapter.ipp>
#include <strata/config/impl/trainer_translation_files.ipp>
#include <strata/config/impl/trainer_translation_policies.ipp>
#include <strata/config/impl/trainer_translation_values.ipp>
