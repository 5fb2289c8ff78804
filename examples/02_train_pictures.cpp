// 02_train_pictures - captioned pictures in, a text-to-image model out; what `strata train` does, as a program of one's own.
//
//   pictures -> aspect buckets -> latents (cached) --+
//   captions -------------> embeddings (cached) -----+-> batches -> SmallFlux -> samples every so often
//
//   strata launch -n 2 -- ./02_train_pictures --config config.json --output out

#include <memory>
#include <string>

#include <torch/torch.h>

#include <strata/config/trainer_config.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/strata.hpp>
#include <strata/train/compute_device.hpp>
#include <strata/train/config_for.hpp>
#include <strata/train/gallery.hpp>
#include <strata/train/options_from_config.hpp>

using namespace strata;

//! [compose]
using PictureTrainer =
    Trainer<models::SmallFlux, ZeroStage<2>, OffloadTarget<Cpu>, Backend<Local>, Optimizer<AdamW>, Precision<Bf16>>;
using Recipe = data::recipe_of_t<models::SmallFlux>;  // says what the model is fed
using Pictures = data::PictureSource<Recipe, PictureTrainer::setup::backend::store>;
//! [compose]

int main(int argc, char** argv) {
    // Reads --config FILE; every key of it is a flag as well: --learning_rate 1e-4. --help lists them.
    return strata::run<train::ConfigFor<PictureTrainer>>(
        argc, argv, [](Session& session, const config::TrainerConfig& config) {
            const auto datasets = config::load_datasets(config.data_backend_config, config.image_defaults());
            session.set_collective_timeout(config.options.collective_timeout);
            session.output();  // taken before hours of encoding: no other run works there

            const auto recipe = std::make_shared<const Recipe>();
            const at::Device device = train::compute_device<PictureTrainer::setup>(session);  // of encoders, too
            train::Gallery gallery{session, recipe, train::GalleryOptions::from(config), device};
            auto data_options = data::SourceOptions::from(config);
            data_options.device = device;
            data_options.stopped = [&] { return session.stop_requested(); };
            data_options.note = [&](const std::string& line) { session.say(line); };
            data_options.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
                session.phases()(what, done, total);
            };
            Pictures pictures{session.comm(), datasets, recipe, data_options};
            pictures.prepare();  // may take hours, and goes on where it was interrupted
            const auto options = train::options_from<PictureTrainer>(config, pictures.micro_batches_per_epoch());
            if (session.rank() == 0) {
                const datasets::Report found = pictures.report();
                const auto names = found.write_skipped(session.output() / "skipped.txt");
                for (const std::string& line : found.lines(names)) session.progress().note(line);
            }

            train::seed_generators(options.seed);  // of the first weights
            PictureTrainer trainer{session, models::SmallFlux{}, options};
            gallery.follow(trainer);  // draws samples every so often
            trainer.report().title = "SmallFlux on " + config.data_backend_config.string();
            trainer.report().facts = {{"ranks", std::to_string(session.world())},
                                      {"steps", std::to_string(options.max_steps)},
                                      {"learning rate", std::to_string(options.schedule.lr)}};
            trainer.fit(pictures);
        });
}
