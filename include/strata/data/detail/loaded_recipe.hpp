#pragma once
// strata/data/detail/loaded_recipe.hpp - LoadedRecipe: a recipe of any type with its encoders, which come and go.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>

#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>

namespace strata::data::detail {

/// What does not depend on a recipe's type works with this. Encoders are loaded when something is to be encoded, and
/// stay until they are released. Thread-safe: a thread that encodes lets another wait.
class LoadedRecipe {
public:
    virtual ~LoadedRecipe() = default;

    [[nodiscard]] virtual std::string picture_id() const = 0;
    [[nodiscard]] virtual std::string caption_id() const = 0;
    [[nodiscard]] virtual std::int64_t alignment() const = 0;
    [[nodiscard]] virtual std::vector<TensorSpec> picture_tensors(const pictures::PictureSize& size) const = 0;
    [[nodiscard]] virtual std::vector<TensorSpec> caption_tensors() const = 0;
    [[nodiscard]] virtual std::optional<std::string> dropped_caption() const = 0;
    [[nodiscard]] virtual std::vector<pictures::ConditioningKind> conditioning() const = 0;
    /// A Batch, made anew.
    [[nodiscard]] virtual std::shared_ptr<void> collate(std::span<const Example> examples) const = 0;

    /// Entries on the CPU, as ..._tensors() says. Throws what the recipe throws, and Errc::bad_recipe.
    ///
    ///   pictures  on the CPU
    [[nodiscard]] std::vector<NamedTensors> encode_pictures(PictureBatch pictures);
    [[nodiscard]] std::vector<NamedTensors> encode_captions(std::span<const std::string> captions);
    /// What encoders hold goes back to the system.
    void release_picture_encoders();
    void release_caption_encoders();

protected:
    ///   device  that encoders compute on
    explicit LoadedRecipe(at::Device device) : device_{device} {}
    [[nodiscard]] at::Device device() const noexcept { return device_; }

    [[nodiscard]] virtual std::vector<NamedTensors> encode(const PictureBatch& pictures) = 0;
    [[nodiscard]] virtual std::vector<NamedTensors> encode(std::span<const std::string> captions) = 0;
    virtual void drop_picture_encoders() = 0;
    virtual void drop_caption_encoders() = 0;

private:
    at::Device device_;
    std::mutex of_pictures_;
    std::mutex of_captions_;
};

template <Recipe R>
class LoadedRecipeOf final : public LoadedRecipe {
public:
    LoadedRecipeOf(std::shared_ptr<const R> recipe, at::Device device)
        : LoadedRecipe{device}, recipe_{std::move(recipe)} {}

    std::string picture_id() const override { return recipe_->picture_id(); }
    std::string caption_id() const override { return recipe_->caption_id(); }
    std::int64_t alignment() const override { return recipe_->alignment(); }
    std::vector<TensorSpec> picture_tensors(const pictures::PictureSize& size) const override {
        return recipe_->picture_tensors(size);
    }
    std::vector<TensorSpec> caption_tensors() const override { return recipe_->caption_tensors(); }
    std::optional<std::string> dropped_caption() const override { return recipe_->dropped_caption(); }
    std::vector<pictures::ConditioningKind> conditioning() const override { return conditioning_of(*recipe_); }
    std::shared_ptr<void> collate(std::span<const Example> examples) const override {
        return std::shared_ptr<typename R::Batch>{new typename R::Batch(recipe_->collate(examples))};
    }

private:
    std::vector<NamedTensors> encode(const PictureBatch& pictures) override {
        if (!pictures_) pictures_.reset(new typename R::PictureEncoders(recipe_->load_picture_encoders(device())));
        return recipe_->encode_pictures(*pictures_, pictures);
    }
    std::vector<NamedTensors> encode(std::span<const std::string> captions) override {
        if (!captions_) captions_.reset(new typename R::CaptionEncoders(recipe_->load_caption_encoders(device())));
        return recipe_->encode_captions(*captions_, captions);
    }
    void drop_picture_encoders() override { pictures_.reset(); }
    void drop_caption_encoders() override { captions_.reset(); }

    std::shared_ptr<const R> recipe_;
    std::unique_ptr<typename R::PictureEncoders> pictures_;
    std::unique_ptr<typename R::CaptionEncoders> captions_;
};

}  // namespace strata::data::detail

#ifndef STRATA_COMPILED
#include <strata/data/impl/loaded_recipe.ipp>
#endif
