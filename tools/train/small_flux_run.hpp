#pragma once
// tools/train/small_flux_run.hpp - what a run of SmallFlux needs besides its trainer, and the trainers, one list a file.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <strata/config/intent.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/policy/backend.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/train/gallery.hpp>
#include <strata/train/session.hpp>

#include "compositions.hpp"
#include "train_settings.hpp"

namespace strata::tools {

/// Pictures and samples of one run.
struct SmallFluxRun {
    /// A data set may be a folder or a bucket.
    using Recipe = models::FluxRecipe<>;  // SmallFlux::Recipe, without the model
    using Pictures = data::PictureSource<Recipe, Backend<S3>::store>;

    /// Fills caches. Collective. Throws what PictureSource and Gallery throw.
    SmallFluxRun(Session& session, const TrainSettings& settings);

    Session& session;
    const TrainSettings& settings;
    std::shared_ptr<const Recipe> recipe = std::make_shared<const Recipe>();
    train::Gallery<Recipe> gallery;
    Pictures pictures;
    /// Data sets with `dataset_type` eval.
    struct Evaluated {
        std::string id;
        std::unique_ptr<Pictures> pictures;
    };
    std::vector<Evaluated> evaluated;

private:
    [[nodiscard]] data::SourceOptions data_options() const;
};

/// Trains with the first composition of a list that does what is asked for. Collective. Throws what a trainer throws.
void train_small_flux(SmallFluxRun& run, const config::Intent& asked, AdamWBf16 list);
void train_small_flux(SmallFluxRun& run, const config::Intent& asked, AdamWPureBf16 list);
void train_small_flux(SmallFluxRun& run, const config::Intent& asked, AdamWFp16 list);
void train_small_flux(SmallFluxRun& run, const config::Intent& asked, AdamWFp32 list);
void train_small_flux(SmallFluxRun& run, const config::Intent& asked, OthersBf16 list);
void train_small_flux(SmallFluxRun& run, const config::Intent& asked, OthersPureBf16 list);

}  // namespace strata::tools
