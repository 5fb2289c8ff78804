#pragma once
// strata/adapters/impl/load_adapter_file.ipp - matrices of a file become parameters of adapters.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <strata/adapters/impl/adapter_file.ipp>
#include <strata/adapters/impl/adapter_match.ipp>
#include <strata/adapters/impl/magnitudes.ipp>
#include <strata/adapters/impl/merge_adapter_file.ipp>
#include <strata/adapters/impl/saved_adapter.ipp>
#include <strata/adapters/load_adapter_file.hpp>
#include <strata/core/error.hpp>

namespace strata::adapters {

namespace detail {

/// A part of an adapter in a file, and in a model.
struct PartPair {
    AdapterTensors::Tensor AdapterTensors::*of_file;
    std::string_view ending;
};
inline constexpr std::array<PartPair, 11> part_pairs{{{&AdapterTensors::down, ".lora.down"},
                                                      {&AdapterTensors::up, ".lora.up"},
                                                      {&AdapterTensors::middle, ".lora.middle"},
                                                      {&AdapterTensors::magnitude, ".lora.magnitude"},
                                                      {&AdapterTensors::w1, ".lokr.w1"},
                                                      {&AdapterTensors::w1_a, ".lokr.w1_a"},
                                                      {&AdapterTensors::w1_b, ".lokr.w1_b"},
                                                      {&AdapterTensors::w2, ".lokr.w2"},
                                                      {&AdapterTensors::w2_a, ".lokr.w2_a"},
                                                      {&AdapterTensors::w2_b, ".lokr.w2_b"},
                                                      {&AdapterTensors::t2, ".lokr.t2"}}};

/// The parameters of one layer's adapter and its weight.
struct AdaptedLayer {
    std::map<std::string_view, const weights::LoadTarget*> parts{};  // by ending
    const weights::LoadTarget* weight = nullptr;
};

/// Rows of a tensor of the file that are the layer's; all of it, for what every layer of a fused one shares.
inline bool is_by_rows(std::string_view ending) { return ending == ".lora.up" || ending == ".lora.magnitude"; }

/// Empty: the file's adapter can be the model's.
inline std::string part_problem(const MatchedAdapter& adapter, const AdaptedLayer& layer, const NamedLayer& named) {
    const AdapterTensors& tensors = *adapter.tensors;
    if (layer.parts.empty()) return "is for the layer " + named.path + ", which has no adapter here";
    if (adapter.place.rows != named.rows() && (tensors.is_lokr() || tensors.middle))
        return "is one product for several layers, of which " + named.path + " is one: it can only be merged";
    if (tensors.magnitude && is_of_columns(tensors, adapter.place.rows))
        return "has norms of columns, and a magnitude is one of rows: it can only be merged";
    for (const PartPair& part : part_pairs) {
        const AdapterTensors::Tensor& of_file = tensors.*(part.of_file);
        const auto own = layer.parts.find(part.ending);
        const bool has_own = own != layer.parts.end();
        const std::string name{part.ending.substr(1)};
        if (of_file.has_value() != has_own)
            return (of_file ? "has a " : "has no ") + name + ", and the model's layer " + named.path +
                   (has_own ? " has one" : " has none");
        if (!of_file) continue;
        std::int64_t wanted = numel_of(*of_file);
        if (is_by_rows(part.ending)) wanted = wanted / adapter.place.rows * named.rows();
        const at::Tensor& parameter = own->second->tensor;
        const bool same_rank =
            part.ending == ".lora.magnitude" || parameter.size(0) == shape_of(of_file)[0] || is_by_rows(part.ending);
        if (wanted != parameter.numel() || !same_rank)
            return "has a " + name + ' ' + text_of(shape_of(of_file)) + ", and the model's layer " + named.path +
                   " one " + text_of(parameter.sizes().vec());
    }
    return {};
}

/// The values of a weight that may be in a unit without memory.
inline at::Tensor values_of(const weights::LoadTarget& target) {
    if (!target.link || !target.link->deferred) return target.tensor;
    const auto place = target.link->deferred->find(target.tensor);
    if (!place) return target.tensor;  // it came after the unit was made
    const at::Tensor values = at::empty(target.tensor.sizes(), at::TensorOptions{}.dtype(at::kFloat));
    target.link->deferred->values->read(*place, 0, values.view(-1));
    return values;
}

inline void load_layer(const MatchedAdapter& adapter, const AdaptedLayer& layer, const NamedLayer& named,
                       double own_scale) {
    const AdapterTensors& tensors = *adapter.tensors;
    const std::string_view scaled = tensors.is_lokr() ? (tensors.w1 ? ".lokr.w1" : ".lokr.w1_a") : ".lora.up";
    for (const PartPair& part : part_pairs) {
        const AdapterTensors::Tensor& of_file = tensors.*(part.of_file);
        if (!of_file) continue;
        const at::Tensor own = layer.parts.at(part.ending)->tensor.detach();
        at::Tensor values = at::empty(shape_of(of_file), at::TensorOptions{}.dtype(at::kFloat));
        weights::read_values(*of_file, 0, values.view(-1));
        if (is_by_rows(part.ending)) {
            values = values.view({adapter.place.rows, -1});
            const std::int64_t half = adapter.place.rows / 2;
            values = adapter.place.halves_swapped
                         ? at::cat({values.narrow(0, half, adapter.place.rows - half), values.narrow(0, 0, half)})
                         : values.narrow(0, adapter.place.first_row, named.rows());
        }
        if (part.ending == ".lora.magnitude") values = values.view(-1).div(row_norms(values_of(*layer.weight)));
        if (part.ending == scaled && adapter.scale != own_scale) values = values.mul(adapter.scale / own_scale);
        own.copy_(values.reshape(own.sizes()));
    }
}

/// Of a kind that names say nothing of: parameters have their own names in files, as saved_adapter() writes them.
inline LoadedAdapterFile load_own_kind(const std::vector<weights::LoadTarget>& targets,
                                       const std::filesystem::path& file, const std::string& kind,
                                       const AdapterFileOptions& options) {
    std::vector<weights::LoadTarget> of_kind;
    for (const weights::LoadTarget& target : targets) {
        if (target.names.front().find("." + kind + ".") != std::string::npos) of_kind.push_back(target);
    }
    const ModelPart part = options.part.value_or(part_of(named_layers(targets)));
    const auto loaded = weights::load_into(of_kind, weights::WeightFiles{file}, {.prefix = peft_name("", part)});
    return {.naming = FileNaming::peft, .layers = loaded.tensors, .of_other_parts = 0, .missing = {}};
}

}  // namespace detail

STRATA_INLINE std::string words_of(const LoadedAdapterFile& loaded, const std::filesystem::path& file) {
    const auto layers = [](std::size_t count) { return std::to_string(count) + (count == 1 ? " layer" : " layers"); };
    std::string words = layers(loaded.layers) + " of " + file.string();
    if (!loaded.missing.empty()) {
        words += ", and anew " + layers(loaded.missing.size()) + " that it has nothing for: ";
        constexpr std::size_t most = 3;
        for (std::size_t i = 0; i < loaded.missing.size() && i < most; ++i)
            words += (i == 0 ? "" : ", ") + loaded.missing[i];
        if (loaded.missing.size() > most) words += ", ...";
    }
    if (loaded.of_other_parts > 0)
        words += "; it has " + layers(loaded.of_other_parts) + " of other models besides, which are left";
    return words;
}

STRATA_INLINE LoadedAdapterFile load_adapter_into(const std::vector<weights::LoadTarget>& targets,
                                                  const std::filesystem::path& file, const AdapterFacts& facts,
                                                  const AdapterFileOptions& options) {
    const at::NoGradGuard no_grad;
    if (!facts.kind.empty()) return detail::load_own_kind(targets, file, facts.kind, options);
    std::map<std::string, detail::AdaptedLayer> adapted;  // by path
    std::vector<const weights::LoadTarget*> weights_of_layers;
    for (const weights::LoadTarget& target : targets) {
        if (detail::layer_of(target)) weights_of_layers.push_back(&target);
        const std::string& name = target.names.front();
        for (const detail::PartPair& part : detail::part_pairs) {
            if (!name.ends_with(part.ending)) continue;
            weights::check_has_memory(target);
            adapted[name.substr(0, name.size() - part.ending.size())].parts.emplace(part.ending, &target);
        }
    }
    const AdapterMatch match = match_adapter(std::make_shared<const AdapterFile>(file), named_layers(targets), options);
    detail::AdapterMisfits misfits;
    LoadedAdapterFile loaded{.naming = match.file->naming(),
                             .layers = match.adapters.size(),
                             .of_other_parts = match.of_other_parts,
                             .missing = {}};
    std::map<std::string, bool> is_in_file;
    for (const MatchedAdapter& adapter : match.adapters) {
        const NamedLayer& named = match.layers[adapter.place.layer];
        const auto layer = adapted.find(named.path);
        const std::string problem =
            detail::part_problem(adapter, layer == adapted.end() ? detail::AdaptedLayer{} : layer->second, named);
        if (!problem.empty()) misfits.others.push_back("'" + adapter.tensors->module + "' " + problem);
        is_in_file[named.path] = true;
    }
    if (misfits.any()) {
        misfits.nearest = "adapt the model with the kind, rank and targets of the file, or merge the file into it";
        detail::refuse(*match.file, misfits);
    }
    for (const MatchedAdapter& adapter : match.adapters) {
        const NamedLayer& named = match.layers[adapter.place.layer];
        detail::AdaptedLayer& layer = adapted.at(named.path);
        layer.weight = weights_of_layers[adapter.place.layer];
        const std::int64_t rank = detail::rank_of(*adapter.tensors);
        const double alpha = alpha_of(facts, named.path);
        detail::load_layer(adapter, layer, named, alpha != 0 && rank != 0 ? alpha / static_cast<double>(rank) : 1);
    }
    for (const auto& [path, layer] : adapted) {
        if (!is_in_file.contains(path)) loaded.missing.push_back(path);
    }
    return loaded;
}

}  // namespace strata::adapters
