#pragma once
// strata/data/recipe_rules.hpp - the sentences about a type that is meant to be a recipe and is none.

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <strata/core/policy.hpp>
#include <strata/data/recipe.hpp>

namespace strata::rule {

template <class R>
struct RecipeNamesItsTypes {
    static constexpr bool holds = requires {
        typename R::Batch;
        typename R::PictureEncoders;
        typename R::CaptionEncoders;
    };
    struct Report {
        static_assert(
            holds,
            "[ST0146] The recipe of a source does not name its types. Fix: write `using Batch = ...;`, `using "
            "PictureEncoders = ...;` and `using CaptionEncoders = ...;` in it (docs/write-a-recipe.md).");
    };
};

/// Looked at after RecipeNamesItsTypes, as the next ones.
template <class R>
struct RecipeSaysWhatIsCached {
    static constexpr bool holds =
        data::SaysConditioningOrNothing<R> && requires(const R& recipe, const pictures::PictureSize& size) {
        { recipe.picture_id() } -> std::convertible_to<std::string>;
        { recipe.caption_id() } -> std::convertible_to<std::string>;
        { recipe.alignment() } -> std::convertible_to<std::int64_t>;
        { recipe.picture_tensors(size) } -> std::same_as<std::vector<data::TensorSpec>>;
        { recipe.caption_tensors() } -> std::same_as<std::vector<data::TensorSpec>>;
    };
    struct Report {
        static_assert(holds,
                      "[ST0147] The recipe of a source does not say what is cached. Fix: give it `std::string "
                      "picture_id() const`, the same for caption_id(), `std::int64_t alignment() const`, "
                      "`std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize&) const` and "
                      "`std::vector<data::TensorSpec> caption_tensors() const`; and if it takes conditioning pictures, "
                      "`std::vector<pictures::ConditioningKind> conditioning() const`.");
    };
};

template <class R>
struct RecipeEncodes {
    static constexpr bool holds = requires(
        const R& recipe, at::Device device, const data::PictureBatch& pictures, std::span<const std::string> captions,
        typename R::PictureEncoders& of_pictures, typename R::CaptionEncoders& of_captions) {
        { recipe.load_picture_encoders(device) } -> std::same_as<typename R::PictureEncoders>;
        { recipe.load_caption_encoders(device) } -> std::same_as<typename R::CaptionEncoders>;
        { recipe.encode_pictures(of_pictures, pictures) } -> std::same_as<std::vector<data::NamedTensors>>;
        { recipe.encode_captions(of_captions, captions) } -> std::same_as<std::vector<data::NamedTensors>>;
    };
    struct Report {
        static_assert(holds,
                      "[ST0148] The recipe of a source does not load its encoders and encode with them. Fix: give it "
                      "`PictureEncoders load_picture_encoders(at::Device) const` and `std::vector<data::NamedTensors> "
                      "encode_pictures(PictureEncoders&, const data::PictureBatch&) const`, and "
                      "`CaptionEncoders load_caption_encoders(at::Device) const` and `std::vector<data::NamedTensors> "
                      "encode_captions(CaptionEncoders&, std::span<const std::string>) const`.");
    };
};

template <class R>
struct RecipeMakesItsBatch {
    static constexpr bool holds = requires(const R& recipe, std::span<const data::Example> examples) {
        { recipe.dropped_caption() } -> std::same_as<std::optional<std::string>>;
        { recipe.collate(examples) } -> std::same_as<typename R::Batch>;
    };
    struct Report {
        static_assert(holds,
                      "[ST0149] The recipe of a source does not make its batch. Fix: give it `Batch "
                      "collate(std::span<const data::Example>) const` and `std::optional<std::string> "
                      "dropped_caption() const`, which returns the text that stands in for a dropped caption, or "
                      "std::nullopt where collate() looks at Example::is_dropped.");
    };
};

}  // namespace strata::rule
