#pragma once
// strata/families/family.hpp - Family and make_family(): a model of a configuration, with its recipe, when the program runs.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <strata/config/model_settings.hpp>
#include <strata/core/inline.hpp>
#include <strata/diffusion/scheduler_config.hpp>
#include <strata/families/added_adapter.hpp>
#include <strata/families/any_model.hpp>
#include <strata/families/any_recipe.hpp>

namespace strata::families {

/// What a program needs of a model to train it or to draw with it:
///
///   const auto family = families::make_family(config.model);
///   data::PictureSource pictures{session.comm(), datasets, family->recipe(), source_options};
///   Trainer<families::AnyModel, ZeroStage<3>> trainer{session, family->make_model(), train_options};
///
/// Holds paths and sizes: no weights and no encoders. Immutable; any thread.
class Family {
public:
    struct Parts {
        std::string name;                         ///< "flux"
        std::string title;                        ///< "Flux.1 of models/flux-dev", for people
        std::shared_ptr<const AnyRecipe> recipe;  ///< its encoders are loaded where something is encoded
        std::function<std::shared_ptr<AnyModel>()> make_model;
        std::optional<diffusion::SchedulerConfig> scheduler{};
        std::vector<std::size_t> layers_of_encoders{};  ///< of each added file
    };
    explicit Family(Parts parts) : parts_{std::move(parts)} {}

    [[nodiscard]] const std::string& name() const noexcept { return parts_.name; }
    [[nodiscard]] const std::string& title() const noexcept { return parts_.title; }
    [[nodiscard]] const std::shared_ptr<const AnyRecipe>& recipe() const noexcept { return parts_.recipe; }

    /// A new model with its objective, in units (strata::in_units): no unit has memory until an engine takes it over, and then a rank of
    /// stage 3 reads its own share of each. A program without an engine calls strata::make_whole(*model). Local: every rank calls it.
    ///
    /// Without files, or from scratch, values are random, of libtorch's default generator: seed it first
    /// (train::seed_generators). Parameters are fp32 here, and the engine's format there.
    /// Throws Errc::weights_do_not_fit with everything that is missing, unexpected or of another shape; io_failed.
    [[nodiscard]] std::shared_ptr<AnyModel> make_model() const { return parts_.make_model(); }

    /// What the model's scheduler_config.json says of drawing: solver and spacing; nothing where there is none.
    [[nodiscard]] const std::optional<diffusion::SchedulerConfig>& scheduler() const noexcept {
        return parts_.scheduler;
    }

    /// Where the model's authors draw in a way that is not here: what stands in for it, for people. Empty: nothing does.
    [[nodiscard]] std::string stand_in_note() const;
    /// Layers of text encoders that each of make_family()'s files changes. 0: it has adapters of none here.
    [[nodiscard]] const std::vector<std::size_t>& layers_of_encoders() const noexcept {
        return parts_.layers_of_encoders;
    }

private:
    Parts parts_;
};

/// The model that a configuration names. Reads config files, tokenizers and the headers of weights, and samples of the values of encoders to
/// know them by (weights_id()): no weights. Local; every rank calls it and gets the same.
///
///   added  files of adapters, of which those of text encoders are merged when these are loaded; those of the denoiser are the caller's to merge
///          (adapters::merge_adapter_file()) into what make_model() returns
/// Throws Errc::bad_model_folder with everything that is missing or wrong in the files, and for a name of a hub, which is no folder here;
/// Errc::bad_value for a family that strata does not train, or numbers that do not go together.
[[nodiscard]] std::unique_ptr<Family> make_family(const config::ModelSettings& settings,
                                                  const std::vector<AddedAdapter>& added = {});

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/family.ipp>
#endif
