#pragma once
// strata/config/impl/accelerate.ipp - what Accelerate's keys mean to strata, and the rules between them.

#include <algorithm>
#include <system_error>
#include <utility>

#include <strata/config/accelerate.hpp>
#include <strata/config/deepspeed.hpp>
#include <strata/config/impl/accelerate_methods.ipp>
#include <strata/config/impl/accelerate_table.ipp>
#include <strata/config/impl/reading.ipp>
#include <strata/config/reading.hpp>

namespace strata::config {

namespace detail {

/// The rules of one configuration.
class AccelerateRules {
public:
    AccelerateRules(Reading& keys, Intent& intent, const AccelerateContext& context)
        : keys_{keys}, intent_{intent}, context_{context} {}

    void read() {
        const Composition from_file = deepspeed_file();
        read_ranks(keys_, intent_.launch);
        distributed_type();
        precision(from_file);
    }

private:
    // ---- what ranks do together --------------------------------------------------------------------------------

    void distributed_type() {
        const std::string key = "distributed_type";
        type_ = keys_.text(key);
        if (keys_.text("compute_environment") == "amazon_sagemaker")
            refuse_platform(keys_, "compute_environment", "starts no jobs on SageMaker",
                            "run on machines that mpirun reaches, and write LOCAL_MACHINE");
        const bool is_deepspeed = type_ == "deepspeed";
        const bool is_fsdp = type_ == "fsdp";
        const bool is_megatron = type_ == "megatron_lm";
        const bool is_open = context_.is_part && keys_.root().find(key) == nullptr;
        if (keys_.root().is(NodeKind::object) && keys_.root().find(key) == nullptr && !is_open)
            keys_.findings().refuse(keys_.root(), Errc::bad_value, "has no distributed_type, which Accelerate requires",
                                    "add distributed_type: NO, MULTI_GPU, DEEPSPEED or FSDP");
        if (type_ == "xla" || type_ == "tpu") {
            refuse_platform(keys_, key, "has no TPUs", "use MULTI_GPU, DEEPSPEED or FSDP");
        } else if (type_ == "tp" || type_ == "model_parallel") {
            refuse_platform(keys_, key, "has no tensor parallelism",
                            "use FSDP or DEEPSPEED with stage 3, which splits parameters too");
        } else if (is_deepspeed) {
            keys_.acts(key, "ZeroStage<N>", "by deepspeed_config");
        } else if (is_fsdp) {
            keys_.mapped(key, "ZeroStage<N>", "by fsdp_config");
        } else if (is_megatron) {
            keys_.mapped(key, "ZeroStage<N>", "by megatron_lm_config");
        } else if (keys_.at(key) != nullptr) {
            intent_.composition.stage = 0;
            const bool other_device = type_.starts_with("multi_") && type_ != "multi_gpu" && type_ != "multi_cpu";
            if (other_device)
                keys_.warn_mapped(key, "ZeroStage<0>",
                                  "ranks compute on CPUs or on CUDA's GPUs, as the program says, and not there");
            else
                keys_.acts(key, "ZeroStage<0>", "every rank has all of the state");
        }
        if (is_deepspeed)
            deepspeed();
        else if (!is_open)
            unused("deepspeed_config", "DEEPSPEED");
        if (is_fsdp)
            read_fsdp(keys_, intent_);
        else if (!is_open)
            unused("fsdp_config", "FSDP");
        if (is_megatron)
            read_megatron(keys_, intent_);
        else if (!is_open)
            unused("megatron_lm_config", "MEGATRON_LM");
        for (const char* split :
             {"parallelism_config.parallelism_config_tp_size", "parallelism_config.parallelism_config_cp_size",
              "parallelism_config.parallelism_config_sp_size", "tp_config.tp_size"})
            refuse_split(keys_, split);
    }
    /// A block of another distributed_type: Accelerate passes over it silently.
    void unused(const std::string& block, const std::string& wanted) {
        const Node* const node = keys_.at(block);
        if (node == nullptr || node->members().empty()) return;
        keys_.warn_none(block, "of distributed_type " + wanted + ", and this is " + (type_.empty() ? "none" : type_),
                        "write distributed_type: " + wanted + " (--use_" + lower(wanted) + "), or remove it");
        keys_.none_within(block, "of distributed_type " + wanted);
    }

    // ---- DeepSpeed ---------------------------------------------------------------------------------------------

    /// Reads the file that is named; its composition, or none.
    Composition deepspeed_file() {
        const std::string key = "deepspeed_config.deepspeed_config_file";
        const std::string name = keys_.text(key);
        if (name.empty() || name == "none" || keys_.text("distributed_type") != "deepspeed") return {};
        file_ = name;
        std::filesystem::path path = name;
        std::error_code error;
        if (!std::filesystem::is_regular_file(path, error) && path.is_relative()) path = context_.folder / path;
        if (!std::filesystem::is_regular_file(path, error)) {
            intent_.missing_files.push_back(name);
            if (context_.wants_all_files)
                keys_.refuse(key, Errc::bad_reference, "names a file that is not there",
                             "give its path from here, or from this file");
            else
                keys_.warn_none(key, "the file is not there, and what it says is not known",
                                "give its path from here, or from this file");
            return {};
        }
        keys_.acts(key, "all that the file says");
        try {
            DeepSpeedContext ranks;
            if (const auto given = keys_.whole("num_processes"); given && *given > 0) ranks.ranks = *given;
            intent_ = overlay(intent_, load_deepspeed(path, keys_.findings(), ranks));
        } catch (const Error& problem) {
            keys_.refuse(key, problem.code(), "names a file that cannot be read: " + problem.problem(), problem.fix());
        }
        return intent_.composition;
    }

    void deepspeed() {
        const std::string block = "deepspeed_config.";
        for (const auto& [key, member] : {std::pair{"deepspeed_hostfile", &LaunchIntent::hostfile},
                                          std::pair{"deepspeed_inclusion_filter", &LaunchIntent::include},
                                          std::pair{"deepspeed_exclusion_filter", &LaunchIntent::exclude}})
            if (const std::string text = keys_.text(block + key); !text.empty() && text != "none")
                intent_.launch.*member = text;
        if (!file_.empty()) return beside_a_file();
        if (keys_.is_auto(block + "zero_stage")) return;
        const int stage = static_cast<int>(keys_.whole(block + "zero_stage").value_or(2));
        intent_.composition.stage = stage;
        keys_.acts(block + "zero_stage", "ZeroStage<" + std::to_string(stage) + ">");
        offload("offload_optimizer", intent_.composition.state, stage, 1,
                "stage 0 has all of the state on every rank, and nothing is offloaded");
        offload("offload_param", intent_.composition.parameters, stage, 3,
                "parameters are whole on every rank below stage 3, and none are offloaded; DeepSpeed ignores it too");
        if (stage < 3)
            for (const char* key : {"zero3_init_flag", "zero3_save_16bit_model"})
                if (keys_.is_on(block + key))
                    keys_.none(block + key, "of stage 3, and this is stage " + std::to_string(stage));
    }
    void offload(const std::string& what, std::optional<KeptOn>& kept, int stage, int least,
                 const std::string& too_low) {
        const std::string device = "deepspeed_config." + what + "_device";
        const std::string path = "deepspeed_config." + what + "_nvme_path";
        const std::string name = keys_.text(device);
        const std::string folder = keys_.text(path);
        const std::string what_tag = what == "offload_param" ? ", Parameters>" : ">";
        if (keys_.at(device) == nullptr) return keys_.none(path, "nothing of it is kept on a disk");
        if (name != "none" && stage < least) {
            keys_.warn_none(device, too_low,
                            "use stage " + std::to_string(least) + (least < 3 ? " or higher" : "") + ", or write none");
            return keys_.none(path, too_low);
        }
        const TierName tier = name == "cpu" ? TierName::cpu : name == "nvme" ? TierName::nvme : TierName::device;
        kept = KeptOn::all_on(tier);
        keys_.acts(device, "OffloadTarget<" + type_name(tier) + what_tag);
        if (tier != TierName::nvme) return keys_.none(path, "nothing of it is kept on a disk");
        const OptionValue* const before = intent_.find("engine.tiers.nvme_path");
        if (folder.empty() || folder == "none") {
            keys_.findings().refuse(*keys_.at(device), Errc::bad_value,
                                    "is nvme, and no " + what + "_nvme_path says where",
                                    "add " + what + "_nvme_path: /a/folder/on/a/local/disk to deepspeed_config");
        } else if (before != nullptr && std::get<std::string>(before->value) != folder) {
            keys_.warn_mapped(path, "engine.tiers.nvme_path",
                              "state and parameters are in one folder, that of offload_optimizer",
                              "give both the same path");
        } else {
            intent_.set("engine.tiers.nvme_path", folder, keys_.at(path)->place());
            keys_.acts(path, "engine.tiers.nvme_path");
        }
    }
    /// With a file Accelerate refuses keys that the file has as well; here only one that says something else is refused.
    void beside_a_file() {
        const bool is_missing = !intent_.missing_files.empty();
        const Composition& composition = intent_.composition;
        const auto tier_in_file = [](const std::optional<KeptOn>& kept) {
            const TierName tier = kept ? (kept->percent == 100 ? kept->first : kept->second) : TierName::device;
            return std::string{tier == TierName::cpu ? "cpu" : tier == TierName::nvme ? "nvme" : "none"};
        };
        const auto against = [&](const std::string& name, const std::string& in_file) {
            const std::string key = "deepspeed_config." + name;
            const Node* const node = keys_.at(key);
            if (node == nullptr) return keys_.none(key, "the DeepSpeed file decides");
            if (is_missing)
                return keys_.warn_none(key, "the DeepSpeed file decides, and Accelerate refuses both",
                                       "remove it here");
            const auto a = node->number(), b = number_of(in_file);
            if ((a && b && *a == *b) || lower(node->scalar()) == in_file)
                return keys_.none(key, "the DeepSpeed file says the same");
            keys_.refuse(key, Errc::bad_value,
                         "is " + node->shown() + ", and deepspeed_config_file " +
                             (in_file.empty() ? "does not say so" : "says " + in_file),
                         "remove it here: the file decides");
        };
        const auto option = [&](std::string_view path) {
            const auto number = intent_.number(path);
            return number ? shown(*number) : std::string{};
        };
        against("zero_stage", std::to_string(composition.stage.value_or(0)));
        against("offload_optimizer_device", tier_in_file(composition.state));
        against("offload_param_device", tier_in_file(composition.parameters));
        const auto accumulation = option("engine.gradient_accumulation_steps");
        const auto clipping = option("engine.max_grad_norm");
        if (accumulation.empty() && !is_missing)
            ;  // the file leaves it open, and this key says it
        else
            against("gradient_accumulation_steps", accumulation);
        if (!clipping.empty() || is_missing) against("gradient_clipping", clipping);
        for (const char* key : {"offload_optimizer_nvme_path", "offload_param_nvme_path"})
            keys_.none(std::string{"deepspeed_config."} + key, "the DeepSpeed file decides");
    }

    // ---- precision and ranks -----------------------------------------------------------------------------------

    void precision(const Composition& from_file) {
        const std::string key = "mixed_precision";
        if (const auto old = keys_.flag("fp16"); old && keys_.at(key) == nullptr) {
            if (*old && !intent_.composition.precision) intent_.composition.precision = FormatName::fp16;
            keys_.warn_mapped("fp16", *old ? "Precision<Fp16>" : "Precision<Fp32>", "the old form of mixed_precision",
                              *old ? "write mixed_precision: fp16" : "write mixed_precision: no");
        } else {
            keys_.warn_none("fp16", "mixed_precision says it", "remove it");
        }
        if (keys_.at(key) == nullptr) return;
        const std::string name = keys_.text(key);
        const FormatName format = name == "fp16"                    ? FormatName::fp16
                                  : name == "bf16" || name == "fp8" ? FormatName::bf16
                                                                    : FormatName::fp32;
        const std::string to = "Precision<" + type_name(format) + ">";
        if (from_file.precision && *from_file.precision != format && format != FormatName::fp32) {
            keys_.refuse(
                key, Errc::bad_value,
                "is " + name + ", and deepspeed_config_file says Precision<" + type_name(*from_file.precision) + ">",
                "let both say the same, or remove it here");
            return;
        }
        if (from_file.precision) return keys_.none(key, "the DeepSpeed file decides");
        intent_.composition.precision = format;
        std::erase_if(intent_.automatic,
                      [&](const Automatic& one) { return one.key == "fp16.enabled" || one.key == "bf16.enabled"; });
        if (name == "fp8")
            keys_.warn_mapped(key, to, "strata does not train in 8 bits, and bf16 is the nearest", "write bf16");
        else
            keys_.acts(key, to);
    }

    Reading& keys_;
    Intent& intent_;
    const AccelerateContext& context_;
    std::string type_;
    std::string file_;
};

}  // namespace detail

STRATA_INLINE const FormatTable& accelerate_table() {
    static const FormatTable table = [] {
        FormatTable all{"Accelerate", "docs/config/accelerate.md"};
        all.no_others();
        detail::add_accelerate_rows(all);
        return all;
    }();
    return table;
}

STRATA_INLINE Intent read_accelerate(const Node& root, Findings& findings, const AccelerateContext& context) {
    Intent intent;
    Reading keys{root, accelerate_table(), findings};
    detail::AccelerateRules{keys, intent, context}.read();
    keys.finish(intent);
    return intent;
}

}  // namespace strata::config
