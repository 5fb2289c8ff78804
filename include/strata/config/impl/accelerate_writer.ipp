#pragma once
// strata/config/impl/accelerate_writer.ipp - an intent as Accelerate's YAML.

#include <optional>
#include <string>
#include <variant>

#include <strata/config/accelerate.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/key.hpp>

namespace strata::config {

STRATA_INLINE std::string write_accelerate(const Intent& intent) {
    const Composition& composition = intent.composition;
    DocumentBuilder yaml{"accelerate.yaml"};
    const auto put = [&](const char* key, const std::string& word) {
        yaml.key(key, {});
        yaml.scalar(NodeKind::text, word, {});
    };
    const auto put_number = [&](const char* key, const std::optional<double>& number) {
        if (!number) return;
        yaml.key(key, {});
        yaml.scalar(NodeKind::number, detail::shown(*number), {});
    };
    const auto put_whole = [&](const char* key, const std::optional<std::int64_t>& number) {
        if (!number) return;
        yaml.key(key, {});
        yaml.scalar(NodeKind::number, std::to_string(*number), {});
    };
    const bool recomputes = composition.recompute.has_value();
    const bool is_plain = composition.stage.value_or(0) == 0 && !composition.state && !composition.parameters &&
                          !intent.find("engine.gradient_accumulation_steps") && !intent.find("engine.max_grad_norm") &&
                          intent.launch.hostfile.empty() && intent.launch.include.empty() &&
                          intent.launch.exclude.empty();
    yaml.begin_object({});
    put("compute_environment", "LOCAL_MACHINE");
    put("distributed_type", recomputes                            ? "FSDP"
                            : !is_plain                           ? "DEEPSPEED"
                            : intent.launch.ranks.value_or(1) > 1 ? "MULTI_GPU"
                                                                  : "NO");
    if (recomputes) {
        yaml.key("fsdp_config", {});
        yaml.begin_object({});
        const int stage = composition.stage.value_or(0);
        put("fsdp_sharding_strategy", stage == 3 ? "FULL_SHARD" : stage >= 1 ? "SHARD_GRAD_OP" : "NO_SHARD");
        put("fsdp_offload_params", composition.state && composition.state->uses(TierName::cpu) ? "true" : "false");
        put("fsdp_activation_checkpointing", *composition.recompute > 0 ? "true" : "false");
        yaml.end();
    } else if (!is_plain) {
        yaml.key("deepspeed_config", {});
        yaml.begin_object({});
        put_whole("zero_stage", composition.stage.value_or(0));
        const OptionValue* const folder = intent.find("engine.tiers.nvme_path");
        const auto offload = [&](const std::string& what, const std::optional<KeptOn>& kept) {
            if (!kept) return;
            const TierName tier = kept->percent == 100 ? kept->first : kept->second;
            put((what + "_device").c_str(), tier == TierName::device ? "none" : tier == TierName::cpu ? "cpu" : "nvme");
            if (tier == TierName::nvme && folder != nullptr)
                put((what + "_nvme_path").c_str(), std::get<std::string>(folder->value));
        };
        offload("offload_optimizer", composition.state);
        offload("offload_param", composition.parameters);
        put_number("gradient_accumulation_steps", intent.number("engine.gradient_accumulation_steps"));
        put_number("gradient_clipping", intent.number("engine.max_grad_norm"));
        if (!intent.launch.hostfile.empty()) put("deepspeed_hostfile", intent.launch.hostfile);
        if (!intent.launch.include.empty()) put("deepspeed_inclusion_filter", intent.launch.include);
        if (!intent.launch.exclude.empty()) put("deepspeed_exclusion_filter", intent.launch.exclude);
        yaml.end();
    }
    if (composition.precision)
        put("mixed_precision", *composition.precision == FormatName::fp32   ? "no"
                               : *composition.precision == FormatName::fp16 ? "fp16"
                                                                            : "bf16");
    put_whole("num_processes", intent.launch.ranks);
    put_whole("num_machines", intent.launch.machines);
    put_whole("machine_rank", intent.launch.machine_rank);
    if (!intent.launch.main_address.empty()) put("main_process_ip", intent.launch.main_address);
    put_whole("main_process_port", intent.launch.main_port);
    if (!intent.launch.gpus.empty()) put("gpu_ids", intent.launch.gpus);
    yaml.end();
    return write_yaml(yaml.finish().root);
}

}  // namespace strata::config
