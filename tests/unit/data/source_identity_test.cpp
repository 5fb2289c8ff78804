// What a checkpoint knows a source by: the same for a copy in another place, another for everything that batches follow from.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/fake_encoders.hpp"
#include "../../support/made_files.hpp"
#include "../../support/pictures.hpp"
#include "../../support/prepared.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::data;
using Facts = std::vector<std::pair<std::string, std::string>>;
using Source = PictureSource<strata_test::FakeRecipe, strata::Local>;

struct Pictures {
    strata_test::TemporaryFolder folder;
    std::filesystem::path data = folder.path() / "data";
    std::shared_ptr<strata_test::MeanCodec> codec = std::make_shared<strata_test::MeanCodec>();
    std::shared_ptr<strata_test::LengthText> text = std::make_shared<strata_test::LengthText>();
    SourceOptions options;
    strata::config::ImageDataset settings;

    Pictures() {
        for (int i = 0; i < 6; ++i) {
            const std::string stem = "p" + std::to_string(i);
            auto png = strata_test::plain_png(64, 64, static_cast<std::uint8_t>(i * 40), 0, 0);
            png.resize(400);  // all of one size; what follows the last chunk is not read
            strata::storage::write_file(data / (stem + ".png"), png);
            strata::storage::write_file(data / (stem + ".txt"), std::string_view{"a caption"});
        }
        options.train_batch_size = 2;
        options.aspect_bucket_alignment = 16;
        options.threads = 1;
        settings.id = "pictures";
        settings.text_embeds = "text";
        settings.resolution = 64;
    }
    [[nodiscard]] Facts identity() {
        strata::config::DatasetList list;
        settings.instance_data_dir = data;
        settings.cache_dir_vae = folder.path() / "vae";
        list.images.push_back(settings);
        strata::config::TextEmbeds embeds;
        embeds.id = "text";
        embeds.cache_dir = folder.path() / "text";
        list.text_embeds.push_back(embeds);
        static strata::comm::SelfComm comm;  // outlives every source
        return strata_test::prepared<Source>(comm, list, codec, text, options)->identity();
    }
};

TEST(SourceIdentity, NamesEncodersSeedAndEveryDataSet) {
    Pictures pictures;
    const Facts facts = pictures.identity();
    ASSERT_EQ(facts.size(), 5U);
    EXPECT_EQ(facts[0], (std::pair<std::string, std::string>{"autoencoder", "mean"}));
    EXPECT_EQ(facts[1], (std::pair<std::string, std::string>{"text encoder", "length"}));
    EXPECT_EQ(facts[2], (std::pair<std::string, std::string>{"seed of the samples' order", "42"}));
    EXPECT_EQ(facts[3], (std::pair<std::string, std::string>{"caption_dropout_probability", "0.1"}));
    EXPECT_EQ(facts[4].first, "data set 'pictures'");
    EXPECT_TRUE(facts[4].second.starts_with("6 samples, repeats 0, probability 1, contents ")) << facts[4].second;
}

TEST(SourceIdentity, ACopyInAnotherPlaceAndAnotherCutOfStepsAreTheSame) {
    Pictures pictures;
    const Facts before = pictures.identity();
    std::filesystem::copy(pictures.data, pictures.folder.path() / "moved");
    pictures.data = pictures.folder.path() / "moved";
    EXPECT_EQ(pictures.identity(), before);
    pictures.options.train_batch_size = 1;
    pictures.options.gradient_accumulation_steps = 3;
    EXPECT_EQ(pictures.identity(), before) << "a trainer compares these";
}

/// Replaces a picture by one of the same size in bytes, with the date of the first.
void replace_unseen(const std::filesystem::path& file, std::uint8_t red) {
    const auto date = std::filesystem::last_write_time(file);
    const auto bytes = std::filesystem::file_size(file);
    auto png = strata_test::plain_png(64, 64, red, 1, 2);
    png.resize(bytes);  // what follows the last chunk is not read
    strata::storage::write_file(file, png);
    std::filesystem::last_write_time(file, date);
}

TEST(SourceIdentity, EverythingThatBatchesFollowFromMakesAnother) {
    const std::vector<std::function<void(Pictures&)>> changes{
        [](Pictures& p) { p.options.seed = 7; },
        [](Pictures& p) { p.options.caption_dropout_probability = 0; },
        [](Pictures& p) { p.codec->name = "other"; },
        [](Pictures& p) { p.text->name = "other"; },
        [](Pictures& p) { p.settings.resolution = 32; },
        [](Pictures& p) { p.settings.repeats = 1; },
        [](Pictures& p) { p.options.aspect_bucket_alignment = 32; },
        [](Pictures& p) { strata::storage::write_file(p.data / "p0.txt", std::string_view{"another"}); },
        [](Pictures& p) { std::filesystem::remove(p.data / "p0.png"); },
        [](Pictures& p) { std::filesystem::rename(p.data / "p0.png", p.data / "q.png"); },
        [](Pictures& p) { strata::storage::write_file(p.data / "p0.png", strata_test::plain_png(80, 64, 0, 0, 0)); },
        [](Pictures& p) { replace_unseen(p.data / "p0.png", 77); },
    };
    Pictures plain;
    const Facts before = plain.identity();
    for (std::size_t i = 0; i < changes.size(); ++i) {
        Pictures pictures;
        changes[i](pictures);
        const Facts after = pictures.identity();
        ASSERT_EQ(after.size(), before.size());
        int differ = 0;
        for (std::size_t j = 0; j < after.size(); ++j) differ += after[j] != before[j] ? 1 : 0;
        EXPECT_EQ(differ, 1) << i;
    }
}

}  // namespace
