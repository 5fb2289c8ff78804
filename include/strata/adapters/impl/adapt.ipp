#pragma once
// strata/adapters/impl/adapt.ipp - a walk over a model's layers.

#include <algorithm>
#include <cstddef>

#include <strata/adapters/adapt.hpp>
#include <strata/core/error.hpp>

namespace strata::adapters {

STRATA_INLINE std::vector<NamedAdaptable> adaptable_layers(torch::nn::Module& model) {
    std::vector<NamedAdaptable> found;
    for (const auto& item : model.named_modules("", /*include_self=*/false)) {
        if (auto* const layer = dynamic_cast<models::AdaptableLayer*>(item.value().get()))
            found.push_back({item.key(), layer});
    }
    return found;
}

STRATA_INLINE std::int64_t Adapted::numel() const {
    std::int64_t sum = 0;
    for (const NamedAdaptable& layer : layers_) {
        for (const at::Tensor& parameter : layer.layer->adapter()->parameters()) sum += parameter.numel();
    }
    return sum;
}

STRATA_INLINE bool Adapted::base_is_frozen(const torch::nn::Module& model) const {
    const auto trained = [](const torch::nn::Module& of) {
        const std::vector<at::Tensor> parameters = of.parameters();
        return std::count_if(parameters.begin(), parameters.end(),
                             [](const at::Tensor& parameter) { return parameter.requires_grad(); });
    };
    std::ptrdiff_t of_adapters = 0;
    for (const NamedAdaptable& layer : layers_) of_adapters += trained(*layer.layer->adapter());
    return trained(model) == of_adapters;
}

STRATA_INLINE void Adapted::merge() {
    const at::NoGradGuard no_grad;
    for (const NamedAdaptable& layer : layers_) {
        const at::Tensor& weight = layer.layer->base_weight();
        if (weight.numel() > 0 && weight.storage().nbytes() == 0)
            throw Error{Errc::wrong_call_order,
                        "merge() was called while the weights of " + layer.path +
                            " have no memory: their unit is sharded, and no rank has it whole",
                        "call it inside of Trainer::with_whole_model(), or an engine's"};
    }
    for (const NamedAdaptable& layer : layers_) {
        const at::Tensor weight = layer.layer->base_weight();
        weight.copy_(layer.layer->adapter()->merged(weight));
    }
    acts_->on = false;
}

namespace detail {

STRATA_INLINE Adapted adapt(torch::nn::Module& model, const std::vector<std::string>& targets,
                            const std::vector<std::string>& excluded, const std::vector<std::string>& lists,
                            const std::string& name, const MakeAdapter& make) {
    const std::vector<NamedAdaptable> all = adaptable_layers(model);
    std::vector<std::string> paths;
    for (const NamedAdaptable& layer : all) paths.push_back(layer.path);
    std::vector<NamedAdaptable> layers;
    std::vector<std::string> adapted;
    for (const std::size_t i : targeted(paths, targets, excluded)) {
        layers.push_back(all[i]);
        adapted.push_back(all[i].path);
    }
    check_own_options(lists, paths, adapted);

    auto* const own = dynamic_cast<models::AdaptableModel*>(&model);
    const auto acts = own != nullptr ? own->adapter_switch() : std::make_shared<models::AdapterSwitch>();
    for (at::Tensor& parameter : model.parameters()) parameter.requires_grad_(false);
    for (const NamedAdaptable& layer : layers) {
        const std::shared_ptr<models::LayerAdapter> adapter = make(layer.layer->shape(), layer.path);
        adapter->train(layer.layer->module().is_training());
        layer.layer->attach(name, adapter, acts);
    }
    acts->there = acts->on = true;
    return {std::move(layers), acts};
}

}  // namespace detail
}  // namespace strata::adapters
