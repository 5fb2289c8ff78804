#pragma once
// tools/train/train_one_of.hpp - train_one_of(): a trainer of a list of compositions, for any model; compiled once for each.

#include <torch/torch.h>

#include <strata/config/dispatch.hpp>
#include <strata/families/any_model.hpp>
#include <strata/strata.hpp>
#include <strata/train/model_record.hpp>
#include <strata/train/options_from_config.hpp>
#include <strata/train/trainer_for.hpp>

#include "picture_run.hpp"

namespace strata::tools {

template <class Setup>
void train_with(PictureRun& run) {
    const TrainSettings& settings = run.settings;
    const auto options = train::options_from<Setup>(settings, run.pictures.micro_batches_per_epoch(), run.family);
    trainer_for_t<families::AnyModel, Setup> trainer{run.session, run.model, options};
    run.gallery.follow(trainer);
    for (const PictureRun::Evaluated& set : run.evaluated)
        trainer.evaluate_every(settings.evaluation_interval(), set.id, *set.pictures);
    trainer.report().title = run.title + " on " + settings.data_backend_config.string();
    trainer.report().facts = {{"ranks", std::to_string(run.session.world())},
                              {"steps", std::to_string(options.max_steps)},
                              {"learning rate", std::to_string(options.schedule.lr)}};
    train::record_model(run.session, trainer.folder(), settings.model);
    trainer.fit(run.pictures);
}

template <class List>
void train_one_of(PictureRun& run, const config::Intent& asked, List list) {
    config::dispatch(asked, list, [&](auto setup) { train_with<decltype(setup)>(run); });
}

}  // namespace strata::tools
