#pragma once
// strata/config/impl/deepspeed_zero.ipp - what a DeepSpeed file shards, and where it keeps it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <strata/config/impl/reading.ipp>
#include <strata/config/reading.hpp>

namespace strata::config::detail {

/// The blocks zero_optimization and aio. After PrecisionRules, whose bytes an element count.
class ZeroRules {
public:
    ZeroRules(Reading& keys, Intent& intent) : keys_{keys}, intent_{intent} {}

    void read() {
        stage();
        offload();
        stage_three();
        disks();
    }

private:
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
        const Node* const written = keys_.root().at(block + ".stage");
        if (written != nullptr && !written->is(NodeKind::null) && keys_.at(block + ".stage") == nullptr) {
            stage_ = 3;  // "auto", or refused: no tier is passed over for a stage that nobody named
            return;
        }
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
                keys_.refuse(block, Errc::bad_value, "is true, and an object has to say where",
                             "write \"" + block.substr(block.rfind('.') + 1) +
                                 "\": {\"device\": \"cpu\"}, or \"nvme\" with its nvme_path");
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

    Reading& keys_;
    Intent& intent_;
    int stage_ = 0;
};

}  // namespace strata::config::detail
