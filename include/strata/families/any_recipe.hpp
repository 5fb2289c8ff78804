#pragma once
// strata/families/any_recipe.hpp - AnyRecipe: any model's recipe behind one type, beside AnyModel.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>
#include <strata/families/any_model.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::families {

/// A data::Recipe that makes batches of AnyModel, and draws with one where the inner recipe can. What is cached has the names, types and ids
/// of the inner recipe: entries are the same whether they were made through this or not.
class AnyRecipe {
public:
    using Batch = AnyBatch;
    /// Encoders of whatever type, for as long as this lives.
    class Encoders {
    public:
        explicit Encoders(std::shared_ptr<void> held) : held_{std::move(held)} {}
        template <class T>
        [[nodiscard]] T& as() const {
            return *static_cast<T*>(held_.get());
        }

    private:
        std::shared_ptr<void> held_;
    };
    using PictureEncoders = Encoders;
    using CaptionEncoders = Encoders;

    AnyRecipe() = default;
    AnyRecipe(const AnyRecipe&) = delete;
    AnyRecipe& operator=(const AnyRecipe&) = delete;
    virtual ~AnyRecipe() = default;

    // As data::Recipe has them.
    [[nodiscard]] virtual std::string picture_id() const = 0;
    [[nodiscard]] virtual std::string caption_id() const = 0;
    [[nodiscard]] virtual std::int64_t alignment() const = 0;
    [[nodiscard]] virtual std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const = 0;
    [[nodiscard]] virtual std::vector<data::TensorSpec> caption_tensors() const = 0;
    [[nodiscard]] virtual Encoders load_picture_encoders(at::Device device) const = 0;
    [[nodiscard]] virtual Encoders load_caption_encoders(at::Device device) const = 0;
    [[nodiscard]] virtual std::vector<data::NamedTensors> encode_pictures(Encoders& encoders,
                                                                          const data::PictureBatch& pictures) const = 0;
    [[nodiscard]] virtual std::vector<data::NamedTensors> encode_captions(
        Encoders& encoders, std::span<const std::string> captions) const = 0;
    [[nodiscard]] virtual std::optional<std::string> dropped_caption() const = 0;
    [[nodiscard]] virtual AnyBatch collate(std::span<const data::Example> examples) const = 0;

    /// Throws what draw() would throw of these options, where the inner recipe can tell without drawing; Errc::bad_value for a model of another
    /// kind than the recipe's.
    virtual void check_drawing(const AnyModel& model, const models::SamplerOptions& options) const = 0;
    /// Pictures of prompts by the inner recipe's draw(), see train::Gallery and models::Flux1Recipe::draw().
    /// Throws Errc::bad_value for a model of another kind than the recipe's, and for a recipe that cannot draw; what the inner recipe throws.
    [[nodiscard]] virtual std::vector<at::Tensor> draw(AnyModel& model, std::span<const data::NamedTensors> prompts,
                                                       const data::NamedTensors& empty,
                                                       const pictures::PictureSize& size,
                                                       const models::SamplerOptions& options,
                                                       std::int64_t first) const = 0;
    /// The two halves of draw(), so that the model need not be there when latents are decoded: see models::Flux1Recipe::draw_latents(), and
    /// models::decode_each(). They throw as draw() does.
    [[nodiscard]] virtual std::vector<at::Tensor> draw_latents(
        AnyModel& model, std::span<const data::NamedTensors> prompts, const data::NamedTensors& empty,
        const pictures::PictureSize& size, const models::SamplerOptions& options, std::int64_t first) const = 0;
    virtual void decode_each(std::span<const at::Tensor> latents, at::Device device,
                             core::FunctionRef<void(std::size_t i, const at::Tensor& picture_3HW)> take) const = 0;
};
static_assert(data::Recipe<AnyRecipe>);

namespace detail {

template <class R, class Model>
concept DrawsWith = requires(const R& recipe, Model& model, std::span<const data::NamedTensors> prompts,
                             const data::NamedTensors& empty, const pictures::PictureSize& size,
                             const models::SamplerOptions& options) {
    { recipe.draw(model, prompts, empty, size, options, std::int64_t{}) } -> std::same_as<std::vector<at::Tensor>>;
    {
        recipe.draw_latents(model, prompts, empty, size, options, std::int64_t{})
        } -> std::same_as<std::vector<at::Tensor>>;
};

[[noreturn]] void throw_cannot_draw(bool is_other_model);

template <data::Recipe R, class Model>
class RecipeOf final : public AnyRecipe {
public:
    explicit RecipeOf(R recipe) : recipe_{std::move(recipe)} {}

    [[nodiscard]] std::string picture_id() const override { return recipe_.picture_id(); }
    [[nodiscard]] std::string caption_id() const override { return recipe_.caption_id(); }
    [[nodiscard]] std::int64_t alignment() const override { return recipe_.alignment(); }
    [[nodiscard]] std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const override {
        return recipe_.picture_tensors(size);
    }
    [[nodiscard]] std::vector<data::TensorSpec> caption_tensors() const override { return recipe_.caption_tensors(); }
    [[nodiscard]] Encoders load_picture_encoders(at::Device device) const override {
        return Encoders{
            std::shared_ptr<void>{new typename R::PictureEncoders(recipe_.load_picture_encoders(device)),
                                  [](void* held) { delete static_cast<typename R::PictureEncoders*>(held); }}};
    }
    [[nodiscard]] Encoders load_caption_encoders(at::Device device) const override {
        return Encoders{
            std::shared_ptr<void>{new typename R::CaptionEncoders(recipe_.load_caption_encoders(device)),
                                  [](void* held) { delete static_cast<typename R::CaptionEncoders*>(held); }}};
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_pictures(Encoders& encoders,
                                                                  const data::PictureBatch& pictures) const override {
        return recipe_.encode_pictures(encoders.as<typename R::PictureEncoders>(), pictures);
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(
        Encoders& encoders, std::span<const std::string> captions) const override {
        return recipe_.encode_captions(encoders.as<typename R::CaptionEncoders>(), captions);
    }
    [[nodiscard]] std::optional<std::string> dropped_caption() const override { return recipe_.dropped_caption(); }
    [[nodiscard]] AnyBatch collate(std::span<const data::Example> examples) const override {
        return recipe_.collate(examples);
    }
    void check_drawing(const AnyModel& model, const models::SamplerOptions& options) const override {
        const Model* const inner = model.as<Model>();
        if (inner == nullptr) throw_cannot_draw(true);
        if constexpr (requires { recipe_.check_drawing(*inner, options); }) recipe_.check_drawing(*inner, options);
    }
    [[nodiscard]] std::vector<at::Tensor> draw(AnyModel& model, std::span<const data::NamedTensors> prompts,
                                               const data::NamedTensors& empty, const pictures::PictureSize& size,
                                               const models::SamplerOptions& options,
                                               std::int64_t first) const override {
        Model* const inner = model.as<Model>();
        if (inner == nullptr) throw_cannot_draw(true);
        if constexpr (DrawsWith<R, Model>)
            return recipe_.draw(*inner, prompts, empty, size, options, first);
        else
            throw_cannot_draw(false);
    }
    [[nodiscard]] std::vector<at::Tensor> draw_latents(AnyModel& model, std::span<const data::NamedTensors> prompts,
                                                       const data::NamedTensors& empty,
                                                       const pictures::PictureSize& size,
                                                       const models::SamplerOptions& options,
                                                       std::int64_t first) const override {
        Model* const inner = model.as<Model>();
        if (inner == nullptr) throw_cannot_draw(true);
        if constexpr (DrawsWith<R, Model>)
            return recipe_.draw_latents(*inner, prompts, empty, size, options, first);
        else
            throw_cannot_draw(false);
    }
    void decode_each(std::span<const at::Tensor> latents, at::Device device,
                     core::FunctionRef<void(std::size_t i, const at::Tensor& picture_3HW)> take) const override {
        if constexpr (DrawsWith<R, Model>)
            models::decode_each(recipe_, latents, device, take);
        else
            throw_cannot_draw(false);
    }

private:
    R recipe_;
};

}  // namespace detail

/// A recipe of one of AnyModel's models as an AnyRecipe.
///
///   Model  what draw() is given: the inner model
template <class Model, data::Recipe R>
[[nodiscard]] std::shared_ptr<const AnyRecipe> any_recipe(R recipe) {
    return std::make_shared<const detail::RecipeOf<R, Model>>(std::move(recipe));
}

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/any_recipe.ipp>
#endif
