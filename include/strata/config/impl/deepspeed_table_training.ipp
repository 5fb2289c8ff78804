#pragma once
// strata/config/impl/deepspeed_table_training.ipp - DeepSpeed's keys of batches, rules, schedules and number formats.

#include <strata/config/format_table.hpp>

namespace strata::config::detail {

inline void add_batch_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.whole("train_batch_size", "Samples of a step on all ranks")
        .within({1, ranges::positive.most})
        .or_auto()
        .acts("samples of a step");
    t.whole("train_micro_batch_size_per_gpu", "Samples of a rank in a micro-batch")
        .within({1, 1e6})
        .or_auto()
        .acts("samples of a rank in a micro-batch");
    t.whole("gradient_accumulation_steps", "Micro-batches of a step")
        .within(ranges::accumulation_steps)
        .or_auto()
        .option("engine.gradient_accumulation_steps");
    t.number("gradient_clipping", "The norm that gradients are scaled down to; 0 does not")
        .within(ranges::gradient_limit)
        .or_auto()
        .by_default("1.0, and 0 before June 2026")
        .option("engine.max_grad_norm");
    t.number("steps_per_print", "Steps between lines of progress")
        .within({0})
        .by_default("10")
        .none("`metrics.jsonl` has a line a step");
    t.flag("wall_clock_breakdown", "Print times of forward, backward and step")
        .by_default("false")
        .none("`metrics.jsonl` has the seconds of every step");
    t.flag("memory_breakdown", "Print memory")
        .by_default("false")
        .none("`Trainer::memory()` counts bytes by what they hold and where");
    t.flag("dump_state", "Print the engine's state")
        .by_default("false")
        .none("a checkpoint's `manifest.json` says what the run is made of");
    t.flag("prescale_gradients", "Divide gradients before they are summed")
        .by_default("false")
        .none("gradients are summed in fp32, in rank order, and divided once");
    t.number("gradient_predivide_factor", "What they are divided by then")
        .by_default("1.0")
        .none("gradients are summed in fp32, in rank order, and divided once");
    t.choice("gradient_allreduce_op", {"mean", "sum"}, "What becomes of the ranks' gradients")
        .in_any_case()
        .by_default("mean")
        .acts("mean");
    const std::string fp32_sums = "gradients travel as they are kept, and are summed in fp32";
    t.choice("communication_data_type", {"fp16", "fp32", "bf16", "fp64"}, "Number format of exchanges")
        .in_any_case()
        .none(fp32_sums);
    t.choice("seq_parallel_communication_data_type", {"fp16", "fp32", "bf16"}, "The same between parts of a sequence")
        .in_any_case()
        .none("strata splits no sequences");
    t.flag("sparse_gradients", "Exchange rows of embeddings only").by_default("false").none("gradients are dense");
    t.flag("disable_allgather", "Broadcast instead").by_default("false").none("updated shares are gathered");
    t.flag("graph_harvesting", "Capture CUDA graphs").by_default("false").none_and_warns("steps run kernel by kernel");
    t.flag("dataloader_drop_last", "Leave out the last incomplete batch")
        .by_default("false")
        .none("the last batch of a round is filled up (docs/data.md)");
    t.flag("managed_gradient_accumulation").by_default("true").none("the trainer counts micro-batches");
    t.flag("use_data_before_expert_parallelism").by_default("false").none("strata has no expert parallelism");
    t.flag("zero_allow_untested_optimizer", "Shard with any optimizer")
        .by_default("false")
        .none("every update rule is sharded in the same way");
    t.flag("zero_force_ds_cpu_optimizer", "Refuse offload with an optimizer of the program's own")
        .by_default("true")
        .none("every update rule runs where its state is");
    t.whole("vocabulary_size", "Warns where it is no multiple of 8").none("it is the model's");
    t.any("data_types", "grad_accum_dtype: number format that gradients are added up in")
        .none("micro-batches are added up in the format of the gradients, and over the ranks in fp32");
    t.flag("elastic_checkpoint").old_name_of("zero_optimization.elastic_checkpoint");
}

inline void add_optimizer_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("optimizer", "The update rule");
    FormatTable::Rows o = t.in("optimizer");
    o.text("type", "Its name").acts("Optimizer<Rule>");
    o.text("name").old_name_of("optimizer.type");  // SimpleTuner's
    o.flag("legacy_fusion", "Fusion of 2020").by_default("false").none("updates are fused");
    o.object("params", "Its numbers").no_others();
    FormatTable::Rows p = o.in("params");
    p.number("lr", "Learning rate").within(ranges::learning_rate).or_auto().by_default("1e-3").option("schedule.lr");
    p.list("betas", "Decays of the two means").or_auto().by_default("[0.9, 0.999]").acts("engine.update.beta1, beta2");
    p.number("eps", "Added to the root of the second mean")
        .within(ranges::epsilon)
        .or_auto()
        .by_default("1e-8")
        .acts("engine.update.epsilon");
    p.number("weight_decay", "Weight decay")
        .within(ranges::weight_decay)
        .or_auto()
        .by_default("0")
        .option("engine.update.weight_decay");
    p.number("momentum", "Of SGD").within(ranges::momentum).or_auto().by_default("0").acts("engine.update.momentum");
    p.number("dampening", "Of SGD").within({0, 1}).by_default("0").acts("engine.update.dampening");
    p.flag("nesterov", "Of SGD").by_default("false").acts("engine.update.nesterov");
    p.number("lr_decay", "Of Adagrad").within({0, 1e6}).by_default("0").acts("engine.update.lr_decay");
    p.number("initial_accumulator_value", "Of Adagrad")
        .within({0, 1e30})
        .by_default("0")
        .acts("engine.update.initial_accumulator_value");
    p.number("max_coeff", "Of Lamb: largest trust ratio")
        .within({0})
        .by_default("10")
        .none_and_warns("the ratio has no bounds");
    p.number("min_coeff", "Of Lamb: smallest trust ratio")
        .within({0})
        .by_default("0.01")
        .none_and_warns("the ratio has no bounds");
    p.flag("bias_correction", "Means are divided by what they lack at first")
        .by_default("true")
        .acts("engine.update.bias_correction");
    p.flag("adam_w_mode", "Decoupled weight decay").by_default("true").acts("Optimizer<AdamW>");
    p.flag("amsgrad", "The largest second mean so far").by_default("false").none("strata has none");
    const std::string kernels = "strata has its own kernels for the CPU and for CUDA";
    p.flag("torch_adam", "torch's kernel").by_default("false").none(kernels);
    for (const char* key : {"fused", "foreach", "capturable", "differentiable", "cuda_aware"})
        p.flag(key).by_default("false").none(kernels);
    p.flag("maximize", "Go uphill").by_default("false").none("strata goes downhill");
    p.flag("fp32_optimizer_states", "State in fp32")
        .by_default("true")
        .none("state is fp32, and bf16 with `Precision<PureBf16>`");
    p.number("max_grad_norm", "Not read: `gradient_clipping` is")
        .within(ranges::gradient_limit)
        .mapped("engine.max_grad_norm", "as gradient_clipping");
    const std::string other_rules = "a number of rules that strata does not have";
    for (const char* key :
         {"freeze_step", "var_freeze_step", "var_update_scaler", "local_step_scaler", "local_step_clipper", "muon_lr",
          "adam_lr", "coeff_beta", "factor_max", "factor_min", "factor_threshold"})
        p.number(key).none(other_rules);
    for (const char* key : {"comm_backend_name", "ns_method"}) p.text(key).none(other_rules);
}

inline void add_scheduler_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("scheduler", "The learning rate over the run");
    FormatTable::Rows s = t.in("scheduler");
    s.text("type", "Its name").acts("schedule");
    s.object("params", "Its numbers").no_others();
    FormatTable::Rows p = s.in("params");
    const Range rate = ranges::learning_rate;
    p.number("warmup_min_lr", "Where the warm-up begins")
        .within(rate)
        .or_auto()
        .by_default("0")
        .acts("schedule's min_lr");
    p.number("warmup_max_lr", "Where it ends")
        .within(rate)
        .or_auto()
        .by_default("the optimizer's lr; 1e-3 of WarmupDecayLR")
        .acts("schedule's max_lr");
    p.whole("warmup_num_steps", "Steps of it")
        .within(ranges::count)
        .or_auto()
        .by_default("1000")
        .acts("schedule's warmup_steps");
    p.choice("warmup_type", {"log", "linear"}, "Its curve").by_default("log").acts("schedule's curve");
    p.whole("total_num_steps", "Steps in which the rate falls")
        .within(ranges::count)
        .or_auto()
        .acts("schedule's total_steps");
    p.number("warmup_min_ratio", "Of WarmupCosineLR: where the warm-up begins")
        .within({0, 1})
        .by_default("0")
        .acts("schedule's warmup_min_ratio");
    p.number("cos_min_ratio", "Of WarmupCosineLR: where the cosine ends")
        .within({0, 1})
        .by_default("1e-4")
        .acts("schedule's cos_min_ratio");
    p.whole("last_batch_iteration", "The step it starts after").by_default("-1").none("a run knows its step");
    p.number("cycle_min_lr", "Of OneCycle").within(rate).acts("schedule's min_lr");
    p.number("cycle_max_lr", "Of OneCycle").within(rate).acts("schedule's max_lr");
    p.number("decay_lr_rate", "Of OneCycle").within({0, 1e6}).by_default("0").acts("schedule's decay_lr_rate");
    p.whole("cycle_first_step_size", "Of OneCycle")
        .within(ranges::positive)
        .by_default("2000")
        .acts("schedule's first_steps");
    p.whole("cycle_second_step_size", "Of OneCycle").within({-1, ranges::count.most}).acts("schedule's second_steps");
    p.whole("cycle_first_stair_count", "Of OneCycle")
        .within(ranges::count)
        .by_default("0")
        .acts("schedule's first_stairs");
    p.whole("cycle_second_stair_count", "Of OneCycle")
        .within({-1, ranges::count.most})
        .acts("schedule's second_stairs");
    p.whole("decay_step_size", "Of OneCycle").within(ranges::count).by_default("0").acts("schedule's decay_steps");
    const std::string momentum = "the momentum stays that of the rule";
    p.flag("cycle_momentum", "Of OneCycle: the momentum moves as well").by_default("true").none(momentum);
    p.number("cycle_min_mom", "Of OneCycle").within(ranges::momentum).by_default("0.8").none(momentum);
    p.number("cycle_max_mom", "Of OneCycle").within(ranges::momentum).by_default("0.9").none(momentum);
    p.number("decay_mom_rate", "Of OneCycle").within({0, 1e6}).by_default("0").none(momentum);
    p.number("lr_range_test_min_lr", "Of LRRangeTest").within(rate).by_default("1e-3").acts("schedule's min_lr");
    p.whole("lr_range_test_step_size", "Of LRRangeTest")
        .within(ranges::positive)
        .by_default("2000")
        .acts("schedule's step_size");
    p.number("lr_range_test_step_rate", "Of LRRangeTest").within({0, 1e6}).by_default("1").acts("schedule's step_rate");
    p.flag("lr_range_test_staircase", "Of LRRangeTest").by_default("false").acts("schedule's staircase");
    p.whole("T_max", "Of CosineAnnealingLR").within(ranges::positive).acts("schedule.total_steps");
    p.number("eta_min", "Of CosineAnnealingLR").within(rate).by_default("0").acts("schedule.end_lr");
}

inline void add_precision_rows(FormatTable& table) {
    FormatTable::Rows t = table.top();
    t.object("fp16", "Mixed precision with fp16");
    FormatTable::Rows f = t.in("fp16");
    f.flag("enabled").or_auto().by_default("false").acts("Precision<Fp16>");
    f.flag("auto_cast", "Cast inputs").by_default("false").none("a batch is cast to the format of the parameters");
    f.number("loss_scale", "0 moves it; any other number stays")
        .within({0, 1e30})
        .or_auto()
        .by_default("0")
        .acts("engine.loss_scale.dynamic");
    f.whole("initial_scale_power", "It begins at 2 to this")
        .within({0, 99})
        .or_auto()
        .by_default("16")
        .acts("engine.loss_scale.initial");
    f.whole("loss_scale_window", "Steps without overflow until it doubles")
        .within(ranges::positive)
        .or_auto()
        .by_default("1000")
        .option("engine.loss_scale.window");
    f.whole("hysteresis", "Overflows until it halves")
        .within({1, 1e6})
        .or_auto()
        .by_default("2")
        .option("engine.loss_scale.hysteresis");
    f.flag("consecutive_hysteresis", "A good step counts overflows anew")
        .by_default("false")
        .option("engine.loss_scale.consecutive_hysteresis");
    f.number("min_loss_scale", "It falls no further")
        .within({1e-9, 1e30})
        .or_auto()
        .by_default("1")
        .option("engine.loss_scale.minimum");
    f.flag("fp16_master_weights_and_grads", "Master weights in fp16")
        .by_default("false")
        .none_and_warns("master weights of fp16 are fp32; `Precision<PureBf16>` has 16 bits throughout");

    t.object("bf16", "Mixed precision with bf16");
    FormatTable::Rows b = t.in("bf16");
    b.flag("enabled").or_auto().by_default("false").acts("Precision<Bf16>");
    b.flag("auto_cast", "Cast inputs").by_default("false").none("a batch is cast to the format of the parameters");
    b.flag("immediate_grad_update", "Add gradients up as they come").by_default("true").none("that is always so");
    b.flag("check_grad_overflow", "Skip a step whose gradients are not finite")
        .by_default("true")
        .acts("engine.on_non_finite");
    b.flag("bf16_master_weights_and_grads", "No fp32 weights").by_default("false").acts("Precision<PureBf16>");
    b.flag("bf16_optimizer_states", "State in bf16").by_default("false").acts("Precision<PureBf16>");
    t.object("bfloat16").old_name_of("bf16");

    t.object("fp8", "None of DeepSpeed's")
        .none_and_warns("neither DeepSpeed nor strata trains in 8 bits; bf16 is the nearest");
    t.in("fp8").any("*");
    t.object("amp", "Mixed precision by NVIDIA's apex");
    FormatTable::Rows m = t.in("amp");
    m.flag("enabled").or_auto().by_default("false").acts("Precision<Fp16>");
    m.text("opt_level", "O0 to O3").by_default("O1").none("what is cast is the model's parameters");
    m.any("*").none("apex is not used");
    t.object("torch_autocast", "torch.autocast");
    FormatTable::Rows c = t.in("torch_autocast");
    c.flag("enabled").by_default("false").mapped("Precision<Format>", "parameters themselves are kept in that format");
    c.text("dtype", "bfloat16 or float16").none("of torch_autocast.enabled");
    c.list("lower_precision_safe_modules").none_and_warns("all parameters are of one format");
}

}  // namespace strata::config::detail
