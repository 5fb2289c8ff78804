#pragma once
// strata/config/impl/accelerate_methods.ipp - ranks, FSDP and Megatron-LM in Accelerate's files, and what strata has of them.

#include <cstdint>
#include <string>

#include <strata/config/impl/key.ipp>
#include <strata/config/reading.hpp>

namespace strata::config::detail {

/// A platform, or a way to split work, that strata does not have.
inline void refuse_platform(Reading& keys, const std::string& key, const std::string& what, const std::string& fix) {
    keys.refuse(key, Errc::unsupported_key, "is " + keys.at(key)->shown() + ", and strata " + what, fix);
}

/// A layer, a model or a sequence on several ranks.
inline void refuse_split(Reading& keys, const std::string& key) {
    if (keys.whole(key).value_or(1) > 1)
        refuse_platform(keys, key, "splits no layers and no sequences over ranks",
                        "write 1; stage 3 splits parameters instead");
}

inline void read_fsdp(Reading& keys, Intent& intent) {
    const std::string block = "fsdp_config.";
    const std::string strategy_key = block + "fsdp_sharding_strategy";
    const std::string reshard_key = block + "fsdp_reshard_after_forward";
    const bool second = keys.whole(block + "fsdp_version").value_or(1) == 2;
    const std::string key =
        (second || keys.at(strategy_key) == nullptr) && keys.at(reshard_key) != nullptr ? reshard_key : strategy_key;
    const std::string strategy = keys.text(key);
    int stage = 3;
    if (strategy == "shard_grad_op" || strategy == "2" || strategy == "hybrid_shard_zero2" || strategy == "5" ||
        strategy == "false")
        stage = 2;
    if (strategy == "no_shard" || strategy == "3") stage = 0;
    intent.composition.stage = stage;
    const std::string to = "ZeroStage<" + std::to_string(stage) + ">";
    const bool hybrid = strategy.starts_with("hybrid") || strategy == "4" || strategy == "5";
    if (hybrid)
        keys.warn_mapped(key, to, "shares go over all ranks, and not over those of one machine");
    else
        keys.mapped(key, to, "");
    keys.none(key == strategy_key ? reshard_key : strategy_key, "of the other fsdp_version");
    if (keys.is_on(block + "fsdp_offload_params")) {
        if (stage == 0) {
            keys.warn_none(block + "fsdp_offload_params", "without sharding nothing is offloaded", "use FULL_SHARD");
        } else {
            intent.composition.state = KeptOn::all_on(TierName::cpu);
            if (stage == 3) intent.composition.parameters = KeptOn::all_on(TierName::cpu);
            keys.mapped(block + "fsdp_offload_params",
                        stage == 3 ? "OffloadTarget<Cpu, OptimizerState, Parameters>" : "OffloadTarget<Cpu>",
                        "the update runs on the host, where the state is");
        }
    } else {
        keys.none(block + "fsdp_offload_params", "nothing leaves the device");
    }
    if (const auto again = keys.flag(block + "fsdp_activation_checkpointing")) {
        intent.composition.recompute = *again ? 1 : 0;
        keys.acts(block + "fsdp_activation_checkpointing", *again ? "Recompute<Blocks>" : "Recompute<Nothing>");
    }
}

inline void read_megatron(Reading& keys, Intent& intent) {
    const std::string block = "megatron_lm_config.";
    for (const char* key : {"megatron_lm_tp_degree", "megatron_lm_pp_degree", "megatron_lm_sp_degree"})
        refuse_split(keys, block + key);
    const bool sharded = keys.is_on(block + "megatron_lm_use_distributed_optimizer");
    intent.composition.stage = sharded ? 1 : 0;
    keys.acts(block + "megatron_lm_use_distributed_optimizer", sharded ? "ZeroStage<1>" : "ZeroStage<0>");
    if (const auto again = keys.flag(block + "megatron_lm_recompute_activations")) {
        intent.composition.recompute = *again ? 1 : 0;
        keys.acts(block + "megatron_lm_recompute_activations", *again ? "Recompute<Blocks>" : "Recompute<Nothing>");
    }
}

/// Which GPUs of this machine: "2,3", 2, or a list of them.
inline void read_gpus(Reading& keys, LaunchIntent& launch) {
    const Node* const node = keys.at("gpu_ids");
    if (node == nullptr) return;
    std::string gpus;
    for (const char letter : node->scalar())
        if (letter != ' ') gpus += letter;
    for (const Node& one : node->elements()) gpus += (gpus.empty() ? "" : ",") + one.scalar();
    if (gpus.empty() || gpus == "all" || gpus == "none")
        return keys.none("gpu_ids", "a rank takes the GPU of its local number");
    launch.gpus = gpus;
}

/// Where ranks run, and how many.
inline void read_ranks(Reading& keys, LaunchIntent& launch) {
    if (const auto ranks = keys.whole("num_processes"); ranks && *ranks > 0)
        launch.ranks = *ranks;
    else
        keys.none("num_processes", "left to the command line");
    launch.machines = keys.whole("num_machines");
    launch.machine_rank = keys.whole("machine_rank");
    launch.main_port = keys.whole("main_process_port");
    if (const std::string address = keys.text("main_process_ip"); address != "none") launch.main_address = address;
    if (const std::string hosts = keys.text("mpirun_config.mpirun_hostfile"); !hosts.empty() && hosts != "none")
        launch.hostfile = hosts;
    read_gpus(keys, launch);
    const std::int64_t machines = launch.machines.value_or(1);
    if (launch.machine_rank && *launch.machine_rank >= machines)
        keys.refuse("machine_rank", Errc::bad_value,
                    "is " + std::to_string(*launch.machine_rank) + ", and there " +
                        (machines == 1 ? "is 1 machine" : "are " + std::to_string(machines) + " machines"),
                    machines == 1 ? "write 0, or say num_machines" : "count from 0 to " + std::to_string(machines - 1));
    if (launch.ranks && *launch.ranks % machines != 0)
        keys.warn_mapped("num_processes", "launch: ranks",
                         std::to_string(*launch.ranks) + " ranks on " + std::to_string(machines) +
                             " machines are not as many on each; Accelerate would leave some out",
                         "give a multiple of num_machines");
}

}  // namespace strata::config::detail
