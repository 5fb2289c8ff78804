#pragma once
// strata/families/any_model.hpp - AnyModel and AnyBatch: any model of strata's behind one type, so that a program is compiled once for all.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/models/adaptable_model.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/models/unet_batch.hpp>
#include <strata/zero/unit.hpp>

namespace strata::families {

/// A micro-batch of whatever model is trained.
struct AnyBatch {
    using Of = std::variant<models::FluxBatch, models::UnetBatch>;

    AnyBatch() = default;
    AnyBatch(models::FluxBatch batch) : of{std::move(batch)}, samples{std::get<0>(of).samples} {}
    AnyBatch(models::UnetBatch batch) : of{std::move(batch)}, samples{std::get<1>(of).samples} {}

    Of of;
    std::vector<std::string> samples;  ///< B paths of the pictures, for messages about a loss that is not finite
};

/// So that a trainer finds the tensors that belong on its device: zero::for_each_tensor().
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, AnyBatch>
void visit_tensors(Batch& batch, Call&& call) {
    std::visit([&](auto& one) { visit_tensors(one, call); }, batch.of);
}

/// A model that is one of those that strata has, chosen when the program runs. A Trainable whose parameters, buffers and units are the
/// inner model's own, under its names: checkpoints and files of weights are those of the inner model, and losses have its bits.
///
///   auto model = std::make_shared<AnyModel>(strata::in_units([&] { return std::make_shared<models::Flux>(options); }));
///   Trainer<AnyModel, ZeroStage<3>> trainer{session, model, train_options};
///
/// The inner model is shared with who made it. Copies share it too.
class AnyModel : public torch::nn::Module, public models::AdaptableModel {
public:
    using Batch = AnyBatch;
    /// Those of all models: what a composition may ask for is known when it is compiled.
    using Units = UnitList<models::JointBlock, models::SingleBlock, models::ResnetBlock, models::TransformerBlock,
                           models::Downsample, models::Upsample>;
    using Inner = std::variant<std::shared_ptr<models::Flux>, std::shared_ptr<models::SdxlUnet>,
                               std::shared_ptr<models::Sd15Unet>, std::shared_ptr<models::SmallFlux>>;

    /// Made in units or not.
    template <class Model>
    requires std::constructible_from<Inner, std::shared_ptr<Model>>
    explicit AnyModel(std::shared_ptr<Model> model) : AnyModel{Inner{std::move(model)}} {}
    explicit AnyModel(Inner inner);

    /// The inner model's loss(), and evaluation_loss(). Throws Errc::bad_value for a batch of another kind of model.
    at::Tensor loss(const AnyBatch& batch);
    at::Tensor evaluation_loss(const AnyBatch& batch);

    void train(bool on = true) override;

    /// The inner model's.
    [[nodiscard]] std::shared_ptr<models::AdapterSwitch> adapter_switch() const override;

    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }
    /// The inner model where it is a Model, nullptr where it is another.
    template <class Model>
    [[nodiscard]] Model* as() const noexcept {
        const auto* const found = std::get_if<std::shared_ptr<Model>>(&inner_);
        return found == nullptr ? nullptr : found->get();
    }

private:
    Inner inner_;
};

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/any_model.ipp>
#endif
