// bench/real_data/ours.cpp - one run over real photos, as a program of a user's own; peer.py makes the same run in
// PyTorch.
//
//   strata_bench_real_data --config FILE --case sd15-full|sd15-lora|flux-full|flux-lora --taesd FOLDER --output FOLDER
//
// Photos come through data sets, aspect buckets and caches, latents from the TAESD family, captions from HashedText; a
// Trainer steps. In the output folder it leaves start.safetensors (the weights before the first step),
// steps.safetensors (batches, noise and levels of each step) and losses.txt, a line a step. run.sh writes the
// configuration and compares.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <torch/torch.h>

#include <strata/adapters/lora.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/models/autoencoder_tiny.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/trained_autoencoder.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/strata.hpp>
#include <strata/train/config_for.hpp>
#include <strata/train/options_from_config.hpp>
#include <strata/train/seed.hpp>

#include "models.hpp"

namespace {

using namespace strata;

using Tiny = models::TrainedAutoencoder<models::AutoencoderTiny>;
using Recipe = models::FluxRecipe<Tiny, models::HashedText>;
template <class Model>
using FullRank = Trainer<Model, ZeroStage<2>, OffloadTarget<Cpu>>;
template <class Model>
using Tuned = Trainer<Model, ZeroStage<2>, OffloadTarget<Cpu>, Adapter<Lora>>;

struct Flags {
    std::string which = "sd15-full";
    std::filesystem::path taesd;
    static void describe(auto& option) {
        option("case", &Flags::which, "sd15 or flux, -full or -lora");
        option("taesd", &Flags::taesd, "Folder of the TAESD family's weights, as they are published");
    }
};

/// The encoder of one of the family; its decoder keeps random weights, which nobody asks.
Tiny encoder_of(const std::filesystem::path& folder, const std::string& name) {
    const torch::NoGradGuard no_gradient;
    const auto model = std::make_shared<models::AutoencoderTiny>(models::autoencoder_tiny_named(name));
    const storage::SafetensorsFile file{folder / (name + "_encoder.safetensors")};
    auto parameters = model->named_parameters();
    for (const storage::SafetensorsEntry& entry : file.header().tensors) {
        const at::Tensor values = at::empty(entry.shape, entry.dtype == storage::Dtype::bf16  ? at::kBFloat16
                                                         : entry.dtype == storage::Dtype::f16 ? at::kHalf
                                                                                              : at::kFloat);
        file.read(entry, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()});
        parameters[models::AutoencoderTiny::name_of_upstream("encoder", entry.name)].copy_(values);
    }
    return Tiny{model, name};
}

template <class Model, class OneTrainer>
void run(Session& session, const config::TrainerConfig& config, const Flags& flags) {
    session.output();
    const auto recipe = std::make_shared<const Recipe>(
        encoder_of(flags.taesd, flags.which.starts_with("flux") ? "taef1" : "taesd"), models::HashedText{});
    const auto datasets = config::load_datasets(config.data_backend_config, config.image_defaults());
    data::PictureSource<Recipe, typename OneTrainer::setup::backend::store> pictures{session.comm(), datasets, recipe,
                                                                                     data::SourceOptions::from(config)};
    pictures.prepare();

    const auto options = train::options_from<OneTrainer>(config, pictures.micro_batches_per_epoch());
    train::seed_generators(options.seed);
    const auto record = std::make_shared<bench::Record>();
    record->seed = options.seed;
    OneTrainer trainer{session, std::make_shared<Model>(record), options};
    const auto write = [&](const char* name, std::vector<weights::SavedTensor> tensors) {
        weights::save_weights(session.comm(), session.output() / name, std::move(tensors), [](const at::Tensor&) {});
    };
    std::vector<weights::SavedTensor> start;
    for (const auto& item : trainer.model().named_parameters()) start.push_back({item.key(), item.value()});
    write("start.safetensors", std::move(start));
    trainer.fit(pictures);

    write("steps.safetensors", record->tensors);
    std::ofstream lines{session.output() / "losses.txt"};
    lines.precision(9);
    for (const double loss : record->losses) lines << loss << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    using Config = train::ConfigFor<FullRank<bench::RecordedUnet>>;
    return strata::run<Config, Flags>(argc, argv, [](Session& session, const Config& config, const Flags& flags) {
        const auto run_model = [&]<class Model>(Model*) {
            if (flags.which.ends_with("-lora"))
                run<Model, Tuned<Model>>(session, config, flags);
            else
                run<Model, FullRank<Model>>(session, config, flags);
        };
        if (flags.which.starts_with("flux"))
            run_model(static_cast<bench::RecordedFlux*>(nullptr));
        else
            run_model(static_cast<bench::RecordedUnet*>(nullptr));
    });
}
