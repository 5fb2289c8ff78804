#pragma once
// strata/config/impl/trainer_flags.ipp - a command line goes before every file, those that a configuration names included.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/document.hpp>
#include <strata/config/intent.hpp>
#include <strata/config/key.hpp>
#include <strata/config/trainer_config.hpp>

namespace strata::config::detail {

/// Keys that a command line says: a program's flags, and values of a document that stand in no file (document_of()).
class FlagKeys {
public:
    FlagKeys(const Document& document, const Overrides& overrides) {
        for (const Override& flag : overrides) keys_.push_back(flag.name);
        for (const Node::Member& member : document.root.members())
            if (member.value.mark().line == 0 && member.value.source().starts_with("--"))
                keys_.push_back(member.value.source().substr(2));
    }
    [[nodiscard]] bool has(std::initializer_list<std::string_view> any_of) const {
        for (const std::string& key : keys_)
            for (const std::string_view one : any_of)
                if (key == one) return true;
        return false;
    }

private:
    std::vector<std::string> keys_;
};

/// Takes out of what files ask for what a command line says itself.
inline void leave_to_flags(const FlagKeys& flags, Intent& asked) {
    constexpr std::string_view update = "engine.update.";
    std::vector<std::string_view> said;  // paths of options
    bool shape = false;
    for (const KeyInfo& info : trainer_schema().keys()) {
        if (info.path.empty() || !flags.has({info.key, info.alias})) continue;
        said.push_back(info.path);
        shape = shape || (info.path.starts_with("schedule.") && info.path != "schedule.lr");
    }
    std::erase_if(asked.options, [&](const OptionValue& one) {
        if (one.path.starts_with(update)) {
            const std::string name = one.path.substr(update.size());
            return flags.has({"optimizer_" + name, "adam_" + name});
        }
        for (const std::string_view path : said)
            if (one.path == path) return true;
        return false;
    });
    if (shape) asked.rate = std::monostate{};
    if (flags.has({"learning_rate"})) asked.rate_follows_lr = true;

    Composition& composition = asked.composition;
    if (flags.has({"mixed_precision", "pure_bf16"})) composition.precision.reset();
    if (flags.has({"gradient_checkpointing", "gradient_checkpointing_interval"})) composition.recompute.reset();
    if (flags.has({"optimizer"})) composition.rule.reset();
    if (flags.has({"fsdp_enable", "fsdp_reshard_after_forward"})) composition.stage.reset();
    if (flags.has({"fsdp_cpu_offload"})) composition.state.reset();
    if (flags.has({"train_batch_size"})) asked.batch.micro.reset();
    if (flags.has({"num_processes"})) asked.launch.ranks.reset();
}

}  // namespace strata::config::detail
