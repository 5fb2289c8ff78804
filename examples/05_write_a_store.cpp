// 05_write_a_store - a store of your own: data sets and caches in one file each (one_file_store.hpp).
//
// Puts some pictures with captions into such a file, tries the store's promises, and trains on the pictures; latents and embedded
// captions are kept in files of the same kind:
//   ./05_write_a_store --output /tmp/store --fresh

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/data/picture_source.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/pictures/png.hpp>
#include <strata/strata.hpp>
#include <strata/testing/object_store_conformance.hpp>

#include "one_file_store.hpp"

using namespace strata;

//! [compose]
using MyTrainer = Trainer<models::SmallFlux, ZeroStage<1>, Backend<OneFile>>;
using Pictures = data::PictureSource<models::SmallFlux::Recipe, MyTrainer::setup::backend::store>;
//! [compose]

/// Squares of a colour each, and what to call them.
void put_pictures(const OneFile& store) {
    for (int i = 0; i < 16; ++i) {
        std::vector<std::uint8_t> rgb(64 * 64 * 3);
        for (std::size_t at = 0; at < rgb.size(); ++at) rgb[at] = static_cast<std::uint8_t>(at % 3 == 0 ? 16 * i : 100);
        const std::string name = "square" + std::to_string(i);
        const std::string caption = "A square of redness " + std::to_string(i) + ".";
        store.put(name + ".png", pictures::encode_png(64, 64, rgb));
        store.put(name + ".txt", std::as_bytes(std::span{caption}));
    }
}

//! [datasets]
config::DatasetList dataset_list(const std::filesystem::path& folder) {
    config::ImageDataset squares;
    squares.id = "squares";
    squares.instance_data_dir = folder / "squares";  // OneFile{this} is opened
    squares.cache_dir_vae = folder / "latents";      // and so are the caches
    squares.text_embeds = "captions";
    squares.resolution = 64;
    config::TextEmbeds captions;
    captions.id = "captions";
    captions.cache_dir = folder / "captions";
    config::DatasetList list;
    list.images = {squares};
    list.text_embeds = {captions};
    return list;
}
//! [datasets]

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        const auto folder = session.output() / "data";
        if (session.rank() == 0) {
            put_pictures(OneFile{folder / "squares"});
            const auto broken = testing::object_store_failures(OneFile{folder / "tried"}, {.large_bytes = 1U << 20});
            for (const std::string& promise : broken) std::printf("broken: %s\n", promise.c_str());
            if (broken.empty()) std::printf("every promise kept\n");
        }
        session.comm().barrier();

        data::SourceOptions options;
        options.train_batch_size = 2;
        options.aspect_bucket_alignment = 32;
        Pictures pictures{session.comm(), dataset_list(folder), std::make_shared<const models::SmallFlux::Recipe>(),
                          options};
        MyTrainer trainer{session,
                          models::SmallFlux{{.heads = 1, .double_blocks = 1, .single_blocks = 1}},
                          {.max_steps = 10, .schedule = {.lr = 1e-3}}};
        const FitResult result = trainer.fit(pictures);
        if (session.rank() == 0)
            std::printf("loss %.4f after %lld steps; %zu latents and %zu captions in one file each\n", result.loss,
                        static_cast<long long>(result.step), OneFile{folder / "latents"}.list("").size(),
                        OneFile{folder / "captions"}.list("").size());
    });
}
