#pragma once
// strata/config/impl/accelerate_sources.ipp - where Accelerate takes its settings from, and an intent as its YAML.

#include <algorithm>
#include <system_error>
#include <utility>

#include <strata/config/accelerate.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/reading.ipp>
#include <strata/config/key.hpp>

namespace strata::config {

STRATA_INLINE std::optional<std::filesystem::path> find_accelerate_config(const Environment& environment) {
    const auto folder_in = [&](const char* name) -> std::optional<std::filesystem::path> {
        const auto value = environment(name);
        return value && !value->empty() ? std::optional<std::filesystem::path>{*value} : std::nullopt;
    };
    std::filesystem::path cache;
    if (const auto hub = folder_in("HF_HOME"))
        cache = *hub;
    else if (const auto general = folder_in("XDG_CACHE_HOME"))
        cache = *general / "huggingface";
    else if (const auto home = folder_in("HOME"))
        cache = *home / ".cache" / "huggingface";
    else
        return std::nullopt;
    if (const std::string text = cache.string(); text.starts_with("~/"))
        if (const auto home = folder_in("HOME")) cache = *home / text.substr(2);
    for (const char* name : {"default_config.yaml", "default_config.json"}) {
        std::error_code error;
        if (std::filesystem::is_regular_file(cache / "accelerate" / name, error)) return cache / "accelerate" / name;
    }
    return std::nullopt;
}

STRATA_INLINE Document accelerate_variables(const Environment& environment) {
    std::vector<GivenValue> values;
    const auto is_on = [&](const char* name) {
        const auto value = environment(name);
        return value && (detail::flag_of(*value).value_or(false) || *value == "1");
    };
    for (const auto& [name, type] :
         {std::pair{"ACCELERATE_USE_DEEPSPEED", "DEEPSPEED"}, std::pair{"ACCELERATE_USE_FSDP", "FSDP"},
          std::pair{"ACCELERATE_USE_MEGATRON_LM", "MEGATRON_LM"}})
        if (is_on(name)) values.push_back({"distributed_type", type, name});
    for (const KeyRow& row : accelerate_table().rows()) {
        if (row.variable.empty()) continue;
        if (const auto value = environment(row.variable); value && !value->empty())
            values.push_back({row.path, *value, row.variable});
    }
    return document_of(values, "environment");
}

STRATA_INLINE AccelerateArguments accelerate_arguments(const std::vector<std::string>& words, Findings& findings) {
    AccelerateArguments all;
    std::vector<GivenValue> values;
    std::vector<std::string_view> names{
        "config_file", "multi_gpu", "use_deepspeed", "use_fsdp",     "use_megatron_lm",  "tpu",
        "module",      "no_python", "quiet",         "max_restarts", "monitor_interval", "tee",
        "role",        "rdzv_conf", "log_dir"};
    const auto name_of_row = [](const KeyRow& row) {
        return row.flag.empty() ? row.name() : std::string_view{row.flag};
    };
    for (const KeyRow& row : accelerate_table().rows())
        if (row.kind != ValueKind::object && row.name() != "*") names.push_back(name_of_row(row));
    std::size_t i = 0;
    for (; i < words.size(); ++i) {
        if (words[i] == "-m" || words[i] == "-q") continue;
        if (!words[i].starts_with("--")) break;  // the program
        const std::size_t equals = words[i].find('=');
        const std::string flag = words[i].substr(0, equals);
        std::string name = flag.substr(2);
        std::replace(name.begin(), name.end(), '-', '_');
        const auto value = [&]() -> std::string {
            if (equals != std::string::npos) return words[i].substr(equals + 1);
            return i + 1 < words.size() ? words[++i] : "";
        };
        const auto selects = [&](const char* type) { values.push_back({"distributed_type", type, flag}); };
        const auto row =
            std::find_if(accelerate_table().rows().begin(), accelerate_table().rows().end(), [&](const KeyRow& one) {
                return one.kind != ValueKind::object && one.name() != "*" && name_of_row(one) == name;
            });
        if (name == "config_file") {
            all.config_file = value();
        } else if (name == "multi_gpu") {
            selects("MULTI_GPU");
        } else if (name == "use_deepspeed") {
            selects("DEEPSPEED");
        } else if (name == "use_fsdp") {
            selects("FSDP");
        } else if (name == "use_megatron_lm") {
            selects("MEGATRON_LM");
        } else if (name == "tpu") {
            selects("XLA");
        } else if (name == "module" || name == "no_python" || name == "quiet") {
            continue;
        } else if (row != accelerate_table().rows().end()) {
            const bool alone = row->kind == ValueKind::flag && equals == std::string::npos &&
                               (i + 1 >= words.size() || !detail::flag_of(words[i + 1]));
            values.push_back({row->path, alone ? "true" : value(), flag});
        } else if (std::find(names.begin(), names.end(), name) != names.end()) {
            (void)value();  // of the launcher underneath
        } else {
            const std::string_view near = nearest_name(name, names);
            Finding finding;
            finding.effect = Effect::refused;
            finding.code = Errc::bad_argument;
            finding.place = flag;
            finding.words = "is no flag of `accelerate launch`";
            finding.fix =
                near.empty() ? "remove it, or put it behind the program's name" : "did you mean --" + std::string{near};
            findings.add(std::move(finding));
        }
    }
    all.taken = i;
    all.document = document_of(values, "command line");
    return all;
}

STRATA_INLINE Intent load_accelerate(const std::vector<std::string>& words, const Environment& environment,
                                     Findings& findings, bool wants_all_files) {
    const AccelerateArguments arguments = accelerate_arguments(words, findings);
    const auto file = arguments.config_file ? arguments.config_file : find_accelerate_config(environment);
    AccelerateContext context{.folder = {}, .wants_all_files = wants_all_files};
    Node root = document_of({}, "nothing").root;
    if (file) {
        const Document document = load_document(*file);
        findings.take(document);
        root = document.root;
        context.folder = file->parent_path();
    }
    root = overlay(overlay(root, accelerate_variables(environment).root), arguments.document.root);
    return read_accelerate(root, findings, context);
}

STRATA_INLINE Intent load_accelerate(const std::filesystem::path& file, Findings& findings, bool wants_all_files) {
    const Document document = load_document(file);
    findings.take(document);
    return read_accelerate(document.root, findings, {.folder = file.parent_path(), .wants_all_files = wants_all_files});
}

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
    yaml.end();
    return write_yaml(yaml.finish().root);
}

}  // namespace strata::config
