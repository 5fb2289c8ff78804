#include <atomic>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/pictures/formats.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/made_files.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata::Local;
using strata::storage::write_file;
using strata_test::plain_png;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

strata::config::ImageDataset settings() {
    strata::config::ImageDataset dataset;
    dataset.id = "set";
    dataset.minimum_image_size = 32;
    return dataset;
}
Discovered discover_in(const TemporaryFolder& folder, const strata::config::ImageDataset& dataset) {
    strata::comm::SelfComm comm;
    return discover(comm, Local{folder.path()}, dataset);
}

TEST(Discovery, ReadsSizesAndCaptions) {
    const TemporaryFolder folder;
    write_file(folder.path() / "b" / "two.PNG", plain_png(40, 50, 1, 2, 3));
    write_file(folder.path() / "b" / "two.txt", "\r\n  A blue car. \r\nde.utf8=Ein blaues Auto.\n");
    write_file(folder.path() / "one.png", plain_png(60, 50, 1, 2, 3));
    write_file(folder.path() / "one.txt", "A star");
    write_file(folder.path() / "notes.json", "{}");
    const Discovered found = discover_in(folder, settings());
    EXPECT_EQ(found.found, 2);
    EXPECT_TRUE(found.skipped.empty());
    ASSERT_EQ(found.samples.size(), 2U);
    EXPECT_EQ(found.samples[0].key, "b/two.PNG");
    EXPECT_EQ(found.samples[0].caption, "A blue car. \r\nde.utf8=Ein blaues Auto.");
    EXPECT_EQ(found.samples[0].size, (PictureSize{40, 50}));
    EXPECT_EQ(found.samples[1].caption, "A star");
    EXPECT_FALSE(found.samples[1].version.empty());
}

TEST(Discovery, NamesWhatItSkipsWithTheReason) {
    const TemporaryFolder folder;
    const auto png = plain_png(40, 40, 1, 2, 3);
    const auto add = [&](const std::string& stem, const std::vector<std::byte>& bytes, std::string_view caption) {
        write_file(folder.path() / (stem + ".png"), bytes);
        if (!caption.empty()) write_file(folder.path() / (stem + ".txt"), caption);
    };
    add("good", png, "A caption");
    add("no_file", png, "");
    add("blank", png, " \n\t\n");
    add("small", plain_png(31, 31, 1, 2, 3), "A caption");
    add("wide", plain_png(400, 40, 1, 2, 3), "A caption");
    add("short", {png.begin(), png.begin() + 20}, "A caption");
    add("empty", {}, "A caption");
    auto damaged = png;
    damaged[17] ^= std::byte{1};
    add("damaged", damaged, "A caption");
    add("huge", strata_test::webp_file(strata_test::vp8x_chunk(0, 1 << 20, 1 << 10)), "A caption");
    write_file(folder.path() / "really.png", "8BPS, whatever its name says");
    write_file(folder.path() / "photo.jpg", "\xFF\xD8\xFF jpeg");
    const Discovered found = discover_in(folder, settings());
    std::map<std::string, SkipReason> reasons;
    for (const Skipped& one : found.skipped) {
        EXPECT_EQ(one.dataset, "set");
        reasons[std::filesystem::path{one.place}.filename()] = one.reason;
    }
    EXPECT_EQ(found.found, 11);
    EXPECT_EQ(found.samples.size(), 1U);
    EXPECT_EQ(reasons, (std::map<std::string, SkipReason>{{"blank.png", SkipReason::no_caption},
                                                          {"damaged.png", SkipReason::unreadable},
                                                          {"empty.png", SkipReason::unreadable},
                                                          {"huge.png", SkipReason::unreadable},
                                                          {"no_file.png", SkipReason::no_caption},
                                                          {"photo.jpg", SkipReason::unreadable},
                                                          {"really.png", SkipReason::unsupported_format},
                                                          {"short.png", SkipReason::unreadable},
                                                          {"small.png", SkipReason::below_minimum_size},
                                                          {"wide.png", SkipReason::outside_aspect_ratio}}));
}

TEST(Discovery, EveryFormatIsFoundByItsBytesAndAsItIsSeen) {
    const TemporaryFolder folder;
    const auto jpeg = strata_test::make_jpeg({}, 60, 40).file;
    write_file(folder.path() / "a.jpg", jpeg);
    write_file(folder.path() / "b.JPEG",
               strata_test::inserted(jpeg, 2, strata_test::exif_segment(strata_test::exif(6))));
    write_file(folder.path() / "c.webp", strata_test::make_webp(strata_test::soft_picture(60, 40), false));
    write_file(folder.path() / "d.png", strata_test::make_webp(strata_test::soft_picture(50, 40), true));
    write_file(folder.path() / "e.jpg", plain_png(45, 40, 1, 2, 3));
    auto dataset = settings();
    dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    const Discovered found = discover_in(folder, dataset);
    EXPECT_TRUE(found.skipped.empty());
    ASSERT_EQ(found.samples.size(), 5U);
    EXPECT_EQ(found.samples[0].size, (PictureSize{60, 40}));
    EXPECT_EQ(found.samples[1].size, (PictureSize{40, 60}));
    EXPECT_EQ(found.samples[2].size, (PictureSize{60, 40}));
    EXPECT_EQ(found.samples[3].size, (PictureSize{50, 40}));
    EXPECT_EQ(found.samples[4].size, (PictureSize{45, 40}));
}

TEST(Discovery, OfLargeFilesOnlyTheBeginningIsRead) {
    // An object store that counts: what is read of 8 MB of pictures is a window each.
    struct Counting : Local {
        using Local::Local;
        std::shared_ptr<std::atomic<std::uint64_t>> bytes = std::make_shared<std::atomic<std::uint64_t>>(0);
        [[nodiscard]] std::vector<std::byte> get(std::string_view) const {
            throw std::logic_error{"a whole file is read"};
        }
        [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                       std::uint64_t length) const {
            auto range = Local::get_range(key, offset, length);
            *bytes += range.size();
            return range;
        }
    };
    const TemporaryFolder folder;
    auto jpeg = strata_test::make_jpeg({}, 60, 40).file;
    jpeg.resize(2 << 20);
    for (const char* name : {"a.jpg", "b.jpg", "c.jpg", "d.jpg"}) write_file(folder.path() / name, jpeg);
    auto dataset = settings();
    dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    strata::comm::SelfComm comm;
    const Counting store{folder.path()};
    EXPECT_EQ(discover(comm, store, dataset).samples.size(), 4U);
    EXPECT_EQ(*store.bytes, 4U * 4096U);
}

TEST(Discovery, AStoreThatCannotBeReachedIsNoReasonToSkipPictures) {
    struct Unreachable : Local {
        using Local::Local;
        [[nodiscard]] std::vector<std::byte> get_range(std::string_view, std::uint64_t, std::uint64_t) const {
            throw strata::Error{Errc::transfer_failed, "the connection broke", "try again"};
        }
    };
    const TemporaryFolder folder;
    write_file(folder.path() / "a.png", plain_png(40, 40, 1, 2, 3));
    auto dataset = settings();
    dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    strata::comm::SelfComm comm;
    const Unreachable store{folder.path()};
    EXPECT_EQ(strata_test::thrown_by([&] { (void)discover(comm, store, dataset); }).code, Errc::transfer_failed);
}

TEST(Discovery, CaptionsCanComeFromNamesOrOnePrompt) {
    const TemporaryFolder folder;
    write_file(folder.path() / "x" / "red_fire-truck.png", plain_png(40, 40, 1, 2, 3));
    auto dataset = settings();
    dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    EXPECT_EQ(discover_in(folder, dataset).samples.at(0).caption, "red fire truck");
    dataset.caption_strategy = strata::config::CaptionStrategy::instanceprompt;
    dataset.instance_prompt = "a stamp";
    EXPECT_EQ(discover_in(folder, dataset).samples.at(0).caption, "a stamp");
}

TEST(Discovery, AMissingOrEmptyFolderIsNoSamples) {
    const TemporaryFolder folder;
    strata::comm::SelfComm comm;
    for (const char* name : {"", "missing"}) {
        const auto error = thrown_by([&] { (void)discover(comm, Local{folder.path() / name}, settings()); });
        EXPECT_EQ(error.code, Errc::no_samples);
        EXPECT_TRUE(error.says(folder.path().string())) << error.message;
    }
}

TEST(Discovery, NamesThatAreNoUtf8ArePictureNamesToo) {
    const TemporaryFolder folder;
    write_file(folder.path() / "caf\xE9:1.png", plain_png(40, 40, 1, 2, 3));
    write_file(folder.path() / "caf\xE9:1.txt", "Caf\xE9");
    const Discovered found = discover_in(folder, settings());
    ASSERT_EQ(found.samples.size(), 1U);
    EXPECT_EQ(found.samples[0].key, "caf\xE9:1.png");
    EXPECT_EQ(found.samples[0].caption, "Caf\xE9");
}

TEST(Discovery, NamesAndTextsOfCaptions) {
    EXPECT_EQ(caption_from_text("\xEF\xBB\xBFHello \n x\n"), "Hello \n x");
    EXPECT_EQ(caption_from_text("\r\n \n\tx y\t"), "x y");
    EXPECT_EQ(caption_from_text("\n\n"), "");
    EXPECT_EQ(caption_from_text(" \xEF\xBB\xBF"), "");
    EXPECT_EQ(caption_from_text("\xEF\xBB\xBF\xEF\xBB\xBF \n"), "");
    EXPECT_EQ(caption_key("a.b/c.d.png"), "a.b/c.d.txt");
    EXPECT_TRUE(strata::pictures::is_picture_name("a/B.JpEg"));
    EXPECT_FALSE(strata::pictures::is_picture_name(".png"));
    EXPECT_FALSE(strata::pictures::is_picture_name("a/png"));
}

}  // namespace
