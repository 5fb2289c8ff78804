#pragma once
// strata/adapters/impl/adapter_file.ipp - which part of which layer a tensor is, by its name.

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <strata/adapters/adapter_file.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/file_values.hpp>

namespace strata::adapters {

namespace detail {

inline constexpr const char* peft_metadata_key = "lora_adapter_metadata";

struct Ending {
    std::string_view text;
    AdapterTensors::Tensor AdapterTensors::*tensor;  // nullptr: alpha
    FileNaming naming = FileNaming::peft;
};

/// No name ends as two of them.
inline constexpr std::array<Ending, 27> endings{{
    {".lora_A.weight", &AdapterTensors::down},
    {".lora_B.weight", &AdapterTensors::up},
    {".lora_A.default.weight", &AdapterTensors::down},
    {".lora_B.default.weight", &AdapterTensors::up},
    {".lora_linear_layer.down.weight", &AdapterTensors::down},
    {".lora_linear_layer.up.weight", &AdapterTensors::up},
    {".lora.down.weight", &AdapterTensors::down},
    {".lora.up.weight", &AdapterTensors::up},
    {"_lora.down.weight", &AdapterTensors::down},
    {"_lora.up.weight", &AdapterTensors::up},
    {".lora_magnitude_vector", &AdapterTensors::magnitude},
    {".lora_magnitude_vector.weight", &AdapterTensors::magnitude},
    {".lora_magnitude_vector.default.weight", &AdapterTensors::magnitude},
    {".lora_down.weight", &AdapterTensors::down, FileNaming::kohya},
    {".lora_up.weight", &AdapterTensors::up, FileNaming::kohya},
    {".lora_mid.weight", &AdapterTensors::middle, FileNaming::kohya},
    {".dora_scale", &AdapterTensors::magnitude, FileNaming::kohya},
    {".lokr_w1", &AdapterTensors::w1, FileNaming::kohya},
    {".lokr_w1_a", &AdapterTensors::w1_a, FileNaming::kohya},
    {".lokr_w1_b", &AdapterTensors::w1_b, FileNaming::kohya},
    {".lokr_w2", &AdapterTensors::w2, FileNaming::kohya},
    {".lokr_w2_a", &AdapterTensors::w2_a, FileNaming::kohya},
    {".lokr_w2_b", &AdapterTensors::w2_b, FileNaming::kohya},
    {".lokr_t2", &AdapterTensors::t2, FileNaming::kohya},
    {":down", &AdapterTensors::down, FileNaming::cloneofsimo},
    {":up", &AdapterTensors::up, FileNaming::cloneofsimo},
    {".alpha", nullptr},
}};

inline bool is_floating(storage::Dtype dtype) noexcept {
    using enum storage::Dtype;
    return dtype == f32 || dtype == f16 || dtype == bf16 || dtype == f64;
}
inline std::int64_t numel_of(const weights::WeightFiles::Tensor& tensor) noexcept {
    std::int64_t product = 1;
    for (const std::int64_t size : tensor.entry->shape) product *= size;
    return product;
}

/// Null where it is no JSON object. Patterns keep their order, which decides between them.
inline nlohmann::ordered_json object_of(const std::string& text) {
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(text, nullptr, false);
    return json.is_object() ? json : nlohmann::ordered_json{};
}

/// PEFT's rule for a layer's own alpha: its name is the pattern, or ends with a dot and it.
inline bool is_meant(const std::string& pattern, std::string_view path) {
    if (path == pattern || path.ends_with("." + pattern)) return true;
    try {
        const std::regex expression{"(.*\\.)?(" + pattern + ")"};
        return std::regex_match(path.begin(), path.end(), expression);
    } catch (const std::regex_error&) {
        return false;
    }
}

}  // namespace detail

STRATA_INLINE std::string_view name_of(FileNaming naming) noexcept {
    constexpr std::array<std::string_view, 4> names{"peft", "kohya", "cloneofsimo", "comfyui"};
    return names[static_cast<std::size_t>(naming)];
}

STRATA_INLINE AdapterFile::AdapterFile(const std::filesystem::path& path) : files_{path} {
    std::map<std::string, AdapterTensors> modules;
    std::array<std::size_t, 4> counts{};
    for (const auto& item : files_.tensors()) {
        const auto& name = item.first;
        const auto& tensor = item.second;
        const auto ending = std::find_if(detail::endings.begin(), detail::endings.end(),
                                         [&](const detail::Ending& known) { return name.ends_with(known.text); });
        const bool is_number = ending != detail::endings.end() && ending->tensor == nullptr;
        if (ending == detail::endings.end() || !detail::is_floating(tensor.entry->dtype) ||
            (is_number && detail::numel_of(tensor) != 1)) {
            const auto said = files_.metadata().find(name);
            if (said == files_.metadata().end() || said->second != "<embed>") unread_.push_back(name);
            continue;
        }
        const std::string module = name.substr(0, name.size() - ending->text.size());
        AdapterTensors& tensors = modules[module];
        tensors.module = module;
        if (is_number) {
            const at::Tensor value = at::empty({1}, at::TensorOptions{}.dtype(at::kDouble));
            weights::read_values(tensor, 0, value);
            tensors.alpha = value.item().toDouble();
            continue;
        }
        tensors.*(ending->tensor) = tensor;
        if (ending->text.starts_with(".lora_magnitude_vector")) tensors.magnitude_is_of_rows = true;
        ++counts[static_cast<std::size_t>(ending->naming)];
    }
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most == 0)
        throw Error{Errc::bad_adapter_file,
                    "the file '" + path.string() + "' has " + std::to_string(files_.tensors().size()) +
                        " tensors, and none of them is a LoRA's or a LoKr's",
                    "give a file of adapters; weights of a whole model are loaded with load_weights()"};
    naming_ = static_cast<FileNaming>(most - counts.begin());
    for (auto& [module, tensors] : modules) modules_.push_back(std::move(tensors));
    read_metadata();
}

STRATA_INLINE void AdapterFile::read_metadata() {
    const auto found = files_.metadata().find(detail::peft_metadata_key);
    if (found == files_.metadata().end()) return;
    const nlohmann::ordered_json json = detail::object_of(found->second);
    if (!json.is_object())
        throw Error{Errc::bad_adapter_file,
                    "the metadata of '" + files_.path().string() + "' has a '" + detail::peft_metadata_key +
                        "' that is no JSON object",
                    "write the file anew with the program that made it"};
    for (const auto& [key, value] : json.items()) {
        const std::size_t dot = key.find('.');
        if (dot == std::string::npos) continue;
        PeftConfig& config = configs_[key.substr(0, dot)];
        const std::string what = key.substr(dot + 1);
        if (what == "lora_alpha" && value.is_number()) config.alpha = value.get<double>();
        if (what == "use_rslora" && value.is_boolean()) config.is_rank_stabilised = value.get<bool>();
        if (what != "alpha_pattern" || !value.is_object()) continue;
        for (const auto& [pattern, alpha] : value.items()) {
            if (alpha.is_number()) config.alphas.emplace_back(pattern, alpha.get<double>());
        }
    }
}

STRATA_INLINE double AdapterFile::scale_of(const AdapterTensors& tensors, std::string_view part, std::string_view path,
                                           std::int64_t rank, std::optional<double> alpha) const {
    const auto own = static_cast<double>(rank);
    if (tensors.alpha) return *tensors.alpha / own;
    const auto config = configs_.find(part);
    if (config == configs_.end() || !config->second.alpha) return alpha.value_or(own) / own;
    double said = *config->second.alpha;
    for (const auto& [pattern, of_pattern] : config->second.alphas) {
        if (!detail::is_meant(pattern, path)) continue;
        said = of_pattern;
        break;
    }
    return said / (config->second.is_rank_stabilised ? std::sqrt(own) : own);
}

STRATA_INLINE std::vector<std::string> AdapterFile::target_classes(std::string_view part) const {
    std::vector<std::string> classes;
    const auto found = files_.metadata().find(std::string{part});
    if (found == files_.metadata().end()) return classes;
    const nlohmann::json json = nlohmann::json::parse(found->second, nullptr, false);
    const bool is_list = json.is_array() && std::all_of(json.begin(), json.end(),
                                                        [](const nlohmann::json& name) { return name.is_string(); });
    if (!is_list)
        throw Error{Errc::bad_adapter_file,
                    "the metadata of '" + files_.path().string() + "' has no list of classes as '" + found->first + "'",
                    "write the file anew with the program that made it"};
    for (const nlohmann::json& name : json) classes.push_back(name.get<std::string>());
    return classes;
}

}  // namespace strata::adapters
