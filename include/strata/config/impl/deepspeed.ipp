#pragma once
// strata/config/impl/deepspeed.ipp - what DeepSpeed's keys mean to strata, and the rules between them.

#include <algorithm>
#include <cmath>
#include <utility>

#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/deepspeed_optimizer.ipp>
#include <strata/config/impl/deepspeed_table_more.ipp>
#include <strata/config/impl/deepspeed_table_training.ipp>
#include <strata/config/impl/deepspeed_table_zero.ipp>
#include <strata/config/reading.hpp>

namespace strata::config {

namespace detail {

/// The rules of one file: each member function looks at the keys of one block.
class DeepSpeedRules {
public:
    DeepSpeedRules(Reading& keys, Intent& intent) : keys_{keys}, intent_{intent} {}

    void read(const DeepSpeedContext& context) {
        precision();
        stage();
        offload();
        stage_three();
        disks();
        read_deepspeed_optimizer(keys_, intent_);
        read_deepspeed_scheduler(keys_, intent_);
        if (keys_.text("gradient_allreduce_op") == "sum")
            keys_.refuse("gradient_allreduce_op", Errc::unsupported_key,
                         "is \"sum\", and strata takes the mean of the ranks' gradients",
                         "remove it, and multiply the learning rate by the number of ranks where the rule is SGD");
        batch(context);
    }

private:
    void precision() {
        const bool fp16 = keys_.is_on("fp16.enabled");
        const bool bf16 = keys_.is_on("bf16.enabled");
        std::optional<FormatName>& format = intent_.composition.precision;
        if (fp16 && bf16) {
            keys_.refuse("bf16.enabled", Errc::bad_value, "is true, and so is fp16.enabled",
                         "enable one of them: bf16 where the hardware has it, since it needs no loss scale");
        } else if (fp16) {
            format = FormatName::fp16;
            keys_.acts("fp16.enabled", "Precision<Fp16>");
        } else if (bf16) {
            format = FormatName::bf16;
            keys_.acts("bf16.enabled", "Precision<Bf16>");
        } else if (keys_.flag("fp16.enabled") && keys_.flag("bf16.enabled")) {
            format = FormatName::fp32;
        }
        for (const char* block : {"fp16", "bf16"})
            if (keys_.flag(std::string{block} + ".enabled"))
                keys_.none(std::string{block} + ".enabled", "off, which leaves the other formats");
        pure_bf16(bf16);
        apex_and_autocast(format);
        if (fp16 || keys_.is_auto("fp16.enabled"))
            loss_scale();
        else
            keys_.none_within("fp16", "fp16 is not enabled");
        if (!bf16 && !keys_.is_auto("bf16.enabled")) keys_.none_within("bf16", "bf16 is not enabled");
        if (const auto skips = keys_.flag("bf16.check_grad_overflow"); skips && bf16) {
            intent_.set("engine.on_non_finite", std::string{*skips ? "skip" : "stop"},
                        keys_.at("bf16.check_grad_overflow")->place());
            keys_.mapped("bf16.check_grad_overflow", "engine.on_non_finite",
                         *skips ? "skip: such a step leaves everything as it was"
                                : "stop: strata goes on with no weights that are not finite");
        }
    }
    void pure_bf16(bool bf16) {
        const bool weights = keys_.is_on("bf16.bf16_master_weights_and_grads");
        const bool states = keys_.is_on("bf16.bf16_optimizer_states");
        if (states && !weights) {
            keys_.refuse("bf16.bf16_optimizer_states", Errc::bad_value,
                         "is true without bf16_master_weights_and_grads, which it needs", "set both, or none");
        } else if (weights && bf16) {
            intent_.composition.precision = FormatName::pure_bf16;
            const std::string words = "weights and state in bf16, rounded by chance so that small updates add up";
            keys_.mapped("bf16.bf16_master_weights_and_grads", "Precision<PureBf16>", words);
            keys_.mapped("bf16.bf16_optimizer_states", "Precision<PureBf16>", words);
        } else {
            for (const char* key : {"bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"})
                keys_.none(key, "off: master weights and state are fp32");
        }
    }
    void apex_and_autocast(std::optional<FormatName>& format) {
        if (keys_.is_on("amp.enabled")) {
            if (keys_.whole("zero_optimization.stage").value_or(0) > 0)
                keys_.refuse("amp.enabled", Errc::bad_value, "is true, and apex cannot shard, in DeepSpeed either",
                             "enable fp16 or bf16 instead");
            else if (!format)
                format = keys_.text("amp.opt_level") == "O0" ? FormatName::fp32 : FormatName::fp16;
            keys_.warn_mapped("amp.enabled", "Precision<" + type_name(format.value_or(FormatName::fp16)) + ">",
                              "strata's own mixed precision in place of apex", "write \"fp16\": {\"enabled\": true}");
        } else {
            keys_.none("amp.enabled", "off");
        }
        if (keys_.is_on("torch_autocast.enabled")) {
            const std::string dtype = keys_.text("torch_autocast.dtype");
            if (!format)
                format = dtype.find("float16") != std::string::npos && dtype.find("bfloat16") == std::string::npos
                             ? FormatName::fp16
                             : FormatName::bf16;
            keys_.warn_mapped("torch_autocast.enabled", "Precision<" + type_name(*format) + ">",
                              "parameters and activations are kept in that format, with master weights in fp32",
                              "enable fp16 or bf16 instead");
        } else {
            keys_.none("torch_autocast.enabled", "off");
        }
    }
    void loss_scale() {
        const double fixed = keys_.number("fp16.loss_scale").value_or(0);
        if (keys_.at("fp16.loss_scale") != nullptr) {
            const std::string place = keys_.at("fp16.loss_scale")->place();
            intent_.set("engine.loss_scale.dynamic", fixed == 0, place);
            if (fixed != 0) intent_.set("engine.loss_scale.initial", fixed, place);
            keys_.acts("fp16.loss_scale", fixed == 0 ? "engine.loss_scale.dynamic" : "engine.loss_scale.initial",
                       fixed == 0 ? "" : "the scale stays there");
        }
        if (const auto power = keys_.whole("fp16.initial_scale_power")) {
            if (fixed != 0) {
                keys_.none("fp16.initial_scale_power", "loss_scale says a scale that stays");
            } else {
                intent_.set("engine.loss_scale.initial", std::exp2(static_cast<double>(*power)),
                            keys_.at("fp16.initial_scale_power")->place());
                keys_.acts("fp16.initial_scale_power", "engine.loss_scale.initial");
            }
        }
        const double initial = intent_.number("engine.loss_scale.initial").value_or(65536.0);
        if (const auto least = keys_.number("fp16.min_loss_scale"); least && fixed == 0 && *least > initial)
            keys_.refuse("fp16.min_loss_scale", Errc::bad_value,
                         "is " + shown(*least) + ", above the scale that the run begins with, " + shown(initial),
                         "raise initial_scale_power, or lower min_loss_scale");
    }

    void stage() {
        const std::string block = "zero_optimization";
        if (const auto on = keys_.flag(block)) {  // its form of 2020
            stage_ = *on ? 1 : 0;
            keys_.warn_mapped(block, "ZeroStage<" + std::to_string(stage_) + ">",
                              std::string{"the form of 2020: "} + (*on ? "true is stage 1" : "false is stage 0"),
                              "write {\"stage\": " + std::to_string(stage_) + "}");
        } else {
            stage_ = static_cast<int>(keys_.whole(block + ".stage").value_or(0));
        }
        if (keys_.is_auto(block + ".stage")) return;
        intent_.composition.stage = stage_;
        keys_.acts(block + ".stage", "ZeroStage<" + std::to_string(stage_) + ">");
        if (stage_ >= 2 && keys_.flag(block + ".overlap_comm"))
            keys_.none(block + ".overlap_comm", "stages 2 and 3 always reduce while backward goes on");
    }

    /// The tier that an offload block, or its old form, asks for; nothing where it does not say.
    std::optional<TierName> tier_of(const std::string& block, const std::vector<std::string>& old_keys) {
        const std::string device = keys_.text(block + ".device");
        std::optional<TierName> tier;
        if (device == "cpu") tier = TierName::cpu;
        if (device == "nvme") tier = TierName::nvme;
        if (device == "none") tier = TierName::device;
        if (const auto on = keys_.flag(block)) {
            tier = TierName::device;
            if (*on)
                keys_.refuse(block, Errc::bad_value, "is true, and it is an object", "write {\"device\": \"cpu\"}");
            else
                keys_.warn_none(block, "false: nothing is offloaded", "remove it");
        }
        for (const std::string& old : old_keys) {
            const auto on = keys_.flag(old);
            if (!on) continue;
            if (tier)
                keys_.refuse(old, Errc::bad_value, "and " + block + " are the same key, one by its old name",
                             "keep " + block);
            else
                tier = *on ? TierName::cpu : TierName::device;
            keys_.warn_mapped(
                old, *on ? "OffloadTarget<Cpu>" : "OffloadTarget<Device>",
                "the old form of " + block.substr(block.rfind('.') + 1),
                *on ? "write \"" + block.substr(block.rfind('.') + 1) + "\": {\"device\": \"cpu\"}" : "remove it");
        }
        return tier;
    }
    /// A folder for a tier on disk; a second one that differs cannot be followed.
    void folder_of(const std::string& block) {
        const std::string path = keys_.text(block + ".nvme_path");
        if (path.empty() || path == "none") {
            const Node& device = *keys_.at(block + ".device");
            keys_.findings().refuse(device, Errc::bad_value, "is \"nvme\", and no nvme_path says where",
                                    "add \"nvme_path\": \"/a/folder/on/a/local/disk\" to " + block);
            return;
        }
        const OptionValue* const before = intent_.find("engine.tiers.nvme_path");
        if (before != nullptr && std::get<std::string>(before->value) != path) {
            keys_.warn_mapped(block + ".nvme_path", "engine.tiers.nvme_path",
                              "state and parameters are in one folder, that of offload_optimizer",
                              "give both the same path");
            return;
        }
        intent_.set("engine.tiers.nvme_path", path, keys_.at(block + ".nvme_path")->place());
        keys_.acts(block + ".nvme_path", "engine.tiers.nvme_path");
    }
    KeptOn kept_on(const std::string& block, TierName tier) {
        const double ratio = keys_.number(block + ".ratio").value_or(1);
        const double percent = std::round((1 - ratio) * 100);
        const KeptOn kept{TierName::device, tier, static_cast<int>(percent)};
        const KeptOn all = percent <= 0 ? KeptOn::all_on(tier) : percent >= 100 ? KeptOn{} : kept;
        const bool exact = std::abs((1 - ratio) * 100 - percent) < 1e-9;
        if (exact)
            keys_.acts(block + ".ratio", "OffloadTarget<" + type_name(all) + ">",
                       "of 100 elements " + std::to_string(static_cast<int>(percent)) + " stay on the device");
        else
            keys_.mapped(block + ".ratio", "OffloadTarget<" + type_name(all) + ">", "to whole percents");
        return all;
    }
    void offload() {
        const std::string zero = "zero_optimization.";
        const std::string state = zero + "offload_optimizer";
        if (const auto tier = tier_of(state, {zero + "cpu_offload"})) {
            if (*tier == TierName::device) {
                intent_.composition.state = KeptOn{};
                keys_.acts(state + ".device", "OffloadTarget<Device>", "nothing leaves the device");
                keys_.none_within(state, "the device is none");
            } else if (stage_ == 0) {
                const std::string words = "stage 0 has all of the state on every rank, and nothing is offloaded";
                keys_.warn_none(state + ".device", words, "use stage 1 or higher, or remove offload_optimizer");
                keys_.none_within(state, words);
            } else {
                if (*tier == TierName::nvme) folder_of(state);
                intent_.composition.state = kept_on(state, *tier);
                std::string words;
                if (*tier == TierName::nvme && stage_ < 3)
                    words = "at stage " + std::to_string(stage_) + " as well, where DeepSpeed keeps it in host memory";
                if (keys_.at("optimizer.type") == nullptr)
                    words +=
                        std::string{words.empty() ? "" : "; "} +
                        "the rule is the program's, and any rule's state can be kept there, where DeepSpeed refuses a "
                        "client's optimizer";
                const std::string to = "OffloadTarget<" + type_name(*intent_.composition.state) + ">";
                if (words.empty())
                    keys_.acts(state + ".device", to);
                else
                    keys_.mapped(state + ".device", to, words);
            }
        }
        const std::string parameters = zero + "offload_param";
        if (const auto tier = tier_of(parameters, {zero + "cpu_offload_param", zero + "cpu_offload_params"})) {
            if (*tier == TierName::device) {
                intent_.composition.parameters = KeptOn{};
                keys_.acts(parameters + ".device", "OffloadTarget<Device, Parameters>", "nothing leaves the device");
                keys_.none_within(parameters, "the device is none");
            } else if (stage_ < 3) {
                const std::string words = "parameters are whole on every rank below stage 3 (this is stage " +
                                          std::to_string(stage_) +
                                          "), and none are offloaded; DeepSpeed ignores it too";
                keys_.warn_none(parameters + ".device", words, "use stage 3, or remove offload_param");
                keys_.none_within(parameters, words);
            } else {
                if (*tier == TierName::nvme) folder_of(parameters);
                intent_.composition.parameters = kept_on(parameters, *tier);
                keys_.acts(parameters + ".device",
                           "OffloadTarget<" + type_name(*intent_.composition.parameters) + ", Parameters>");
            }
        }
        for (const std::string& block : {state, parameters})
            keys_.none(block + ".nvme_path", "nothing of it is kept on a disk");
    }

    void stage_three() {
        const std::string zero = "zero_optimization.";
        const std::string bucket = zero + "stage3_prefetch_bucket_size";
        if (stage_ < 3 && !keys_.is_auto(zero + "stage")) {
            for (const char* key :
                 {"stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance",
                  "stage3_param_persistence_threshold", "stage3_model_persistence_threshold",
                  "stage3_module_granularity_threshold", "stage3_gather_16bit_weights_on_model_save", "sub_group_size"})
                keys_.none(zero + key, "of stage 3, and this is stage " + std::to_string(stage_));
        } else if (const auto elements = keys_.whole(bucket)) {
            const std::int64_t bytes =
                intent_.composition.precision.value_or(FormatName::fp32) == FormatName::fp32 ? 4 : 2;
            intent_.set("engine.prefetch_bucket_bytes", *elements * bytes, keys_.at(bucket)->place());
            keys_.mapped(bucket, "engine.prefetch_bucket_bytes",
                         std::to_string(*elements * bytes) + " bytes, " + std::to_string(bytes) + " an element");
        }
    }

    void disks() {
        const Composition& composition = intent_.composition;
        std::vector<std::string> parts;
        if (composition.state && composition.state->uses(TierName::nvme)) parts.emplace_back("engine.tiers.state.io.");
        if (composition.parameters && composition.parameters->uses(TierName::nvme))
            parts.emplace_back("engine.tiers.units.io.");
        if (parts.empty()) return keys_.none_within("aio", "nothing is kept on a disk");
        const auto give = [&](const std::string& key, const std::string& option, std::int64_t least, std::int64_t most,
                              std::int64_t multiple, const std::string& words) {
            const auto given = keys_.whole(key);
            if (!given) return;
            const std::int64_t value = std::clamp((*given + multiple - 1) / multiple * multiple, least, most);
            for (const std::string& part : parts) intent_.set(part + option, value, keys_.at(key)->place());
            if (value == *given)
                keys_.acts(key, parts.front() + option, words);
            else
                keys_.mapped(key, parts.front() + option, "as " + std::to_string(value));
        };
        give("aio.block_size", "block_bytes", 4096, std::int64_t{1} << 30, 4096, "");
        give("aio.queue_depth", "queue_depth", 1, 32768, 1, "");
        give("aio.intra_op_parallelism", "threads", 1, 1024, 1, "where threads read and write");
    }

    void batch(const DeepSpeedContext& context) {
        intent_.batch.global = keys_.whole("train_batch_size");
        intent_.batch.micro = keys_.whole("train_micro_batch_size_per_gpu");
        const auto steps = keys_.whole("gradient_accumulation_steps");
        if (steps)
            intent_.set("engine.gradient_accumulation_steps", *steps, keys_.at("gradient_accumulation_steps")->place());
        keys_.acts("train_micro_batch_size_per_gpu", "samples of a rank in a micro-batch");
        if (!intent_.batch.global) return;
        const std::int64_t share = intent_.batch.micro.value_or(1) * steps.value_or(1);
        const std::int64_t ranks = context.ranks.value_or(std::max<std::int64_t>(1, *intent_.batch.global / share));
        const bool is_open = !context.ranks && !(intent_.batch.micro && steps);
        try {
            if (!is_open) (void)batch_on(intent_, ranks);
            keys_.acts("train_batch_size", "samples of a step",
                       !is_open && !context.ranks
                           ? "on " + std::to_string(ranks) + " ranks, which the three numbers fix"
                           : "");
        } catch (const Error& problem) {
            keys_.refuse("train_batch_size", problem.code(),
                         "is " + std::to_string(*intent_.batch.global) + ": " + problem.problem(), problem.fix());
        }
    }

    Reading& keys_;
    Intent& intent_;
    int stage_ = 0;
};

}  // namespace detail

STRATA_INLINE const FormatTable& deepspeed_table() {
    static const FormatTable table = [] {
        FormatTable all{"DeepSpeed", "docs/config/deepspeed.md"};
        detail::add_batch_rows(all);
        detail::add_precision_rows(all);
        detail::add_zero_rows(all);
        detail::add_disk_rows(all);
        detail::add_optimizer_rows(all);
        detail::add_scheduler_rows(all);
        detail::add_activation_rows(all);
        detail::add_monitor_rows(all);
        detail::add_method_rows(all);
        return all;
    }();
    return table;
}

STRATA_INLINE Intent read_deepspeed(const Node& root, Findings& findings, const DeepSpeedContext& context) {
    const FormatTable& table = deepspeed_table();
    const bool knows_any = std::any_of(root.members().begin(), root.members().end(),
                                       [&](const Node::Member& member) { return table.find(member.key) != nullptr; });
    if (const Node* const inner = root.find("deepspeed");
        !knows_any && inner != nullptr && inner->is(NodeKind::object)) {
        findings.warn_no_effect(root, "only its object `deepspeed` is DeepSpeed's, and only that is read",
                                "give that object as a file of its own");
        return read_deepspeed(*inner, findings, context);
    }
    Intent intent;
    if (root.is(NodeKind::object) &&
        (root.find("distributed_type") != nullptr || root.find("compute_environment") != nullptr)) {
        findings.refuse(root, Errc::bad_value, "is an Accelerate configuration, and no DeepSpeed configuration",
                        "read it as one; its deepspeed_config is what is DeepSpeed's");
        return intent;
    }
    Reading keys{root, table, findings};
    detail::DeepSpeedRules{keys, intent}.read(context);
    keys.finish(intent);
    return intent;
}

STRATA_INLINE Intent load_deepspeed(const std::filesystem::path& file, Findings& findings,
                                    const DeepSpeedContext& context) {
    const Document document = load_document(file);
    findings.take(document);
    return read_deepspeed(document.root, findings, context);
}

}  // namespace strata::config
