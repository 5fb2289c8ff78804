#pragma once
// strata/config/impl/accelerate_table.ipp - Accelerate's keys, with their variables and flags.

#include <string>

#include <strata/config/format_table.hpp>

namespace strata::config::detail {

inline void add_deepspeed_plugin_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("deepspeed_config", "Of distributed_type DEEPSPEED");
    FormatTable::Rows d = t.in("deepspeed_config");
    d.text("deepspeed_config_file", "A DeepSpeed JSON in place of the keys below")
        .from("ACCELERATE_DEEPSPEED_CONFIG_FILE")
        .acts("all that the file says");
    d.whole("zero_stage", "0 nothing, 1 optimizer state, 2 and gradients, 3 and parameters")
        .within({0, 3})
        .by_default("2")
        .from("ACCELERATE_DEEPSPEED_ZERO_STAGE")
        .acts("ZeroStage<N>");
    d.choice("offload_optimizer_device", {"none", "cpu", "nvme"}, "Where the optimizer's state is kept")
        .by_default("none")
        .in_any_case()
        .from("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE")
        .acts("OffloadTarget<Tier>");
    d.choice("offload_param_device", {"none", "cpu", "nvme"}, "Where shares of parameters are kept; of stage 3")
        .by_default("none")
        .in_any_case()
        .from("ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE")
        .acts("OffloadTarget<Tier, Parameters>");
    d.text("offload_optimizer_nvme_path", "A folder on a local disk; Accelerate never hands it on")
        .from("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_NVME_PATH")
        .acts("engine.tiers.nvme_path");
    d.text("offload_param_nvme_path", "A folder on a local disk; Accelerate never hands it on")
        .from("ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_NVME_PATH")
        .acts("engine.tiers.nvme_path");
    d.whole("gradient_accumulation_steps", "Micro-batches of a step")
        .within(ranges::accumulation_steps)
        .by_default("1")
        .or_auto()
        .from("ACCELERATE_GRADIENT_ACCUMULATION_STEPS")
        .option("engine.gradient_accumulation_steps");
    d.number("gradient_clipping", "The norm that gradients are scaled down to; 0 does not")
        .within(ranges::gradient_limit)
        .or_auto()
        .from("ACCELERATE_GRADIENT_CLIPPING")
        .option("engine.max_grad_norm");
    d.flag("zero3_init_flag", "Split parameters as they are made")
        .by_default("false")
        .from("ACCELERATE_DEEPSPEED_ZERO3_INIT")
        .none("a model is taken over unit by unit");
    d.flag("zero3_save_16bit_model", "Whole weights in a saved model")
        .by_default("false")
        .from("ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL")
        .none("a checkpoint of any stage has whole weights, as `model.safetensors`");
    d.choice("deepspeed_multinode_launcher", {"pdsh", "standard", "openmpi", "mvapich", "mpich", "nossh", "slurm"},
             "Who starts ranks on other machines")
        .by_default("pdsh")
        .none("`strata launch`, which is mpirun");
    d.text("deepspeed_hostfile", "Machines and their slots").acts("launch: hostfile");
    d.text("deepspeed_inclusion_filter", "Which of them").acts("launch: include");
    d.text("deepspeed_exclusion_filter", "Which of them not").acts("launch: exclude");
    d.text("deepspeed_moe_layer_cls_names", "Layers with experts")
        .from("ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES")
        .none_and_warns("strata has no expert parallelism");
}

inline void add_fsdp_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("fsdp_config", "Of distributed_type FSDP");
    FormatTable::Rows f = t.in("fsdp_config");
    f.whole("fsdp_version", "1 or 2").within({1, 2}).by_default("1").from("FSDP_VERSION").none("one engine does both");
    f.choice("fsdp_sharding_strategy",
             {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2", "1", "2", "3", "4", "5"},
             "What is split over the ranks")
        .by_default("FULL_SHARD")
        .in_any_case()
        .from("FSDP_SHARDING_STRATEGY")
        .mapped("ZeroStage<N>", "FULL_SHARD is stage 3, SHARD_GRAD_OP 2, NO_SHARD 0; hybrid ones shard over all ranks");
    f.choice("fsdp_reshard_after_forward",
             {"true", "false", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2"},
             "Of version 2: parameters are split again after forward")
        .by_default("true")
        .in_any_case()
        .from("FSDP_RESHARD_AFTER_FORWARD")
        .mapped("ZeroStage<N>", "true is stage 3, false stage 2");
    f.flag("fsdp_offload_params", "Parameters, gradients and state in host memory")
        .by_default("false")
        .from("FSDP_OFFLOAD_PARAMS")
        .mapped("OffloadTarget<Cpu, OptimizerState, Parameters>", "state and shares of parameters in host memory");
    f.flag("fsdp_cpu_offload").old_name_of("fsdp_config.fsdp_offload_params");
    f.flag("fsdp_activation_checkpointing", "Activations are made again in backward")
        .by_default("false")
        .from("FSDP_ACTIVATION_CHECKPOINTING")
        .acts("Recompute<Blocks>");
    const std::string units = "the grain is the `strata::Unit` that a model names";
    f.choice("fsdp_auto_wrap_policy", {"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP", "0", "1", "2"},
             "The grain of sharding")
        .in_any_case()
        .from("FSDP_AUTO_WRAP_POLICY")
        .none(units);
    f.text("fsdp_transformer_layer_cls_to_wrap", "Classes of layers that are one")
        .or_list()
        .from("FSDP_TRANSFORMER_CLS_TO_WRAP")
        .none(units);
    f.number("fsdp_min_num_params", "Modules of fewer parameters are not")
        .within({0})
        .from("FSDP_MIN_NUM_PARAMS")
        .none(units);
    const std::string ahead = "`prefetch_bucket_bytes` says how much is gathered ahead, in both directions";
    f.choice("fsdp_backward_prefetch", {"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH", "0", "1", "2"},
             "When the next unit is gathered")
        .in_any_case()
        .from("FSDP_BACKWARD_PREFETCH")
        .none(ahead);
    f.text("fsdp_backward_prefetch_policy").old_name_of("fsdp_config.fsdp_backward_prefetch");
    f.flag("fsdp_forward_prefetch", "The same in forward")
        .by_default("false")
        .from("FSDP_FORWARD_PREFETCH")
        .none(ahead);
    f.choice("fsdp_state_dict_type", {"FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT", "0", "1", "2", "3"},
             "How checkpoints are written")
        .in_any_case()
        .from("FSDP_STATE_DICT_TYPE")
        .none("a checkpoint has a share a rank, and whole weights besides");
    f.flag("fsdp_use_orig_params", "Parameters keep their identity")
        .by_default("true")
        .from("FSDP_USE_ORIG_PARAMS")
        .none("parameters always do");
    f.flag("fsdp_sync_module_states", "Rank 0's weights are everybody's")
        .by_default("true")
        .from("FSDP_SYNC_MODULE_STATES")
        .none("ranks begin with the same weights");
    f.flag("fsdp_cpu_ram_efficient_loading", "Only rank 0 reads weights")
        .by_default("true")
        .from("FSDP_CPU_RAM_EFFICIENT_LOADING")
        .none("a model is taken over unit by unit");
    f.any("fsdp_ignored_modules").none_and_warns("all parameters of a model are sharded alike");
}

inline void add_other_methods(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("megatron_lm_config", "Of distributed_type MEGATRON_LM");
    FormatTable::Rows m = t.in("megatron_lm_config");
    for (const char* key : {"megatron_lm_tp_degree", "megatron_lm_pp_degree", "megatron_lm_sp_degree"})
        m.whole(key, "Ranks that a layer, the model, a sequence is split over")
            .within({1})
            .by_default("1")
            .none("1: nothing is split");
    m.whole("megatron_lm_num_micro_batches", "Micro-batches of a step")
        .within(ranges::accumulation_steps)
        .option("engine.gradient_accumulation_steps");
    m.number("megatron_lm_gradient_clipping", "The norm that gradients are scaled down to")
        .within(ranges::gradient_limit)
        .option("engine.max_grad_norm");
    m.flag("megatron_lm_recompute_activations", "Activations are made again")
        .by_default("false")
        .acts("Recompute<Blocks>");
    m.flag("megatron_lm_use_distributed_optimizer", "Optimizer state is split over ranks")
        .by_default("false")
        .acts("ZeroStage<1>");
    m.flag("megatron_lm_sequence_parallelism").by_default("false").none_and_warns("strata splits no sequences");
    m.any("*").none("Megatron-LM is not used");
    t.object("parallelism_config", "Ranks in several dimensions");
    FormatTable::Rows p = t.in("parallelism_config");
    for (const char* key : {"parallelism_config_tp_size", "parallelism_config_cp_size", "parallelism_config_sp_size"})
        p.whole(key, "Ranks that a layer or a sequence is split over")
            .within({1})
            .by_default("1")
            .none("1: nothing is split");
    p.whole("parallelism_config_dp_shard_size", "Ranks that share a copy").within({1}).none("shares go over all ranks");
    p.whole("parallelism_config_dp_replicate_size", "Copies")
        .within({1})
        .by_default("1")
        .none_and_warns("shares go over all ranks");
    p.any("*").none("there is one dimension of ranks");
    t.object("tp_config", "Tensor parallelism");
    FormatTable::Rows tp = t.in("tp_config");
    tp.whole("tp_size", "Ranks that a layer is split over").within({1}).by_default("1").none("1: nothing is split");
    tp.any("*").none("there is no tensor parallelism");

    t.object("dynamo_config", "torch.compile");
    FormatTable::Rows y = t.in("dynamo_config");
    const std::string kernels =
        "strata's kernels are compiled and fused with the program, and nothing is compiled while it runs";
    y.text("dynamo_backend", "Who compiles").by_default("NO").from("ACCELERATE_DYNAMO_BACKEND").none_and_warns(kernels);
    y.any("*").none("of dynamo_backend");
    t.text("dynamo_backend").old_name_of("dynamo_config.dynamo_backend");
    t.object("fp8_config", "Of mixed_precision fp8").none("strata does not train in 8 bits");
    t.in("fp8_config").any("*");
    t.object("ipex_config", "Intel's extension").none("strata has its own kernels");
    t.in("ipex_config").any("*");
    t.object("mpirun_config", "Of distributed_type MULTI_CPU");
    FormatTable::Rows r = t.in("mpirun_config");
    r.text("mpirun_hostfile", "Machines and their slots").acts("launch: hostfile");
    r.any("*").none("`strata launch` starts mpirun");
}

inline void add_accelerate_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.choice("compute_environment", {"LOCAL_MACHINE", "AMAZON_SAGEMAKER"}, "Who runs it")
        .in_any_case()
        .by_default("LOCAL_MACHINE")
        .acts("machines that mpirun reaches");
    t.choice("distributed_type",
             {"NO", "false", "MULTI_CPU", "MULTI_GPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA",
              "MULTI_XPU", "MULTI_HPU", "MULTI_NEURON", "DEEPSPEED", "FSDP", "XLA", "TPU", "MEGATRON_LM", "TP",
              "DATA_PARALLEL", "MODEL_PARALLEL"},
             "What ranks do together")
        .in_any_case()
        .acts("ZeroStage<N>");
    t.choice("mixed_precision", {"no", "fp16", "bf16", "fp8", "false"}, "Number formats")
        .in_any_case()
        .by_default("no")
        .from("ACCELERATE_MIXED_PRECISION")
        .acts("Precision<Format>");
    t.flag("fp16", "Its old form").by_default("false").mapped("Precision<Fp16>", "the old form of mixed_precision");
    t.whole("num_processes", "Ranks of all machines together").within({-1, 1e6}).acts("launch: ranks");
    t.whole("num_machines", "Machines").within({1, 1e6}).by_default("1").acts("launch: machines");
    t.whole("machine_rank", "Which of them this is").within({0, 1e6}).by_default("0").acts("launch: machine_rank");
    t.text("main_process_ip", "Rank 0's machine").acts("launch: main_address");
    t.whole("main_process_port", "Its port").within({0, 65535}).acts("launch: main_port");
    t.any("gpu_ids", "GPUs of this machine").by_default("all").acts("launch: CUDA_VISIBLE_DEVICES");
    const std::string mpi = "mpirun brings ranks together";
    t.text("rdzv_backend", "How processes meet").by_default("static").none(mpi);
    t.flag("same_network", "Machines are in one network").by_default("false").none(mpi);
    t.text("main_training_function", "What notebooks start").by_default("main").none("a program has a main()");
    const std::string device = "what ranks compute on is the program's: `Compute<Cuda>`, or the CPU";
    t.flag("use_cpu", "No GPU").by_default("false").from("ACCELERATE_USE_CPU").flagged("cpu").none(device);
    t.flag("use_mps_device", "Apple's GPU").by_default("false").none_and_warns(device);
    t.flag("debug", "Check collectives")
        .by_default("false")
        .from("ACCELERATE_DEBUG_MODE")
        .none("collectives are always checked");
    t.flag("enable_cpu_affinity", "Bind ranks to cores")
        .by_default("false")
        .from("ACCELERATE_CPU_AFFINITY")
        .none("mpirun binds ranks: --bind-to");
    t.whole("num_cpu_threads_per_process", "Threads of a rank").within({1}).none("OMP_NUM_THREADS says it");
    add_deepspeed_plugin_rows(table);
    add_fsdp_rows(table);
    add_other_methods(table);
    const std::string tpu = "strata has no TPUs";
    t.any("downcast_bf16", "Of TPUs: float as bf16").by_default("no").none(tpu);
    for (const char* key : {"tpu_use_cluster", "tpu_use_sudo"}) t.flag(key).by_default("false").none_and_warns(tpu);
    for (const char* key : {"tpu_name", "tpu_zone", "command_file"}) t.text(key).none_and_warns(tpu);
    for (const char* key : {"commands", "tpu_vm", "tpu_env"}) t.any(key).none_and_warns(tpu);
    const std::string sagemaker = "of SageMaker";
    for (const char* key :
         {"ec2_instance_type", "iam_role_name", "image_uri", "profile", "region", "base_job_name", "pytorch_version",
          "transformers_version", "py_version", "sagemaker_inputs_file", "sagemaker_metrics_file"})
        t.text(key).none(sagemaker);
    t.any("additional_args").none(sagemaker);
}

}  // namespace strata::config::detail
