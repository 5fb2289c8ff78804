// A model that is shown a picture and a mask beside the noise trains on pairs, on any number of ranks.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/data/picture_source.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/strata.hpp>

#include "../support/pair_recipe.hpp"
#include "../support/paired_sets.hpp"
#include "../support/pictures.hpp"
#include "output_folder.hpp"

namespace {

using namespace strata;
using strata_test::PairRecipe;
using strata_test::plain_png;

/// Paints what the mask covers: from the picture to begin with, which is another colour.
struct Inpainter : torch::nn::Module {
    using Recipe = PairRecipe;
    using Batch = Recipe::Batch;
    torch::nn::Conv2d in{torch::nn::Conv2dOptions(4, 8, 1)};
    torch::nn::Conv2d out{torch::nn::Conv2dOptions(8, 3, 1)};
    Inpainter() {
        register_module("in", in);
        register_module("out", out);
    }
    torch::Tensor loss(const Batch& batch) {
        const auto painted = out(torch::silu(in(torch::cat({batch.hint_BCHW, batch.mask_B1HW}, 1))));
        const auto shown = batch.hint_BCHW * (1 - batch.mask_B1HW) + painted * batch.mask_B1HW;
        return torch::mse_loss(shown, batch.pixels_BCHW);
    }
};

struct Conditioning : strata_test::OutputFolder {
    /// Pictures of one colour, the same without red, and masks that cover all.
    void put_pictures() const {
        for (int i = 0; i < 12; ++i) {
            const std::string name = "p" + std::to_string(i) + ".png";
            const auto put = [&](const std::string& set, const std::vector<std::byte>& bytes) {
                storage::write_file(root / set / name, bytes, storage::Durability::process_end);
            };
            const auto green = static_cast<std::uint8_t>(20 * i);
            put("photos", plain_png(32, 32, static_cast<std::uint8_t>(255 - 20 * i), green, 128));
            put("hints", plain_png(48, 48, 0, green, 128));
            put("masks", plain_png(16, 16, 255, 255, 255));
        }
    }
    [[nodiscard]] config::DatasetList list() const { return strata_test::paired_sets(root, 32); }
};

TEST_F(Conditioning, AModelLearnsFromPairsOnAllRanks) {
    if (comm.rank() == 0) put_pictures();
    comm.barrier();
    const std::string output = (root / "run").string();
    std::vector<std::string> words{"test", "--output", output};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    FitResult result;
    std::vector<std::pair<std::string, std::string>> identity;
    {
        Session session{comm, static_cast<int>(argv.size()), argv.data()};
        torch::manual_seed(1);
        using Painting = Trainer<Inpainter, ZeroStage<1>>;
        using Pairs = data::PictureSource<Inpainter::Recipe, Painting::setup::backend::store>;
        data::SourceOptions options;
        options.train_batch_size = 12 / static_cast<std::int64_t>(comm.world());
        options.aspect_bucket_alignment = 16;
        options.threads = 1;
        options.index_folder = root / "index";
        Pairs pairs{session.comm(), list(), std::make_shared<const PairRecipe>(), options};
        pairs.prepare();
        EXPECT_EQ(pairs.report().latents.made, 12);
        for (const datasets::Sample& sample : pairs.collection().sets()[0].samples) {
            ASSERT_EQ(sample.conditioning.size(), 2U);
            for (const auto& part : sample.conditioning) EXPECT_TRUE(part.content) << part.key << " is known to all";
        }
        identity = pairs.identity();
        const auto batch = pairs.next();
        EXPECT_TRUE(batch.mask_B1HW.eq(1).all().item<bool>());
        EXPECT_TRUE(batch.hint_BCHW.select(1, 1).allclose(batch.pixels_BCHW.select(1, 1), 1e-4, 1e-4));
        Painting trainer{session, Inpainter{}, {.max_steps = 150, .schedule = {.lr = 3e-2}}};
        result = trainer.fit(pairs);
    }
    (void)testing::internal::GetCapturedStdout();
    comm.barrier();  // rank 0 writes them
    const auto metrics = train::read_metrics(root / "run" / "metrics.jsonl");
    ASSERT_FALSE(metrics.empty());
    EXPECT_EQ(result.step, 150);
    EXPECT_LT(result.loss, metrics.front().loss / 10) << "red follows from green, which only the hint shows";
    const std::vector<std::string> all = comm.all_gather_varied(identity.back().second);
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 1U);
}

}  // namespace
