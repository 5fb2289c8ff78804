// 08_write_a_recipe - a model of your own on captioned pictures: what it is fed is its recipe (pixel_recipe.hpp).
//
// Makes some pictures with captions, tries the recipe's promises, caches what it encodes, and trains:
//   ./08_write_a_recipe --output /tmp/recipe --fresh

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/data/picture_source.hpp>
#include <strata/pictures/png.hpp>
#include <strata/strata.hpp>
#include <strata/testing/recipe_conformance.hpp>

#include "pixel_recipe.hpp"

using namespace strata;

//! [model]
/// Says what noise is in a picture, given its caption.
struct Painter : torch::nn::Module {
    using Recipe = PixelRecipe;
    using Batch = Recipe::Batch;
    torch::nn::Conv2d in{torch::nn::Conv2dOptions(3, 16, 3).padding(1)};
    torch::nn::Conv2d out{torch::nn::Conv2dOptions(16, 3, 3).padding(1)};
    torch::nn::Linear caption{26, 16};
    Painter() {
        register_module("in", in);
        register_module("out", out);
        register_module("caption", caption);
    }
    torch::Tensor loss(const Batch& batch) {
        const auto noise = torch::randn_like(batch.pixels_BCHW);
        const auto said = caption(batch.letters_BL).unsqueeze(-1).unsqueeze(-1);
        return torch::mse_loss(out(torch::silu(in(batch.pixels_BCHW + noise) + said)), noise);
    }
};
//! [model]

//! [compose]
using MyTrainer = Trainer<Painter, ZeroStage<1>>;
using Pictures = data::PictureSource<Painter::Recipe, MyTrainer::setup::backend::store>;
//! [compose]

/// Squares of a colour each, and what to call them.
void put_pictures(const std::filesystem::path& folder) {
    const Local store{folder};
    for (int i = 0; i < 16; ++i) {
        std::vector<std::uint8_t> rgb(64 * 64 * 3);
        for (std::size_t at = 0; at < rgb.size(); ++at) rgb[at] = static_cast<std::uint8_t>(at % 3 == 0 ? 16 * i : 100);
        const std::string name = "square" + std::to_string(i);
        const std::string caption = "a square of redness " + std::string(static_cast<std::size_t>(i), 'r');
        store.put(name + ".png", pictures::encode_png(64, 64, rgb));
        store.put(name + ".txt", std::as_bytes(std::span{caption}));
    }
}

config::DatasetList data_sets(const std::filesystem::path& folder) {
    config::ImageDataset squares;
    squares.id = "squares";
    squares.instance_data_dir = folder / "squares";
    squares.cache_dir_vae = folder / "pixels";
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

int main(int argc, char** argv) {
    return strata::run(argc, argv, [](Session& session) {
        const auto folder = session.output() / "data";
        if (session.rank() == 0) {
            put_pictures(folder / "squares");
            const auto broken = testing::recipe_failures(PixelRecipe{});
            for (const std::string& promise : broken) std::printf("broken: %s\n", promise.c_str());
            if (broken.empty()) std::printf("every promise kept\n");
        }
        session.comm().barrier();

        //! [train]
        data::SourceOptions options;
        options.train_batch_size = 2;
        options.aspect_bucket_alignment = 16;
        Pictures pictures{session.comm(), data_sets(folder), std::make_shared<const PixelRecipe>(), options};
        pictures
            .prepare();  // finds and encodes pictures and captions, or goes on with that; encoders are gone behind it
        MyTrainer trainer{session, Painter{}, {.max_steps = 40, .schedule = {.lr = 1e-2}}};
        const FitResult result = trainer.fit(pictures);
        //! [train]
        if (session.rank() == 0)
            std::printf("loss %.4f after %lld steps on %lld pictures\n", result.loss,
                        static_cast<long long>(result.step), static_cast<long long>(pictures.report().used));
    });
}
