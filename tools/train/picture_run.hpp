#pragma once
// tools/train/picture_run.hpp - what a run on captioned pictures needs besides its trainer, and the trainers, one list a file.

#include <memory>
#include <string>
#include <vector>

#include <strata/config/intent.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/families/any_model.hpp>
#include <strata/families/any_recipe.hpp>
#include <strata/policy/backend.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/train/gallery.hpp>
#include <strata/train/session.hpp>

#include "compositions.hpp"
#include "train_settings.hpp"

namespace strata::families {
class Family;
}

namespace strata::tools {

/// Model, pictures and samples of one run.
struct PictureRun {
    /// A data set may be a folder or a bucket.
    using Pictures = data::PictureSource<families::AnyRecipe, Backend<S3>::store>;

    /// Makes the model, so that weights that do not fit are told at once, then fills caches, which may take hours.
    /// Collective. Throws what make_family(), PictureSource and Gallery throw.
    PictureRun(Session& session, const TrainSettings& settings);

    Session& session;
    const TrainSettings& settings;
    std::string title;           ///< of the model, for people
    config::ModelFamily family;  ///< also where model_index.json says it
    std::shared_ptr<const families::AnyRecipe> recipe;
    /// In units that have no memory yet: what waits for the trainer is small.
    std::shared_ptr<families::AnyModel> model;
    train::Gallery<families::AnyRecipe> gallery;
    Pictures pictures;
    /// Data sets with `dataset_type` eval.
    struct Evaluated {
        std::string id;
        std::unique_ptr<Pictures> pictures;
    };
    std::vector<Evaluated> evaluated;

private:
    PictureRun(Session& session, const TrainSettings& settings, const families::Family& family);
    [[nodiscard]] data::SourceOptions data_options() const;
};

/// Trains with the first composition of a list that does what is asked for. Collective. Throws what a trainer throws.
void train_pictures(PictureRun& run, const config::Intent& asked, AdamWBf16 list);
void train_pictures(PictureRun& run, const config::Intent& asked, AdamWPureBf16 list);
void train_pictures(PictureRun& run, const config::Intent& asked, AdamWFp16 list);
void train_pictures(PictureRun& run, const config::Intent& asked, AdamWFp32 list);
void train_pictures(PictureRun& run, const config::Intent& asked, OthersBf16 list);
void train_pictures(PictureRun& run, const config::Intent& asked, OthersPureBf16 list);
void train_pictures(PictureRun& run, const config::Intent& asked, LoraTrainers list);
void train_pictures(PictureRun& run, const config::Intent& asked, LokrTrainers list);

}  // namespace strata::tools
