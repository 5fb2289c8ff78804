// finetune - Flux.1, SDXL or Stable Diffusion 1.5 from the folder of their files, or the small model from nothing.
//
//   model_family, pretrained_model_name_or_path --> Family --> recipe: which encoders, what is cached, what a batch is
//                                                         \-> model: begins with the folder's weights, unit by unit
//
// The composition is this program's own, and the model the configuration's: flux.json, sdxl.json and small.json beside
// this file are three. It names a folder as the model was published, with model_index.json and all its parts:
//
//   strata launch -n 8 -- ./finetune --config flux.json --learning_rate 5e-6
//
// What it leaves in --output: checkpoints, from which the same words go on, metrics.jsonl, report.html, samples, and in the
// end model.safetensors under the published names, in bf16 as it computes. With "model_type": "lora" it trains adapters
// over the model (lora_rank, flux_lora_target, ...) and leaves pytorch_lora_weights.safetensors.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include <strata/adapters/lora.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/families/any_model.hpp>
#include <strata/families/any_recipe.hpp>
#include <strata/families/family.hpp>
#include <strata/strata.hpp>
#include <strata/train/compute_device.hpp>
#include <strata/train/config_for.hpp>
#include <strata/train/gallery.hpp>
#include <strata/train/model_record.hpp>
#include <strata/train/options_from_config.hpp>
#include <strata/train/seed.hpp>

using namespace strata;

//! [compose]
using Finetuner = Trainer<families::AnyModel,
                          ZeroStage<3>,        // a rank holds its share of parameters, gradients and state
                          OffloadTarget<Cpu>,  // AdamW's state in host memory
                          Recompute<Blocks>,   // no activations kept inside of blocks
                          Precision<Bf16>>;    // computes in bf16, with master weights in fp32
using LoraTuner = Trainer<families::AnyModel, ZeroStage<3>, OffloadTarget<Cpu>, Recompute<Blocks>, Precision<Bf16>,
                          Adapter<Lora>>;  // gradients and state of adapters alone
using Pictures = data::PictureSource<families::AnyRecipe, Finetuner::setup::backend::store>;
//! [compose]

data::SourceOptions data_options(Session& session, const config::TrainerConfig& config) {
    auto options = data::SourceOptions::from(config);
    options.device = train::compute_device<Finetuner::setup>(session);  // of encoders, too
    options.stopped = [&] { return session.stop_requested(); };
    options.note = [&](const std::string& line) { session.say(line); };
    options.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
        session.phases()(what, done, total);
    };
    return options;
}

/// Each picture once, with its caption.
data::SourceOptions evaluation_options(Session& session, const config::TrainerConfig& config) {
    auto options = data_options(session, config);
    options.each_once = true;
    options.gradient_accumulation_steps = 1;
    options.caption_dropout_probability = 0;
    return options;
}

///   Tuner  Finetuner or LoraTuner
template <class Tuner>
void finetune(Session& session, const config::TrainerConfig& config) {
    session.set_collective_timeout(config.options.collective_timeout);
    session.output();  // taken before hours of encoding: no other run works there

    //! [family]
    const auto family = families::make_family(config.model);
    const auto recipe = family->recipe();
    train::seed_generators(config.options.seed);
    const auto model = family->make_model();  // in units without memory; what does not fit is said now
    //! [family]

    train::Gallery gallery{session, recipe, train::GalleryOptions::from(config),
                           train::compute_device<typename Tuner::setup>(session)};
    const auto datasets = config::load_datasets(config.data_backend_config, config.image_defaults());
    Pictures pictures{session.comm(), datasets, recipe, data_options(session, config)};
    pictures.prepare();                                          // may take hours, and goes on where it was interrupted
    std::map<std::string, std::unique_ptr<Pictures>> evaluated;  // data sets with "dataset_type": "eval"
    for (const config::DatasetList& list : datasets.evaluated()) {
        auto& set = evaluated[list.images.front().id];
        set = std::make_unique<Pictures>(session.comm(), list, recipe, evaluation_options(session, config));
        set->prepare();
    }

    const auto options = train::options_from<Tuner>(config, pictures.micro_batches_per_epoch());
    Tuner trainer{session, model, options};
    gallery.follow(trainer);  // draws samples every so often
    for (const auto& [id, set] : evaluated) trainer.evaluate_every(config.evaluation_interval(), id, *set);
    trainer.report().title = family->title() + " on " + config.data_backend_config.string();
    train::record_model(session, trainer.folder(), config.model);  // for strata sample
    trainer.fit(pictures);  // and, once complete, leaves its weights: keys export_...
}

int main(int argc, char** argv) {
    // Reads --config FILE; every key of it is a flag as well: --learning_rate 1e-5. --help lists them.
    return strata::run<train::ConfigFor<Finetuner>>(argc, argv,
                                                    [](Session& session, const config::TrainerConfig& config) {
                                                        if (config.adapter.is_on())
                                                            finetune<LoraTuner>(session, config);
                                                        else
                                                            finetune<Finetuner>(session, config);
                                                    });
}
