#pragma once
// strata/config/impl/deepspeed_table_zero.ipp - DeepSpeed's keys of sharding, offload and disks.

#include <strata/config/format_table.hpp>

namespace strata::config::detail {

inline void add_offload_rows(FormatTable::Rows& zero) {
    zero.object("offload_optimizer", "Where the optimizer's state is kept").or_flag().no_others();
    FormatTable::Rows o = zero.in("offload_optimizer");
    o.choice("device", {"none", "cpu", "nvme"}, "Where").by_default("none").in_any_case().acts("OffloadTarget<Tier>");
    o.text("nvme_path", "A folder on a local disk").acts("engine.tiers.nvme_path");
    o.number("ratio", "Share of the parameters whose state leaves the device")
        .within({0, 1})
        .by_default("1.0")
        .acts("OffloadTarget<Split<Device, Cpu, Percent>>");
    o.flag("pin_memory", "Page-locked buffers").by_default("true").none("host memory is pinned where there is a GPU");
    const std::string buffers = "windows under way are as many as `offload_state_budget_bytes` has room for";
    o.whole("buffer_count", "Buffers of a swap").within({0}).by_default("4").none(buffers);
    o.number("buffer_size", "Elements of a buffer").within({0}).none(buffers);
    const std::string pipeline = "reading ahead and writing behind always overlap the update";
    o.flag("pipeline", "Read and write beside the update").by_default("false").none(pipeline);
    o.flag("pipeline_read", "Read beside the update").by_default("false").none(pipeline);
    o.flag("pipeline_write", "Write beside the update").by_default("false").none(pipeline);
    o.flag("fast_init", "Initialise NVMe state fast").by_default("false").none("state is written once, when it begins");
    o.flag("super_offload", "Updates on a host that shares memory with its GPU")
        .by_default("false")
        .none_and_warns("the update runs on the host after the last gradient");
    o.number("cpuadam_cores_perc", "Share of the cores for the update")
        .within({0, 1})
        .by_default("0.8")
        .none("the update uses the threads that OpenMP has: OMP_NUM_THREADS");

    zero.object("offload_param", "Where shares of parameters are kept; of stage 3").or_flag().no_others();
    FormatTable::Rows p = zero.in("offload_param");
    p.choice("device", {"none", "cpu", "nvme"}, "Where")
        .by_default("none")
        .in_any_case()
        .acts("OffloadTarget<Tier, Parameters>");
    p.text("nvme_path", "A folder on a local disk").acts("engine.tiers.nvme_path");
    p.flag("pin_memory", "Page-locked buffers").by_default("true").none("host memory is pinned where there is a GPU");
    const std::string windows = "windows under way are as many as `offload_units_budget_bytes` has room for";
    p.whole("buffer_count", "Buffers of a swap").within({0}).by_default("5").none(windows);
    p.number("buffer_size", "Elements of a buffer").within({0}).by_default("1e8").none(windows);
    p.number("max_in_cpu", "Elements that stay in host memory when the device is nvme")
        .within({0})
        .by_default("1e9")
        .none(
            "the page cache is passed by, and memory holds the windows; `Split<Cpu, Nvme, Percent>` keeps a part there");
    p.number("ratio", "Share of the parameters that leaves the device")
        .within({0, 1})
        .by_default("1.0")
        .acts("OffloadTarget<Split<Device, Cpu, Percent>, Parameters>");
}

inline void add_zero_rows(FormatTable& table) {
    FormatTable::Rows top = table.top();
    top.object("zero_optimization", "What is split over the ranks").or_flag().no_others();
    FormatTable::Rows z = top.in("zero_optimization");
    z.whole("stage", "0 nothing, 1 optimizer state, 2 and gradients, 3 and parameters")
        .within({0, 3})
        .by_default("0")
        .acts("ZeroStage<N>");
    add_offload_rows(z);
    z.whole("reduce_bucket_size", "Elements reduced at once")
        .within({1, ranges::size.most})
        .by_default("5e8")
        .option("engine.bucket_numel");
    z.flag("overlap_comm", "Reduce while backward goes on").by_default("true at stage 3").option("engine.overlap");
    z.whole("stage3_prefetch_bucket_size", "Elements gathered ahead of their use")
        .within({0, ranges::size.most / 4})  // four bytes each
        .by_default("5e7")
        .mapped("engine.prefetch_bucket_bytes", "bytes, at those of an element in the precision of the run");
    z.whole("stage3_max_live_parameters", "Parameters that may be whole at once")
        .within({0})
        .by_default("1e9")
        .option("engine.max_live_parameters");
    const std::string by_unit = "parameters are gathered a unit at a time, whatever their sizes";
    z.number("stage3_max_reuse_distance", "Parameters used again within so many elements stay whole")
        .within({0})
        .by_default("1e9")
        .none("a unit is released after its use, and gathered again for backward");
    z.whole("stage3_param_persistence_threshold", "Smaller parameters stay whole")
        .within({0})
        .by_default("1e5")
        .none(by_unit);
    z.number("stage3_model_persistence_threshold", "Elements that may stay whole that way").within({0}).none(by_unit);
    z.whole("stage3_module_granularity_threshold", "Modules below are gathered as one")
        .within({0})
        .by_default("0")
        .none("the grain is the `strata::Unit` that a model names");
    z.flag("stage3_gather_16bit_weights_on_model_save", "Whole weights in a saved model")
        .by_default("false")
        .none("a checkpoint of any stage has whole weights, as `model.safetensors`");
    z.flag("stage3_gather_fp16_weights_on_model_save")
        .old_name_of("zero_optimization.stage3_gather_16bit_weights_on_model_save");
    z.flag("gather_16bit_weights_on_model_save")
        .old_name_of("zero_optimization.stage3_gather_16bit_weights_on_model_save");
    z.flag("gather_fp16_weights_on_model_save")
        .old_name_of("zero_optimization.stage3_gather_16bit_weights_on_model_save");
    z.whole("prefetch_bucket_size").within({0}).old_name_of("zero_optimization.stage3_prefetch_bucket_size");
    z.whole("max_live_parameters").within({0}).old_name_of("zero_optimization.stage3_max_live_parameters");
    z.number("max_reuse_distance").within({0}).old_name_of("zero_optimization.stage3_max_reuse_distance");
    z.whole("param_persistence_threshold")
        .within({0})
        .old_name_of("zero_optimization.stage3_param_persistence_threshold");
    z.number("model_persistence_threshold")
        .within({0})
        .old_name_of("zero_optimization.stage3_model_persistence_threshold");
    z.flag("stage3_use_all_reduce_for_fetch_params").by_default("false").none(by_unit);
    z.flag("stage3_allgather_sequential").by_default("false").none(by_unit);
    z.number("sub_group_size", "Elements updated at once at stage 3, and swapped at once")
        .within({0})
        .by_default("1e9")
        .none("state on a disk goes through windows, whose memory is `offload_state_budget_bytes`");

    const std::string one_way = "gradients are reduced to shares in rank order, which has one way";
    z.flag("contiguous_gradients", "Copy gradients into one buffer")
        .by_default("true")
        .none("a bucket of gradients is one buffer from the start");
    z.flag("reduce_scatter", "Rather than all-reduce").by_default("true").none(one_way);
    z.flag("use_multi_rank_bucket_allreduce").by_default("true").none(one_way);
    z.flag("round_robin_gradients", "Spread the copies of gradients over ranks").by_default("false").none(one_way);
    z.flag("allgather_partitions", "All-gather rather than broadcast updated parameters")
        .by_default("true")
        .none("updated shares are gathered");
    z.whole("allgather_bucket_size", "Elements gathered at once")
        .within({0})
        .by_default("5e8")
        .none("a bucket is gathered as it was reduced: `reduce_bucket_size`");
    z.number("allgather_size").within({0}).old_name_of("zero_optimization.allgather_bucket_size");
    z.flag("load_from_fp32_weights", "Start from the checkpoint's fp32 weights")
        .by_default("true")
        .none("a checkpoint holds the weights that training goes on from, in full precision");
    z.flag("elastic_checkpoint", "Checkpoints for other numbers of ranks")
        .by_default("false")
        .none("every checkpoint resumes on any number of ranks");
    z.flag("ignore_unused_parameters", "Parameters may miss a gradient")
        .by_default("true")
        .none("a parameter that gets no gradient is fine");
    z.flag("legacy_stage1", "Stage 1 of 2020").by_default("false").none_and_warns("there is one stage 1");
    z.flag("cpu_offload", "Old form of offload_optimizer")
        .by_default("false")
        .mapped("OffloadTarget<Cpu>", "as offload_optimizer.device cpu");
    z.flag("cpu_offload_params", "Old form of offload_param")
        .by_default("false")
        .mapped("OffloadTarget<Cpu, Parameters>", "as offload_param.device cpu");
    z.flag("cpu_offload_param", "Old form of offload_param")
        .by_default("false")
        .mapped("OffloadTarget<Cpu, Parameters>", "as offload_param.device cpu");
    z.flag("cpu_offload_use_pin_memory", "Old form of pin_memory")
        .by_default("false")
        .none("host memory is pinned where there is a GPU");

    const std::string plus = "ZeRO++ compresses what is exchanged; strata exchanges whole numbers over all ranks";
    z.whole("zero_hpz_partition_size", "Ranks that keep a second share of parameters")
        .within({1})
        .by_default("1")
        .none_and_warns(plus);
    z.flag("zero_quantized_weights", "Gather weights in 8 bits").by_default("false").none_and_warns(plus);
    z.flag("zero_quantized_nontrainable_weights", "Keep frozen weights in 8 bits")
        .by_default("false")
        .none_and_warns(plus);
    z.flag("zero_quantized_gradients", "Reduce gradients in 4 bits").by_default("false").none_and_warns(plus);
    z.any("zeropp_loco_param", "Compensates the error of that").none_and_warns(plus);
    z.whole("mics_shard_size", "MiCS: ranks that share a copy")
        .by_default("-1")
        .none_and_warns("shares go over all ranks");
    z.flag("mics_hierarchical_params_gather").by_default("false").none_and_warns("shares go over all ranks");
    z.any("zenflow", "Updates beside the next steps").none_and_warns("every step waits for its update");
    z.flag("memory_efficient_linear", "Recompute in linear layers")
        .by_default("true")
        .none("what is kept for backward is the model's, and `Recompute<Blocks>`");
    z.flag("pipeline_loading_checkpoint")
        .by_default("false")
        .none("ranks read their shares of a checkpoint side by side");
    z.flag("override_module_apply").by_default("true").none("there is no module.apply to change");
    z.flag("log_trace_cache_warnings").by_default("false").none("units are gathered in the order of the model");
    z.flag("enable_sanity_checks").by_default("false").none("collectives are always checked");
    z.flag("save_muon_momentum_buffer_in_memory").by_default("false").none("there is no Muon");
    z.any("leaf_module", "Modules gathered as one").none("the grain is the `strata::Unit` that a model names");
}

inline void add_disk_rows(FormatTable& table) {
    FormatTable::Rows top = table.top();
    top.object("aio", "How files of state are read and written").none("nothing is kept on a disk").no_others();
    FormatTable::Rows a = top.in("aio");
    a.whole("block_size", "Bytes of a request")
        .within({1})
        .by_default("1048576")
        .mapped("engine.tiers.state.io.block_bytes", "a multiple of 4096, for state and for units");
    a.whole("queue_depth", "Requests at once")
        .within({1})
        .by_default("8")
        .mapped("engine.tiers.state.io.queue_depth", "for state and for units");
    a.whole("intra_op_parallelism", "Threads of a request")
        .within({1})
        .by_default("1")
        .mapped("engine.tiers.state.io.threads", "blocks under way at once, where threads read and write");
    a.whole("thread_count").within({1}).old_name_of("aio.intra_op_parallelism");
    a.flag("single_submit", "Hand requests over one by one")
        .by_default("false")
        .none("requests go to the kernel together");
    a.flag("overlap_events", "Hand over while others end").by_default("true").none("that is always so");
    a.flag("use_gds", "GPUDirect Storage").by_default("false").none_and_warns("files are read into host memory");
}

}  // namespace strata::config::detail
