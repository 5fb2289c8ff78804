#pragma once
// strata/data/recipe.hpp - Recipe: what a model is fed. What is cached of a sample, what makes it, how samples become a batch.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <strata/data/named_tensors.hpp>
#include <strata/pictures/conditioning.hpp>
#include <strata/pictures/frame.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::data {

/// How a picture became what is trained on: resized to frame.width x frame.height, of which the box of frame.target at
/// (frame.left, frame.top) is kept. All in pixels.
struct Geometry {
    pictures::PictureSize original;  ///< as the picture is meant to be seen
    pictures::Frame frame;
};

/// Pictures that are encoded together: all of one size.
struct PictureBatch {
    at::Tensor pixels_B3HW;          ///< fp32 in [-1, 1], red first, contiguous, on the device that the encoders are on
    std::vector<Geometry> geometry;  ///< B
    /// One of each kind that the recipe's conditioning() names, in its order: (B, 3, H, W) as pixels_B3HW, or of a mask
    /// (B, 1, H, W) fp32 in [0, 1], 1 where it is white. Picture i of each was resized and cropped as picture i was.
    std::vector<at::Tensor> conditioning = {};
};

/// A sample as one visit sees it.
struct Example {
    const NamedTensors& picture;  ///< as encode_pictures() made them
    const NamedTensors& caption;  ///< as encode_captions() made them
    Geometry geometry;
    std::string text;                     ///< the caption, or what stands in for a dropped one
    bool is_dropped = false;              ///< the caption is not to be shown; see Recipe::dropped_caption()
    std::string name;                     ///< where the picture is, for messages
    std::uint64_t random = 0;             ///< of this visit, for what a batch draws: the same when a run resumes there
    bool is_regularisation_data = false;  ///< of a data set that teaches what the model predicts without its adapter
};

/// True for a recipe with a conditioning() that can be called, whatever it returns.
template <class R>
concept HasConditioning = requires(const R& recipe) {
    recipe.conditioning();
};
/// A conditioning() returns what it should, or there is none.
template <class R>
concept SaysConditioningOrNothing = !HasConditioning<R> || requires(const R& recipe) {
    { recipe.conditioning() } -> std::same_as<std::vector<pictures::ConditioningKind>>;
};
/// The conditioning pictures that a recipe takes: those of its conditioning(), or none.
template <class R>
[[nodiscard]] std::vector<pictures::ConditioningKind> conditioning_of(const R& recipe) {
    if constexpr (HasConditioning<R>)
        return recipe.conditioning();
    else
        return {};
}

/// What a model is fed, as a type that the model owns: `using Recipe = ...;` in the model, or recipe_of<Model>.
///
///   Batch            what collate() makes and the model's loss takes
///   PictureEncoders  what must be in memory to encode pictures: an autoencoder, say
///   CaptionEncoders  the same for captions: one text encoder, or several
///
/// Semantic requirements (checked by strata/testing/recipe_conformance.hpp, not by the compiler):
///   * picture_id() and caption_id() name everything that the tensors of a picture, of a caption depend on besides themselves:
///     weights, number format, lengths. They are part of what cache entries are known by, and cost nothing to ask for
///   * alignment(): both edges of a picture are multiples of it, in pixels; what the autoencoder makes one latent of,
///     times the patch of the model
///   * picture_tensors(size), caption_tensors(): what is cached of a picture of that training size, of a caption
///   * load_...(device): makes the encoders there. Called when something is to be encoded; they go when caches are full
///   * encode_pictures(), encode_captions(): an entry for each, in order, as ..._tensors() says; on any device, source
///     moves them to the CPU. Equal input gives equal bits in a batch of the same size. One thread at a time is in each
///   * dropped_caption(): the text that is embedded in place of a caption that is dropped; nothing: the caption's own tensors
///     come with Example::is_dropped, and collate() makes of them what it likes, zeros say
///   * collate(): B >= 1 examples of one training size as a batch, on the CPU; a pure function of them. From any thread
/// A batch with a member `samples`, a vector of names, has them named where its loss is not finite.
///
/// A recipe that takes conditioning pictures (of a ControlNet, to begin with, masks) has one member more:
///   * conditioning(): what they are, a kind each. Data sets name theirs with conditioning_data, in the same order; what
///     encode_pictures() makes of them is part of the picture's own entry, which is known by what all of the files hold
template <class R>
concept Recipe = SaysConditioningOrNothing<R> &&
    requires(const R& recipe, at::Device device, const pictures::PictureSize& size, const PictureBatch& pictures,
             std::span<const std::string> captions, std::span<const Example> examples,
             typename R::PictureEncoders& of_pictures, typename R::CaptionEncoders& of_captions) {
    typename R::Batch;
    { recipe.picture_id() } -> std::convertible_to<std::string>;
    { recipe.caption_id() } -> std::convertible_to<std::string>;
    { recipe.alignment() } -> std::convertible_to<std::int64_t>;
    { recipe.picture_tensors(size) } -> std::same_as<std::vector<TensorSpec>>;
    { recipe.caption_tensors() } -> std::same_as<std::vector<TensorSpec>>;
    { recipe.load_picture_encoders(device) } -> std::same_as<typename R::PictureEncoders>;
    { recipe.load_caption_encoders(device) } -> std::same_as<typename R::CaptionEncoders>;
    { recipe.encode_pictures(of_pictures, pictures) } -> std::same_as<std::vector<NamedTensors>>;
    { recipe.encode_captions(of_captions, captions) } -> std::same_as<std::vector<NamedTensors>>;
    { recipe.dropped_caption() } -> std::same_as<std::optional<std::string>>;
    { recipe.collate(examples) } -> std::same_as<typename R::Batch>;
};

/// The recipe of a model. To be specialised for a model that one cannot change.
template <class Model>
struct recipe_of {
    using type = typename Model::Recipe;
};
template <class Model>
using recipe_of_t = typename recipe_of<Model>::type;

namespace archetype {

/// The least a Recipe may be.
struct Recipe {
    Recipe() = delete;
    struct Batch {
        Batch() = delete;
        Batch(Batch&&) = default;
    };
    struct PictureEncoders {
        PictureEncoders() = delete;
        PictureEncoders(PictureEncoders&&) = delete;
    };
    using CaptionEncoders = PictureEncoders;
    [[nodiscard]] std::string picture_id() const;
    [[nodiscard]] std::string caption_id() const;
    [[nodiscard]] std::int64_t alignment() const;
    [[nodiscard]] std::vector<TensorSpec> picture_tensors(const pictures::PictureSize&) const;
    [[nodiscard]] std::vector<TensorSpec> caption_tensors() const;
    [[nodiscard]] PictureEncoders load_picture_encoders(at::Device) const;
    [[nodiscard]] CaptionEncoders load_caption_encoders(at::Device) const;
    [[nodiscard]] std::vector<NamedTensors> encode_pictures(PictureEncoders&, const PictureBatch&) const;
    [[nodiscard]] std::vector<NamedTensors> encode_captions(CaptionEncoders&, std::span<const std::string>) const;
    [[nodiscard]] std::optional<std::string> dropped_caption() const;
    [[nodiscard]] Batch collate(std::span<const Example>) const;
};

}  // namespace archetype
static_assert(Recipe<archetype::Recipe>);

}  // namespace strata::data
