// discover() with an index: what a second start costs, after changes, failures and stops.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/folder_place.hpp>
#include <strata/datasets/sample_index.hpp>
#include <strata/pictures/formats.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/counting_store.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata_test::CountingStore;
using strata_test::plain_png;
using strata_test::thrown_by;
namespace fs = std::filesystem;

template <class Bytes>
void put(const fs::path& path, const Bytes& bytes) {
    if constexpr (std::is_convertible_v<Bytes, std::string_view>) {
        const std::string_view text = bytes;
        strata::storage::write_file(path, std::as_bytes(std::span{text.data(), text.size()}),
                                    strata::storage::Durability::process_end);
    } else {
        strata::storage::write_file(path, bytes, strata::storage::Durability::process_end);
    }
}

/// A folder of 40 captioned pictures, of 32 + i by 48 pixels.
struct Folder {
    static constexpr int count = 40;
    strata_test::TemporaryFolder folder;
    strata::config::ImageDataset dataset;
    CountingStore store{folder.path() / "data"};
    DiscoverOptions options;

    Folder() {
        dataset.id = "set";
        options.index_folder = folder.path() / "index";
        options.threads = 1;
        for (int i = 0; i < count; ++i) add(i);
    }
    [[nodiscard]] static std::string stem(int i) { return "p" + std::to_string(100 + i); }
    [[nodiscard]] fs::path path(int i, const char* extension) const { return store.root() / (stem(i) + extension); }
    void add(int i) const {
        put(path(i, ".png"), plain_png(32 + i, 48, 0, 0, 0));
        put(path(i, ".txt"), "caption " + std::to_string(i));
    }
    [[nodiscard]] Discovered discover() const {
        strata::comm::SelfComm comm;
        store.forget();
        return strata::datasets::discover(comm, store, dataset, options);
    }
    [[nodiscard]] fs::path index_file() const { return options.index_folder / "set.sqlite"; }
};

std::map<std::string, std::string> captions_of(const Discovered& found) {
    std::map<std::string, std::string> captions;
    for (const Sample& sample : found.samples) captions[sample.key] = sample.caption;
    return captions;
}

TEST(DiscoveryIndex, ASecondStartListsAndReadsNothing) {
    const Folder folder;
    const Discovered first = folder.discover();
    EXPECT_EQ(first.examined, 40);
    EXPECT_EQ(folder.store.reads(), 80);
    const Discovered second = folder.discover();
    EXPECT_EQ(second.examined, 0);
    EXPECT_EQ(folder.store.reads(), 0);
    EXPECT_EQ(folder.store.calls().lists, 1);
    ASSERT_EQ(second.samples.size(), 40U);
    for (std::size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(second.samples[i].key, first.samples[i].key);
        EXPECT_EQ(second.samples[i].version, first.samples[i].version);
        EXPECT_EQ(second.samples[i].bytes, first.samples[i].bytes);
        EXPECT_EQ(second.samples[i].size, (PictureSize{32 + static_cast<std::int64_t>(i), 48}));
        EXPECT_EQ(second.samples[i].caption, first.samples[i].caption);
    }
    EXPECT_TRUE(second.notes.empty());
}

TEST(DiscoveryIndex, WithoutAFolderNothingIsKept) {
    Folder folder;
    folder.options.index_folder.clear();
    EXPECT_EQ(folder.discover().examined, 40);
    EXPECT_EQ(folder.discover().examined, 40);
    EXPECT_FALSE(fs::exists(folder.folder.path() / "index"));
}

TEST(DiscoveryIndex, OnlyWhatChangedIsReadAgain) {
    const Folder folder;
    (void)folder.discover();
    put(folder.path(3, ".png"), plain_png(200, 100, 0, 0, 0));
    put(folder.path(5, ".txt"), "another caption, of another length");
    fs::remove(folder.path(7, ".png"));
    fs::remove(folder.path(9, ".txt"));
    folder.add(50);
    const Discovered found = folder.discover();
    EXPECT_EQ(found.examined, 3);
    EXPECT_EQ(folder.store.reads(), 4);
    EXPECT_EQ(folder.store.reads("p103.png"), 1);
    EXPECT_EQ(folder.store.reads("p105.txt"), 1);
    EXPECT_EQ(folder.store.reads("p150.png") + folder.store.reads("p150.txt"), 2);
    EXPECT_EQ(found.found, 40);
    EXPECT_EQ(found.samples.size(), 39U);
    auto captions = captions_of(found);
    EXPECT_EQ(captions["p105.png"], "another caption, of another length");
    EXPECT_EQ(captions["p103.png"], "caption 3");
    EXPECT_FALSE(captions.contains("p107.png"));
    ASSERT_EQ(found.skipped.size(), 1U);
    EXPECT_EQ(found.skipped[0].reason, SkipReason::no_caption);
    EXPECT_EQ(found.samples[3].size, (PictureSize{200, 100}));
    EXPECT_EQ(folder.discover().examined, 0);
    // A caption that comes back is seen, one that was never there is not looked for.
    put(folder.path(9, ".txt"), "back");
    EXPECT_EQ(captions_of(folder.discover())["p109.png"], "back");
    EXPECT_EQ(folder.store.reads(), 1);
}

TEST(DiscoveryIndex, WhatIsReplacedUnderItsSizeAndDateIsReadAgain) {
    const Folder folder;
    (void)folder.discover();
    for (const char* extension : {".png", ".txt"}) {
        const fs::path file = folder.path(3, extension);
        const auto date = fs::last_write_time(file);
        const auto bytes = fs::file_size(file);
        if (extension == std::string_view{".png"})
            put(file, plain_png(48, 35, 0, 0, 0));
        else
            put(file, "another 3");
        ASSERT_EQ(fs::file_size(file), bytes);
        fs::last_write_time(file, date);
    }
    const Discovered found = folder.discover();
    EXPECT_EQ(found.examined, 1);
    EXPECT_EQ(found.samples[3].size, (PictureSize{48, 35}));
    EXPECT_EQ(found.samples[3].caption, "another 3");
    EXPECT_EQ(folder.discover().examined, 0);
}

TEST(DiscoveryIndex, AScanLearnsWhatFilesHoldAndAnotherVersionForgetsIt) {
    Folder folder;
    for (const Sample& sample : folder.discover().samples) EXPECT_FALSE(sample.content) << "headers only";
    folder.dataset.scan_for_errors = true;
    const Discovered scanned = folder.discover();
    for (const Sample& sample : scanned.samples)
        EXPECT_EQ(sample.content, strata::storage::content_hash(folder.store.get(sample.key)));
    folder.dataset.scan_for_errors = false;
    fs::last_write_time(folder.path(3, ".png"), fs::file_time_type::clock::now() - std::chrono::hours{1});
    const Discovered later = folder.discover();
    for (std::size_t i = 0; i < 40; ++i)
        EXPECT_EQ(later.samples[i].content, i == 3 ? strata::storage::ContentHash{} : scanned.samples[i].content) << i;
}

TEST(DiscoveryIndex, OtherSettingsJudgeAnewAndReadNothing) {
    Folder folder;
    (void)folder.discover();
    folder.dataset.resolution_type = strata::config::ResolutionType::pixel;
    folder.dataset.minimum_image_size = 40;
    folder.dataset.maximum_aspect_ratio = 1.25;
    const Discovered found = folder.discover();
    EXPECT_EQ(folder.store.reads(), 0);
    EXPECT_EQ(found.samples.size(), 21U);  // widths 40 to 60
    EXPECT_EQ(found.skipped.size(), 19U);
    folder.dataset.only_instance_prompt = true;
    folder.dataset.instance_prompt = "a star";
    EXPECT_EQ(captions_of(folder.discover())["p110.png"], "a star");
    EXPECT_EQ(folder.store.reads(), 0);
    folder.dataset.only_instance_prompt = false;
    EXPECT_EQ(captions_of(folder.discover())["p110.png"], "caption 10");
    EXPECT_EQ(folder.store.reads(), 0);
    folder.dataset.max_num_samples = 7;
    const Discovered seven = folder.discover();
    EXPECT_EQ(seven.samples.size(), 7U);
    ASSERT_EQ(seven.notes.size(), 1U);
    EXPECT_EQ(seven.notes[0], "data set 'set': 7 of 21 pictures are used (max_num_samples)");
    // Pictures that come change at most themselves, and another id draws others.
    for (int i = 60; i < 64; ++i) folder.add(i);
    folder.dataset.maximum_aspect_ratio = 4;
    folder.dataset.max_num_samples = 40;
    auto more = captions_of(folder.discover());
    for (const Sample& sample : seven.samples) EXPECT_TRUE(more.contains(sample.key)) << sample.key;
}

TEST(DiscoveryIndex, AnotherCaptionStrategyReadsCaptionsAndNoHeaders) {
    Folder folder;
    (void)folder.discover();
    put(folder.path(0, ".json"), R"({"caption": " from json\n", "tags": ["a"]})");
    put(folder.path(1, ".json"), R"({"caption": 5})");
    put(folder.path(2, ".json"), "no json");
    folder.dataset.caption_strategy = strata::config::CaptionStrategy::json;
    const Discovered found = folder.discover();
    EXPECT_EQ(folder.store.reads(), 3);
    EXPECT_EQ(captions_of(found), (std::map<std::string, std::string>{{"p100.png", "from json"}}));
    ASSERT_EQ(found.skipped.size(), 39U);
    EXPECT_EQ(found.skipped[0].detail, "no text 'caption' in its .json");
    EXPECT_EQ(folder.discover().examined, 0);
}

TEST(DiscoveryIndex, APreservedListingIsNotMadeAgain) {
    for (const bool by_skipping : {false, true}) {
        Folder folder;
        (by_skipping ? folder.dataset.skip_file_discovery.metadata : folder.dataset.preserve_data_backend_cache) = true;
        EXPECT_EQ(folder.discover().samples.size(), 40U);  // nothing to preserve yet
        EXPECT_EQ(folder.store.calls().lists, 1);
        folder.add(50);
        fs::remove(folder.path(0, ".png"));
        EXPECT_EQ(folder.discover().samples.size(), 40U);
        EXPECT_EQ(folder.store.calls().lists, 0);
        EXPECT_EQ(folder.store.reads(), 0);
        // Caption files of another kind were not listed.
        folder.dataset.caption_strategy = strata::config::CaptionStrategy::json;
        EXPECT_TRUE(folder.discover().samples.empty());
        EXPECT_EQ(folder.store.calls().lists, 1);
        folder.dataset.caption_strategy = strata::config::CaptionStrategy::filename;
        EXPECT_EQ(folder.discover().samples.size(), 40U);
        EXPECT_EQ(folder.store.calls().lists, 0);
    }
}

TEST(DiscoveryIndex, ADamagedIndexIsNamedAndBuiltAgain) {
    Folder folder;
    folder.dataset.preserve_data_backend_cache = true;
    (void)folder.discover();
    fs::resize_file(folder.index_file(), 5000);
    const Discovered found = folder.discover();
    EXPECT_EQ(found.samples.size(), 40U);
    EXPECT_EQ(found.examined, 40);
    EXPECT_EQ(folder.store.calls().lists, 1);
    ASSERT_EQ(found.notes.size(), 1U);
    EXPECT_NE(found.notes[0].find(folder.index_file().string()), std::string::npos) << found.notes[0];
    EXPECT_TRUE(fs::exists(folder.index_file().string() + ".damaged"));
    EXPECT_EQ(folder.discover().examined, 0);
}

TEST(DiscoveryIndex, AFailureInTheMiddleKeepsWhatWasRead) {
    Folder folder;
    folder.dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    folder.store.calls().on_read = [](std::string_view, int before) {
        if (before == 25) throw strata::Error{Errc::transfer_failed, "the connection broke", "try again"};
    };
    EXPECT_EQ(thrown_by([&] { (void)folder.discover(); }).code, Errc::transfer_failed);
    const int read = folder.store.reads();
    EXPECT_GE(read, 25);
    EXPECT_LT(read, 40);
    folder.store.calls().on_read = {};
    EXPECT_EQ(folder.discover().samples.size(), 40U);
    EXPECT_EQ(folder.store.reads(), 40 - read);
}

TEST(DiscoveryIndex, AStopKeepsWhatWasReadAndTheNextStartGoesOn) {
    Folder folder;
    folder.dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    folder.options.stopped = [&] { return folder.store.reads() >= 10; };
    const auto error = thrown_by([&] { (void)folder.discover(); });
    EXPECT_EQ(error.code, Errc::interrupted);
    const int read = folder.store.reads();
    EXPECT_LT(read, 15);
    folder.options.stopped = {};
    std::vector<std::string> said;
    folder.options.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
        said.push_back(std::string{what} + " " + std::to_string(done) + "/" + std::to_string(total));
    };
    EXPECT_EQ(folder.discover().samples.size(), 40U);
    EXPECT_EQ(folder.store.reads(), 40 - read);
    const std::string left = std::to_string(40 - read);
    EXPECT_EQ(said, (std::vector<std::string>{"pictures listed 40/0", "pictures examined " + left + "/" + left}));
}

TEST(DiscoveryIndex, AListingCanBeStopped) {
    Folder folder;
    for (int i = 0; i < 10'000; ++i) std::ofstream{folder.store.root() / ("x" + std::to_string(i) + ".gif")};
    int asked = 0;
    folder.options.stopped = [&] { return ++asked > 0; };
    EXPECT_EQ(thrown_by([&] { (void)folder.discover(); }).code, Errc::interrupted);
    EXPECT_EQ(folder.store.reads(), 0);
}

TEST(DiscoveryIndex, AFileThatCouldNotBeReadIsTriedAgain) {
    Folder folder;
    for (const char* name : {"p105.png", "p106.txt"}) {
        folder.store.calls().on_read = [name](std::string_view key, int) {
            if (key == name) throw strata::Error{Errc::io_failed, "the disk hesitates", "try again"};
        };
        put(folder.path(name[3] - '0', name[5] == 'p' ? ".png" : ".txt"),
            name[5] == 'p' ? std::string_view{"not read"} : std::string_view{"a new caption"});
        const Discovered found = folder.discover();
        ASSERT_EQ(found.skipped.size(), 1U);
        EXPECT_EQ(found.skipped[0].reason, SkipReason::unreadable);
        EXPECT_NE(found.skipped[0].detail.find("the disk hesitates"), std::string::npos);
        folder.store.calls().on_read = {};
        if (name[5] == 'p') folder.add(5);
        EXPECT_EQ(folder.discover().samples.size(), 40U);
        EXPECT_EQ(folder.store.reads(name), 1);
        EXPECT_EQ(folder.discover().examined, 0);
    }
}

/// What an earlier program had no library for is looked at again by one that has it, and by no other.
TEST(DiscoveryIndex, APictureThatLackedALibraryIsLookedAtAgainWhenTheLibraryIsThere) {
    for (const bool scans : {false, true}) {
        Folder folder;
        folder.dataset.scan_for_errors = scans;
        (void)folder.discover();
        const auto edit = [&](const std::string& decodes) {
            SampleIndex index{folder.options.index_folder, "set", folder_place(folder.store.where(""))};
            std::vector<IndexedPicture> known = index.take_pictures();
            ASSERT_EQ(known.size(), 40U);
            IndexedPicture& picture = known[7];
            const PictureFault fault{SkipReason::unsupported_format, "this program was built without libheif", false};
            picture.sample.size = {};
            picture.size_fault = std::make_unique<PictureFault>(fault);
            if (scans) picture.pixel_fault = std::make_unique<PictureFault>(fault);
            const IndexedPicture* const changed = &picture;
            index.write(std::span{&changed, 1}, {}, {{"decodes", decodes}});
        };
        edit(decoded_formats());  // by a program with the libraries that this one has
        const Discovered same = folder.discover();
        EXPECT_EQ(same.examined, 0);
        ASSERT_EQ(same.skipped.size(), 1U);
        EXPECT_EQ(same.skipped[0].reason, SkipReason::unsupported_format);

        edit("PNG and JPEG");
        const Discovered more = folder.discover();
        EXPECT_EQ(more.examined, 1);
        EXPECT_TRUE(more.skipped.empty());
        ASSERT_EQ(more.samples.size(), 40U);
        EXPECT_EQ(more.samples[7].size, (PictureSize{32 + 7, 48}));
        EXPECT_EQ(folder.discover().examined, 0) << "once";
    }
}

TEST(DiscoveryIndex, DamageIsRememberedAsWell) {
    const Folder folder;
    put(folder.path(4, ".png"), "no picture");
    put(folder.path(6, ".png"), "\x89PNG\r\n\x1A\n cut short");
    std::string detail;
    for (int start = 0; start < 2; ++start) {
        const Discovered found = folder.discover();
        EXPECT_EQ(found.examined, start == 0 ? 40 : 0);
        EXPECT_TRUE(found.notes.empty());
        ASSERT_EQ(found.skipped.size(), 2U);
        EXPECT_EQ(found.skipped[1].reason, SkipReason::unreadable);
        EXPECT_EQ(found.skipped[0].reason, SkipReason::unsupported_format);
        EXPECT_EQ(found.skipped[0].place, (folder.store.root() / "p104.png").string());
        if (start == 0) detail = found.skipped[0].detail;
        EXPECT_EQ(found.skipped[0].detail, detail);
    }
}

}  // namespace
