// Pictures and those that belong to them: paired by name, in folders and tar files; what is left alone is named.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/made_tar.hpp"
#include "../../support/pictures.hpp"
#include "../../support/s3_server.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata::pictures::ConditioningKind;
using strata_test::plain_png;
using strata_test::thrown_by;
namespace config = strata::config;
namespace fs = std::filesystem;
using Both = Stores<strata::Setup<strata::Backend<strata::S3>>::backend::store>;

struct Pairs : testing::Test {
    strata_test::TemporaryFolder temporary;
    fs::path folder = temporary.path();
    config::DatasetList list;
    DiscoverOptions options;
    std::uint8_t colour = 0;

    Pairs() {
        config::ImageDataset& images = list.images.emplace_back();
        images.id = "photos";
        images.instance_data_dir = folder / "photos";
        images.caption_strategy = config::CaptionStrategy::filename;
        images.conditioning_data = {"edges"};
        add_conditioning("edges");
        for (const char* name : {"a.png", "sub/a.png", "sub/b.png"}) put("photos", name, 64, 48);
    }
    void add_conditioning(const std::string& id) {
        config::ImageDataset& set = list.conditioning.emplace_back();
        set.id = id;
        set.dataset_type = config::DatasetType::conditioning;
        set.instance_data_dir = folder / id;
    }
    void put(const std::string& set, const std::string& name, int width, int height) {
        strata::storage::write_file(folder / set / name, plain_png(width, height, ++colour, 0, 0),
                                    strata::storage::Durability::process_end);
    }
    [[nodiscard]] Collection discovered(const DiscoveryWatch& watch = {}) const {
        strata::comm::SelfComm comm;
        Both stores;
        return discover_all(comm, list, stores, {16, config::BucketMode::nearest, 2}, options, watch);
    }
};
using ConditioningPairs = Pairs;

TEST_F(ConditioningPairs, NamesBelowTheFoldersPairWhateverTheExtension) {
    put("edges", "a.webp", 64, 48);  // a file is what its first bytes say
    put("edges", "sub/a.png", 32, 24);
    put("edges", "sub/b.png", 640, 480);
    put("edges", "b.png", 64, 48);  // another folder's b is another picture
    list.conditioning[0].conditioning_type = config::ConditioningType::mask;
    std::vector<std::string> order;
    std::int64_t used = 0;
    DiscoveryWatch watch;
    watch.begins = [&](const config::ImageDataset& set) { order.push_back(set.id); };
    watch.paired = [&](const config::ImageDataset&, std::int64_t pictures) { used = pictures; };
    const Collection all = discovered(watch);
    EXPECT_EQ(order, (std::vector<std::string>{"edges", "photos"}));
    EXPECT_EQ(used, 3);
    const auto& samples = all.sets()[0].samples;
    ASSERT_EQ(samples.size(), 3U);
    std::vector<std::string> partners;
    for (const Sample& sample : samples) {
        ASSERT_EQ(sample.conditioning.size(), 1U);
        EXPECT_EQ(sample.conditioning[0].kind, ConditioningKind::mask);
        EXPECT_GT(sample.conditioning[0].bytes, 0U);
        EXPECT_NE(sample.conditioning[0].version, "");
        partners.push_back(sample.conditioning[0].key);
    }
    EXPECT_EQ(partners, (std::vector<std::string>{"a.webp", "sub/a.png", "sub/b.png"}));
    EXPECT_EQ(samples[1].conditioning[0].size, (strata::pictures::PictureSize{32, 24}));
    EXPECT_EQ(all.sets().size(), 1U) << "what conditions is not trained on";
    const Report report = all.report();
    EXPECT_EQ(report.found, 3);
    ASSERT_EQ(report.notes.size(), 2U);
    EXPECT_EQ(report.notes[0], "conditioning data set 'edges': 4 pictures found, 4 can be used");
    EXPECT_EQ(report.notes[1],
              "conditioning data set 'edges': 1 of 4 pictures belong to no picture that is used; the first is b.png");
}

TEST_F(ConditioningPairs, PicturesWithoutOneAreSkippedCountedAndNamed) {
    put("edges", "sub/a.png", 64, 48);
    add_conditioning("masks");
    list.images[0].conditioning_data = {"masks", "edges"};
    for (const char* name : {"sub/a.png", "sub/b.png"}) put("masks", name, 64, 48);
    strata::storage::write_file(folder / "edges" / "sub" / "b.png", std::string{"no picture"});
    const Collection all = discovered();
    ASSERT_EQ(all.sets()[0].samples.size(), 1U);
    const auto& partners = all.sets()[0].samples[0].conditioning;
    ASSERT_EQ(partners.size(), 2U);
    EXPECT_EQ(partners[0].set, 1U) << "in the order of conditioning_data";
    EXPECT_EQ(partners[1].set, 0U);
    const Report report = all.report();
    EXPECT_EQ(report.count(SkipReason::unpaired), 2);
    const auto lines = report.lines();
    EXPECT_EQ(lines[1], "  2 skipped, without a conditioning picture: " + (folder / "photos/a.png").string() +
                            " (no 'a' in data set 'masks'), " + (folder / "photos/sub/b.png").string() +
                            " (no 'sub/b' in data set 'edges')");
}

TEST_F(ConditioningPairs, ADataSetWithoutAnyPairIsOneError) {
    put("edges", "other.png", 64, 48);
    const auto thrown = thrown_by([&] { (void)discovered(); });
    EXPECT_EQ(thrown.code, Errc::no_pairs);
    EXPECT_TRUE(thrown.says("data set 'photos': none of its 3 pictures")) << thrown.message;
    EXPECT_TRUE(thrown.says("'a' was looked for in '" + (folder / "edges").string())) << thrown.message;
    EXPECT_TRUE(thrown.says("which has 'other.png' first")) << thrown.message;
    fs::remove_all(folder / "edges");
    EXPECT_EQ(thrown_by([&] { (void)discovered(); }).code, Errc::no_samples);
}

TEST_F(ConditioningPairs, OfTwoOfANameThatWithTheExtensionIsMeantOrItIsAnError) {
    for (const char* name : {"a.png", "a.jpg", "sub/a.png", "sub/b.png"}) put("edges", name, 64, 48);
    EXPECT_EQ(discovered().sets()[0].samples[0].conditioning[0].key, "a.png");
    fs::rename(folder / "edges/a.png", folder / "edges/a.webp");
    const auto thrown = thrown_by([&] { (void)discovered(); });
    EXPECT_EQ(thrown.code, Errc::ambiguous_pair);
    EXPECT_TRUE(
        thrown.says("picture 'a.png' has two conditioning pictures of its name in data set 'edges': 'a.jpg' and "
                    "'a.webp'"))
        << thrown.message;
}

TEST_F(ConditioningPairs, OtherRatiosThanRoundingMakesAreANote) {
    put("edges", "a.png", 64, 64);
    put("edges", "sub/a.png", 13, 10);  // 4 to 3, in whole pixels
    put("edges", "sub/b.png", 128, 96);
    const Report report = discovered().report();
    int stretched = 0;
    for (const std::string& note : report.notes)
        if (note.find("stretched") != std::string::npos) {
            ++stretched;
            EXPECT_EQ(note,
                      "data set 'photos': conditioning pictures of 'edges' with another aspect ratio than their "
                      "pictures, to which they are stretched: 1; the first is of a.png (64 x 48, and 64 x 64)");
        }
    EXPECT_EQ(stretched, 1);
}

TEST_F(ConditioningPairs, LimitsOfSizeAndCaptionsAreForThePicturesAlone) {
    list.images[0].resolution = 64;
    list.images[0].minimum_image_size = 50;
    for (const char* name : {"a.png", "sub/a.png", "sub/b.png"}) put("edges", name, 8, 6);
    put("edges", "-_.png", 400, 10);
    const Report report = discovered().report();
    EXPECT_EQ(report.used, 3);
    EXPECT_TRUE(report.skipped.empty());
}

TEST_F(ConditioningPairs, AnIndexKnowsThemAtTheNextStart) {
    options.index_folder = folder / "index";
    for (const char* name : {"a.png", "sub/a.png", "sub/b.png"}) put("edges", name, 64, 48);
    (void)discovered();
    std::int64_t examined = 0;
    DiscoveryWatch watch;
    watch.found = [&](const config::ImageDataset&, const std::string&, const Discovered& found) {
        examined += found.examined;
    };
    (void)discovered(watch);
    EXPECT_EQ(examined, 0);
}

TEST_F(ConditioningPairs, EvaluationSetsHaveTheirsToo) {
    for (const char* name : {"a.png", "sub/a.png", "sub/b.png"}) put("edges", name, 64, 48);
    list.eval = list.images;
    list.eval[0].id = "held";
    list.eval[0].instance_data_dir = folder / "held";
    put("held", "sub/b.png", 64, 48);
    put("held", "sub/c.png", 64, 48);
    bool has_line = false;
    for (const std::string& note : discovered().report().notes)
        has_line |= note.starts_with("eval data set 'held': 2 pictures found, 1 can be used; skipped: ") &&
                    note.ends_with("sub/c.png (without a conditioning picture)");
    EXPECT_TRUE(has_line);
}

TEST_F(ConditioningPairs, MembersOfTarFilesOfOneNamePair) {
    const auto png = [&](int width) {
        const auto bytes = plain_png(width, 48, ++colour, 0, 0);
        return std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    };
    strata::storage::write_file(folder / "tars" / "train-0.tar", strata_test::made_tar({{"7.png", png(64)}}));
    strata::storage::write_file(folder / "edge tars" / "train-0.tar", strata_test::made_tar({{"7.webp", png(32)}}));
    list.images[0].instance_data_dir = folder / "tars";
    list.conditioning[0].instance_data_dir = folder / "edge tars";
    list.images[0].shards = list.conditioning[0].shards = "train-*.tar";
    const Collection all = discovered();
    ASSERT_EQ(all.sets()[0].samples.size(), 1U);
    EXPECT_EQ(all.sets()[0].samples[0].conditioning[0].key, "train-0/7.webp");
}

/// Pictures in one bucket, what belongs to them in another: pairs are found by listing, and versions are those of the store.
TEST_F(ConditioningPairs, LieInBucketsToo) {
    const strata_test::S3Server server;
    if (server.is_missing()) GTEST_SKIP() << server.why_not();
    ASSERT_EQ(server.why_not(), "");
    const auto move_to_bucket = [&](config::ImageDataset& set, const std::string& bucket) {
        const strata::s3::S3Options made = server.bucket(bucket);
        set.type = config::StoreType::aws;
        set.instance_data_dir.clear();
        set.s3.bucket = bucket;
        set.s3.endpoint_url = made.endpoint_url;
        set.s3.access_key_id = made.access_key_id;
        set.s3.secret_access_key = made.secret_access_key;
        set.s3.data_prefix = "2024";
        return Buckets{}.open(set.s3);
    };
    {
        const auto photos = move_to_bucket(list.images[0], "photos");
        for (const char* name : {"a.png", "sub/ü b.png", "alone.png"}) photos.put(name, plain_png(64, 48, 1, 0, 0));
        const auto edges = move_to_bucket(list.conditioning[0], "edges");
        for (const char* name : {"a.png", "sub/ü b.webp"}) edges.put(name, plain_png(32, 24, 2, 0, 0));
    }
    const Collection all = discovered();
    const auto& samples = all.sets()[0].samples;
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[1].key, "sub/ü b.png");
    ASSERT_EQ(samples[1].conditioning.size(), 1U);
    EXPECT_EQ(samples[1].conditioning[0].key, "sub/ü b.webp");
    EXPECT_EQ(samples[1].conditioning[0].size, (strata::pictures::PictureSize{32, 24}));
    EXPECT_NE(samples[1].conditioning[0].version, "");
    EXPECT_EQ(all.report().count(SkipReason::unpaired), 1);
}

}  // namespace
