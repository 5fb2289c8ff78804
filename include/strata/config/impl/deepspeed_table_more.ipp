#pragma once
// strata/config/impl/deepspeed_table_more.ipp - DeepSpeed's keys around training: records, profilers, other methods.

#include <strata/config/format_table.hpp>

namespace strata::config::detail {

inline void add_activation_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("activation_checkpointing", "How activations that the model's code checkpoints are kept")
        .none(
            "which blocks run again in backward is said by `Recompute<Blocks>`, and inputs of blocks stay on the device");
    FormatTable::Rows a = t.in("activation_checkpointing");
    a.flag("partition_activations", "Split them over model-parallel ranks").by_default("false");
    a.flag("cpu_checkpointing", "Keep them in host memory")
        .by_default("false")
        .none_and_warns("inputs of recomputed blocks stay on the device");
    a.flag("contiguous_memory_optimization").by_default("false");
    a.whole("number_checkpoints", "How many there are").within({0});
    a.flag("synchronize_checkpoint_boundary").by_default("false");
    a.flag("profile").by_default("false");
}

inline void add_monitor_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    const std::string record = "`metrics.jsonl` in the output folder has a line a step";
    const auto monitor = [&](const std::string& name, std::initializer_list<const char*> texts) {
        t.object(name, "A record of the run").none(record);
        FormatTable::Rows m = t.in(name);
        m.flag("enabled").by_default("false").none_and_warns(record);
        for (const char* key : texts) m.text(key);
    };
    monitor("tensorboard", {"output_path", "job_name"});
    monitor("wandb", {"group", "team", "project", "name"});
    monitor("csv_monitor", {"output_path", "job_name"});
    monitor("comet", {"project", "workspace", "api_key", "experiment_name", "experiment_key", "mode"});
    t.in("comet").any("*");
    t.object("monitor", "Records of the run").none(record);
    t.in("monitor").any("*");
    t.object("monitor_config", "Records of the run").none(record);
    t.in("monitor_config").any("*");
    t.object("comms_logger", "A record of exchanges").none("a job that hangs names the last collectives of every rank");
    FormatTable::Rows c = t.in("comms_logger");
    for (const char* key : {"enabled", "verbose", "prof_all", "debug"}) c.flag(key).by_default("false");
    c.list("prof_ops");
    t.object("flops_profiler", "Counts operations of a step").none("use perf or nsys on the process");
    FormatTable::Rows f = t.in("flops_profiler");
    f.flag("enabled").by_default("false").none_and_warns("use perf or nsys on the process");
    f.flag("recompute_fwd_factor").by_default("false");
    for (const char* key : {"profile_step", "module_depth", "top_modules"}) f.whole(key);
    f.flag("detailed").by_default("true");
    f.text("output_file");
    f.any("*");
}

inline void add_method_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    const auto method = [&](const std::string& name, const std::string& meaning, const std::string& instead,
                            bool has_switch = true) {
        t.object(name, meaning).none(instead).warns = true;
        FormatTable::Rows m = t.in(name);
        if (has_switch) m.flag("enabled").by_default("false");
        m.any("*");
    };
    method("autotuning", "Tries configurations out", "the configuration is used as it stands");
    method("elasticity", "Batches for several numbers of ranks",
           "the batch is what the batch keys say; every checkpoint resumes on any number of ranks");
    method("compression_training", "Quantizes and prunes while it trains", "weights are trained as they are", false);
    method("quantize_training", "Quantizes while it trains", "weights are trained as they are");
    method("sparse_attention", "Blocks of attention left out", "attention is the model's", false);
    method("curriculum_learning", "Samples by their difficulty", "all samples are drawn from the first step on");
    method("data_efficiency", "Samples by their difficulty, layers dropped",
           "all samples are drawn from the first step on");
    method("progressive_layer_drop", "Drops layers at random", "all layers train");
    method("eigenvalue", "Curvature for quantization", "weights are trained as they are");
    method("hybrid_engine", "Generation between steps", "generation is the program's");
    method("compile", "torch.compile, DeepCompile", "kernels are compiled with the program", false);
    method("weight_quantization", "Quantizes weights for inference", "weights are trained as they are", false);
    method("nebula", "Checkpoints in the background, on Azure", "checkpoints are written by strata itself");
    method("datastates_ckpt", "Checkpoints in the background", "checkpoints are written by strata itself");

    t.object("pipeline", "Parts of the model on different ranks")
        .none_and_warns("strata has no pipeline parallelism: every rank computes the whole model");
    FormatTable::Rows p = t.in("pipeline");
    p.any("*");
    t.object("tensor_parallel", "Layers split over ranks")
        .none_and_warns("strata has no tensor parallelism: every rank computes whole layers");
    t.in("tensor_parallel").any("*");
    t.whole("sequence_parallel_size").within({1}).by_default("1").none_and_warns("strata splits no sequences");
    t.object("checkpoint", "How checkpoints are written");
    FormatTable::Rows c = t.in("checkpoint");
    c.choice("tag_validation", {"Ignore", "Warn", "Fail"}, "Ranks name a checkpoint alike")
        .in_any_case()
        .by_default("Warn")
        .none("one rank names it");
    c.flag("load_universal", "Read a universal checkpoint").by_default("false").none("every checkpoint is one");
    c.flag("use_node_local_storage", "Every machine keeps its own")
        .by_default("false")
        .none_and_warns("the output folder is one that all machines see");
    c.any("parallel_write").none("all ranks write");
    c.any("writer").none("strata has one");
    t.object("moe", "Experts on different ranks").none_and_warns("strata has no expert parallelism");
    t.in("moe").any("*");
}

}  // namespace strata::config::detail
