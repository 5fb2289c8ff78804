// scan_for_errors and delete_problematic_images: what is found behind the headers, and what may be deleted.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../../support/counting_store.hpp"
#include "../../support/made_files.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata_test::Bytes;
using strata_test::CountingStore;
using strata_test::plain_png;

struct Folder {
    strata_test::TemporaryFolder folder;
    strata::config::ImageDataset dataset;
    CountingStore store{folder.path() / "data"};
    DiscoverOptions options;

    Folder() {
        dataset.id = "set";
        dataset.caption_strategy = strata::config::CaptionStrategy::filename;
        dataset.scan_for_errors = true;
        options.index_folder = folder.path() / "index";
    }
    void add(const std::string& name, const Bytes& bytes) const {
        strata::storage::write_file(store.root() / name, bytes);
    }
    [[nodiscard]] Discovered discover() const {
        strata::comm::SelfComm comm;
        store.forget();
        return strata::datasets::discover(comm, store, dataset, options);
    }
    [[nodiscard]] std::set<std::string> files() const {
        std::set<std::string> names;
        for (const auto& info : store.list("")) names.insert(info.key);
        return names;
    }
};

Bytes half(const Bytes& file) { return {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2)}; }

Bytes jpeg() { return strata_test::make_jpeg({}, 256, 256).file; }

TEST(Scan, FilesCountAgainstTheMemoryForDecoding) {
    Folder folder;
    const Bytes picture = plain_png(64, 64, 1, 2, 3);
    for (int i = 0; i < 12; ++i) folder.add(std::to_string(i) + ".png", picture);
    std::atomic<int> reading{0};
    std::atomic<int> most{0};
    folder.store.calls().on_read = [&](std::string_view, int) { most = std::max<int>(most, ++reading); };
    folder.store.calls().on_get = [&](std::string_view, Bytes&) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});  // others come meanwhile, if they may
        --reading;
    };
    folder.options.threads = 4;
    folder.options.decode_memory_bytes = 8 * static_cast<std::int64_t>(picture.size());  // a quarter of it: two files
    EXPECT_EQ(folder.discover().samples.size(), 12U);
    EXPECT_LE(most, 2);
}

TEST(Scan, FindsWhatHeadersHide) {
    Folder folder;
    folder.add("good.png", plain_png(48, 48, 1, 2, 3));
    folder.add("cut.png", half(plain_png(48, 48, 1, 2, 3)));
    folder.add("cut.jpg", half(jpeg()));
    folder.dataset.scan_for_errors = false;
    EXPECT_EQ(folder.discover().samples.size(), 3U);
    folder.dataset.scan_for_errors = true;
    const Discovered found = folder.discover();
    EXPECT_EQ(folder.store.reads(), 3) << "a file is read once";
    ASSERT_EQ(found.samples.size(), 1U);
    EXPECT_EQ(found.samples[0].key, "good.png");
    ASSERT_EQ(found.skipped.size(), 2U);
    for (const Skipped& one : found.skipped) EXPECT_EQ(one.reason, SkipReason::unreadable);
    // What was scanned is known; without the key what is known to be damaged stays out all the same.
    EXPECT_EQ(folder.discover().samples.size(), 1U);
    EXPECT_EQ(folder.store.reads(), 0);
    EXPECT_EQ(folder.files().size(), 3U);
    folder.add("new.png", plain_png(32, 32, 1, 2, 3));
    EXPECT_EQ(folder.discover().samples.size(), 2U);
    EXPECT_EQ(folder.store.reads(), 1) << "header and pixels come of one read";
}

TEST(Scan, DeletesDamagedFilesAndNothingElse) {
    Folder folder;
    folder.dataset.delete_problematic_images = true;
    Bytes wrong_sum = plain_png(48, 48, 1, 2, 3);
    wrong_sum[wrong_sum.size() - 14] ^= std::byte{1};  // the check sum of the pixels
    folder.add("bad/wrong_sum.png", wrong_sum);
    folder.add("bad/cut.png", half(plain_png(48, 48, 1, 2, 3)));
    folder.add("bad/cut.jpg", half(jpeg()));
    folder.add("bad/empty.jpg", {});
    folder.add("bad/cut.webp", half(strata_test::make_webp(strata_test::soft_picture(64, 64), true)));
    const std::set<std::string> stays{"good.png",   "small.png", "psd.png",   "huge.webp",
                                      "unread.png", "notes.txt", "twelve.jpg"};
    folder.add("good.png", plain_png(48, 48, 1, 2, 3));
    folder.add("small.png", plain_png(8, 8, 1, 2, 3));
    folder.add("psd.png", strata_test::bytes_of("8BPS, whatever its name says"));
    folder.add("huge.webp", strata_test::webp_file(strata_test::vp8x_chunk(0, 1 << 20, 1 << 10)));
    folder.add("unread.png", half(plain_png(48, 48, 1, 2, 3)));
    folder.add("notes.txt", strata_test::bytes_of("no picture"));
    Bytes twelve = jpeg();
    for (std::size_t i = 0; i + 4 < twelve.size(); ++i)
        if (twelve[i] == std::byte{0xFF} && twelve[i + 1] == std::byte{0xC0})
            twelve[i + 4] = std::byte{12};  // bits a sample
    folder.add("twelve.jpg", twelve);
    folder.dataset.minimum_image_size = 16;
    folder.store.calls().on_read = [](std::string_view key, int) {
        if (key == "unread.png") throw strata::Error{Errc::io_failed, "the disk hesitates", "try again"};
    };
    const Discovered found = folder.discover();
    EXPECT_EQ(folder.files(), stays);
    EXPECT_EQ(found.samples.size(), 1U);
    EXPECT_EQ(found.found, 11);
    EXPECT_EQ(found.skipped.size(), 10U);
    ASSERT_EQ(found.notes.size(), 5U);
    std::string notes;
    for (const std::string& note : found.notes) notes += note + "\n";
    for (const char* name : {"wrong_sum.png", "cut.png", "cut.jpg", "empty.jpg", "cut.webp"})
        EXPECT_NE(notes.find("deleted '" + (folder.store.root() / "bad" / name).string() + "' ("), std::string::npos)
            << notes;
    EXPECT_EQ(folder.discover().found, 6);
}

TEST(Scan, DeletesNothingThatIsWholeAtASecondLook) {
    Folder folder;
    const Bytes good = plain_png(48, 48, 1, 2, 3);
    folder.add("good.png", good);
    folder.add("other.png", good);
    int gets = 0;
    folder.store.calls().on_get = [&](std::string_view key, Bytes& bytes) {
        if (key == "good.png" && gets++ == 0) bytes[bytes.size() / 2] ^= std::byte{1};
    };
    folder.dataset.delete_problematic_images = true;
    const Discovered found = folder.discover();
    EXPECT_EQ(gets, 2);
    EXPECT_EQ(folder.files().size(), 2U);
    EXPECT_EQ(found.samples.size(), 2U);
    EXPECT_TRUE(found.notes.empty());
}

}  // namespace
