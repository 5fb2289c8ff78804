#pragma once
// strata/families/impl/any_model.ipp - an inner model's parts registered as one's own, and its losses.

#include <strata/core/error.hpp>
#include <strata/families/any_model.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/small_flux.hpp>

namespace strata::families {

namespace detail {

template <class Model>
const typename Model::Batch& batch_for(const Model&, const AnyBatch& batch) {
    if (const auto* const found = std::get_if<typename Model::Batch>(&batch.of)) return *found;
    throw Error{Errc::bad_value,
                std::is_same_v<typename Model::Batch, models::UnetBatch>
                    ? "a U-Net got a batch that was made for a model of Flux's shape"
                    : "a model of Flux's shape got a batch that was made for a U-Net",
                "make batches by the recipe of the family that made the model"};
}

}  // namespace detail

STRATA_INLINE AnyModel::AnyModel(Inner inner) : inner_{std::move(inner)} {
    std::visit(
        [&](const auto& model) {
            if (!model)
                throw Error{Errc::bad_value, "an AnyModel was made of no model", "give it a std::shared_ptr to one"};
            for (const auto& item : model->named_parameters(false))
                register_parameter(item.key(), item.value(), item.value().requires_grad());
            for (const auto& item : model->named_buffers(false)) register_buffer(item.key(), item.value());
            for (const auto& item : model->named_children()) register_module(item.key(), item.value());
        },
        inner_);
}

STRATA_INLINE at::Tensor AnyModel::loss(const AnyBatch& batch) {
    return std::visit([&](const auto& model) { return model->loss(detail::batch_for(*model, batch)); }, inner_);
}

STRATA_INLINE at::Tensor AnyModel::evaluation_loss(const AnyBatch& batch) {
    return std::visit([&](const auto& model) { return model->evaluation_loss(detail::batch_for(*model, batch)); },
                      inner_);
}

STRATA_INLINE std::shared_ptr<models::AdapterSwitch> AnyModel::adapter_switch() const {
    return std::visit([](const auto& model) { return model->adapter_switch(); }, inner_);
}

STRATA_INLINE void AnyModel::train(bool on) {
    torch::nn::Module::train(on);
    std::visit([&](const auto& model) { model->train(on); }, inner_);
}

}  // namespace strata::families
