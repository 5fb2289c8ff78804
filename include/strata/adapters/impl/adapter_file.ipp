#pragma once
// strata/adapters/impl/adapter_file.ipp - which part of which layer a tensor is, by its name.

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <system_error>
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
    std::size_t kept = 0;  // letters of it that belong to the module
};

/// No name ends as two of them.
inline constexpr std::array<Ending, 31> endings{{
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
    {"_lora1.down.weight", &AdapterTensors::down, FileNaming::peft, 6},
    {"_lora1.up.weight", &AdapterTensors::up, FileNaming::peft, 6},
    {"_lora2.down.weight", &AdapterTensors::down, FileNaming::peft, 6},
    {"_lora2.up.weight", &AdapterTensors::up, FileNaming::peft, 6},
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
/// Of an alpha, which programs write as the number that they were given.
inline bool is_number(storage::Dtype dtype) noexcept {
    using enum storage::Dtype;
    return is_floating(dtype) || dtype == i64 || dtype == i32;
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

/// What a tensor that is not read belongs to, by its name: "LoHa". Empty: nothing that is known.
inline std::string_view kind_of_unread(std::string_view name) noexcept {
    using Kind = std::pair<std::string_view, std::string_view>;
    static constexpr std::array<Kind, 12> kinds{{{".hada_", "LoHa"},
                                                 {".oft_", "OFT"},
                                                 {".boft_", "BOFT"},
                                                 {".a1.weight", "GLoRA"},
                                                 {".a2.weight", "GLoRA"},
                                                 {".b1.weight", "GLoRA"},
                                                 {".b2.weight", "GLoRA"},
                                                 {".lora_B.bias", "LoRA with a bias"},
                                                 {".diff_b", "whole difference"},
                                                 {".diff", "whole difference"},
                                                 {".ia3_", "IA3"},
                                                 {".on_input", "IA3"}}};
    for (const auto& [part, kind] : kinds) {
        if (name.find(part) != std::string_view::npos) return kind;
    }
    return {};
}
/// "LoHa, OFT": the kinds of several, each once.
inline std::string kinds_of_unread(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) {
        const std::string kind{kind_of_unread(name)};
        if (!kind.empty() && all.find(kind) == std::string::npos) all += (all.empty() ? "" : ", ") + kind;
    }
    return all;
}
/// The file that is meant by a folder of one adapter.
inline std::filesystem::path adapter_in(const std::filesystem::path& path) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(path, unknown)) return path;
    for (const char* const name : {"pytorch_lora_weights.safetensors", "adapter_model.safetensors"})
        if (std::filesystem::is_regular_file(path / name, unknown)) return path / name;
    return path;  // whatever the only file in it is called
}

}  // namespace detail

STRATA_INLINE std::string_view name_of(FileNaming naming) noexcept {
    constexpr std::array<std::string_view, 4> names{"peft", "kohya", "cloneofsimo", "comfyui"};
    return names[static_cast<std::size_t>(naming)];
}

STRATA_INLINE AdapterFile::AdapterFile(const std::filesystem::path& path) : files_{detail::adapter_in(path)} {
    std::map<std::string, AdapterTensors> modules;
    std::array<std::size_t, 4> counts{};
    for (const auto& item : files_.tensors()) {
        const auto& name = item.first;
        const auto& tensor = item.second;
        const auto ending = std::find_if(detail::endings.begin(), detail::endings.end(),
                                         [&](const detail::Ending& known) { return name.ends_with(known.text); });
        const bool is_alpha = ending != detail::endings.end() && ending->tensor == nullptr;
        const bool is_read = ending != detail::endings.end() &&
                             (is_alpha ? detail::is_number(tensor.entry->dtype) && detail::numel_of(tensor) == 1
                                       : detail::is_floating(tensor.entry->dtype));
        if (!is_read) {
            const auto said = files_.metadata().find(name);
            if (said == files_.metadata().end() || said->second != "<embed>") unread_.push_back(name);
            continue;
        }
        const std::string module = name.substr(0, name.size() - ending->text.size() + ending->kept);
        AdapterTensors& tensors = modules[module];
        tensors.module = module;
        if (is_alpha) {
            const at::Tensor value = at::empty({1}, at::TensorOptions{}.dtype(at::kDouble));
            weights::read_values(tensor, 0, value);
            tensors.alpha = value.item().toDouble();
            continue;
        }
        if (tensors.*(ending->tensor)) {
            repeated_.push_back(name);
            continue;
        }
        tensors.*(ending->tensor) = tensor;
        if (ending->text.starts_with(".lora_magnitude_vector")) tensors.magnitude_is_of_rows = true;
        ++counts[static_cast<std::size_t>(ending->naming)];
    }
    const auto most = std::max_element(counts.begin(), counts.end());
    const std::string kinds = detail::kinds_of_unread(unread_);
    if (*most == 0)
        throw Error{Errc::bad_adapter_file,
                    "the file '" + path.string() + "' has " + std::to_string(files_.tensors().size()) +
                        " tensors, and none of them is a LoRA's or a LoKr's" +
                        (kinds.empty() ? "" : ": they are of another kind, " + kinds),
                    "give a file of adapters; weights of a whole model are loaded with load_weights()"};
    naming_ = static_cast<FileNaming>(most - counts.begin());
    for (auto& [module, tensors] : modules) modules_.push_back(std::move(tensors));
    read_metadata();
    if (configs_.empty()) read_config_beside();
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
        configs_[key.substr(0, dot)].take(key.substr(dot + 1), value);
    }
}

template <class Json>
void AdapterFile::PeftConfig::take(std::string_view key, const Json& value) {
    if (key == "lora_alpha" && value.is_number()) alpha = value.template get<double>();
    if (key == "use_rslora" && value.is_boolean()) is_rank_stabilised = value.template get<bool>();
    if (key != "alpha_pattern" || !value.is_object()) return;
    for (const auto& [pattern, own] : value.items()) {
        if (own.is_number()) alphas.emplace_back(pattern, own.template get<double>());
    }
}

/// PEFT by itself writes adapter_model.safetensors, without metadata, and what it would say there into adapter_config.json.
STRATA_INLINE void AdapterFile::read_config_beside() {
    const std::filesystem::path file = files_.files().front();
    std::ifstream text{file.parent_path() / "adapter_config.json"};
    if (file.filename() != "adapter_model.safetensors" || !text) return;
    const nlohmann::ordered_json json = detail::object_of({std::istreambuf_iterator<char>{text}, {}});
    const auto refuse = [&](const std::string& what) {
        throw Error{
            Errc::bad_adapter_file, "'" + (file.parent_path() / "adapter_config.json").string() + "' " + what,
            "give the folder of a LoRA as PEFT writes it, or the file under another name, so that its rank is its alpha"};
    };
    if (!json.is_object()) refuse("is no JSON object");
    if (const std::string kind = json.value("peft_type", nlohmann::ordered_json("LORA")).dump(); kind != "\"LORA\"")
        refuse("is of the kind " + kind + ", and a LORA's is read");
    for (const auto& [key, value] : json.items()) configs_[""].take(key, value);
}

STRATA_INLINE double AdapterFile::scale_of(const AdapterTensors& tensors, std::string_view part, std::string_view path,
                                           std::int64_t rank, std::optional<double> alpha) const {
    const auto own = static_cast<double>(rank);
    if (tensors.alpha) return *tensors.alpha / own;
    auto config = configs_.find(part);
    if (config == configs_.end()) config = configs_.find("");
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
