#pragma once
// strata/weights/load_weights.hpp - load_weights(): a model gets its values from safetensors files, or begins with them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/weights/weight_match.hpp>
#include <strata/weights/weight_names.hpp>
#include <strata/zero/model_outline.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::weights {

/// What load_weights() found.
struct LoadedWeights {
    std::size_t tensors = 0;             ///< parameters and buffers that are the files' now, or will be
    std::vector<std::string> missing{};  ///< names of the model that the files lack, and may lack
};

/// A tensor of a model that is to be loaded.
struct LoadTarget {
    std::vector<std::string> names;          ///< all that it is registered under
    at::Tensor tensor;                       ///< the model's own
    std::shared_ptr<zero::UnitLink> link{};  ///< of the unit that it is a parameter of, if it is
};

/// Throws bad_parameter for a tensor whose values are with an engine of ZeroStage<3>: nothing can be written into it.
void check_has_memory(const LoadTarget& target);

/// Names, types and shapes of these tensors. Throws bad_parameter for a type that files do not have.
[[nodiscard]] std::vector<WantedWeight> wanted_of(const std::vector<LoadTarget>& targets);

/// Loads into these tensors; load_weights() for what is no module. Errors are load_weights()'s.
LoadedWeights load_into(const std::vector<LoadTarget>& targets, const WeightFiles& files,
                        const LoadOptions& options = {});

/// Parameters and buffers of a module, each tensor once. Local.
template <class Module>
[[nodiscard]] std::vector<LoadTarget> load_targets_of(Module& module) {
    std::unordered_map<const void*, std::size_t> places;
    std::vector<LoadTarget> targets;
    const auto add = [&](const auto& items) {
        for (const auto& item : items) {
            if (!item.value().defined()) continue;
            const auto [place, is_new] = places.emplace(item.value().unsafeGetTensorImpl(), targets.size());
            if (is_new) targets.push_back({{}, item.value()});
            targets[place->second].names.push_back(item.key());
        }
    };
    add(module.named_parameters());
    add(module.named_buffers());
    for (const zero::Parameter& parameter : zero::parameters_of(module))
        targets[places.at(parameter.tensor.unsafeGetTensorImpl())].link = parameter.link;
    return targets;
}

/// What a model wants of files, without the model: `make` runs as zero::outline_of() runs it, so that match_weights() can tell all that does not
/// fit before anything is loaded.
template <class Make>
[[nodiscard]] std::vector<WantedWeight> wanted_weights(const Make& make) {
    std::vector<WantedWeight> wanted;
    static_cast<void>(zero::outline_of([&] {
        auto model = make();
        if constexpr (requires { *model; })
            wanted = wanted_of(load_targets_of(*model));
        else
            wanted = wanted_of(load_targets_of(model));
        return model;
    }));
    return wanted;
}

/// Gives all parameters and buffers of a model the values that files have under their names, converted to the model's types:
///
///   auto model = strata::in_units([&] { return std::make_shared<Flux>(options); });
///   weights::load_weights(*model, weights::WeightFiles{"flux/transformer"});
///   Trainer<Flux, ZeroStage<3>> trainer{session, model, train_options};
///
/// Names, shapes and types are compared before anything is written. One tensor is read at a time, straight into its place; conversions go
/// by pieces of 1 MiB. Units that in_units() made stay without memory: their parameters are read when an engine takes them over, by each rank
/// as far as it keeps them. Local: each rank that makes the model calls it, with the same files. Before an engine has the model.
///
/// Throws weights_do_not_fit naming all that is missing, unexpected, or of another shape or type, after which the model is as it was; io_failed.
template <class Module>
LoadedWeights load_weights(Module& module, const WeightFiles& files, const LoadOptions& options = {}) {
    return load_into(load_targets_of(module), files, options);
}

}  // namespace strata::weights

#ifndef STRATA_COMPILED
#include <strata/weights/impl/load_weights.ipp>
#endif
