// discover() over ranks: the reading is shared, rank 0 keeps the index, and everybody gets the same.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/storage/atomic_file.hpp>

#include "../support/counting_store.hpp"
#include "../support/pictures.hpp"
#include "../support/temporary_folder.hpp"
#include "shared_folder.hpp"

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata::comm::MpiComm;
using strata::storage::write_file;
using strata_test::CountingStore;
using strata_test::thrown_by;

/// A folder that all ranks see: 30 captioned pictures, one without caption, one that is none. Only rank 0 knows where
/// the index is.
struct PictureFolder {
    MpiComm comm;
    strata_test::SharedFolder<MpiComm> folder{comm};
    const std::filesystem::path& path = folder.path;
    std::unique_ptr<CountingStore> store;
    strata::config::ImageDataset dataset;
    DiscoverOptions options;

    PictureFolder() {
        if (comm.rank() == 0) {
            for (int i = 0; i < 30; ++i) {
                const std::string stem = "p" + std::to_string(100 + i);
                write_file(path / "data" / (stem + ".png"), strata_test::plain_png(32 + i, 48, 0, 0, 0));
                write_file(path / "data" / (stem + ".txt"), "caption " + std::to_string(i));
            }
            write_file(path / "data" / "bare.png", strata_test::plain_png(48, 48, 0, 0, 0));
            write_file(path / "data" / "none.png", "no picture");
        }
        comm.barrier();
        store = std::make_unique<CountingStore>(path / "data");
        dataset.id = "set";
        options.threads = 1;
        options.index_folder = comm.rank() == 0 ? path / "index" : std::filesystem::path{"/nowhere"};
    }

    /// The result, after a look whether all ranks have the same.
    [[nodiscard]] Discovered discover() {
        store->forget();
        Discovered found = strata::datasets::discover(comm, *store, dataset, options);
        std::string mine = std::to_string(found.found) + " " + std::to_string(found.examined);
        for (const Sample& one : found.samples) {
            mine += "\n" + one.key + " " + one.version + " " + std::to_string(one.bytes) + " " + one.caption + " " +
                    std::to_string(one.size.width) + "x" + std::to_string(one.size.height);
            for (const std::string& other : one.other_captions) mine += " | " + other;
        }
        for (const Skipped& one : found.skipped)
            mine += "\n" + one.dataset + " " + one.place + " " + std::string{name_of(one.reason)} + one.detail;
        for (const std::string& note : found.notes) mine += "\n" + note;
        for (const std::string& other : comm.all_gather_varied(mine)) EXPECT_EQ(other, mine);
        return found;
    }
    [[nodiscard]] int reads_of_all() {
        std::vector<double> sum{static_cast<double>(store->reads())};
        comm.all_reduce_sum(sum);
        return static_cast<int>(sum[0]);
    }
    [[nodiscard]] bool is_last() const { return comm.rank() == comm.world() - 1; }
};

TEST(Discovery, RanksShareTheReadingAndRankZeroKeepsTheIndex) {
    PictureFolder shared;
    const Discovered first = shared.discover();
    EXPECT_EQ(first.samples.size(), 30U);
    EXPECT_EQ(first.skipped.size(), 2U);
    EXPECT_EQ(first.examined, 32);
    EXPECT_EQ(shared.reads_of_all(), 32 + 30);
    EXPECT_LE(shared.store->reads(), 2 * (32 / shared.comm.world() + 1));
    EXPECT_EQ(shared.store->calls().lists, shared.comm.rank() == 0 ? 1 : 0);
    EXPECT_TRUE(std::filesystem::exists(shared.path / "index" / "set.sqlite"));
    EXPECT_FALSE(std::filesystem::exists("/nowhere"));

    EXPECT_EQ(shared.discover().samples.size(), 30U);
    EXPECT_EQ(shared.reads_of_all(), 0);
    shared.dataset.scan_for_errors = true;
    EXPECT_EQ(shared.discover().samples.size(), 30U);
    EXPECT_EQ(shared.reads_of_all(), 32);
    EXPECT_LE(shared.store->reads(), 32 / shared.comm.world() + 1);
}

TEST(Discovery, ATableIsReadByRankZeroAndKnownToAll) {
    PictureFolder shared;
    if (shared.comm.rank() == 0)
        write_file(shared.path / "table.jsonl",
                   R"({"f": "p101.png", "a": "one", "b": "two", "width": 70, "height": 60})"
                   "\n"
                   R"({"f": "p111.png", "a": null, "b": "three", "width": 80, "height": 60})");
    shared.comm.barrier();
    shared.dataset.caption_strategy = strata::config::CaptionStrategy::parquet;
    shared.dataset.metadata_backend = strata::config::MetadataBackend::parquet;
    shared.dataset.parquet.emplace();
    shared.dataset.parquet->path = (shared.path / "table.jsonl").string();
    shared.dataset.parquet->filename_column = "f";
    shared.dataset.parquet->caption_column = {"a", "b"};
    shared.dataset.parquet->identifier_includes_extension = true;
    const Discovered found = shared.discover();
    ASSERT_EQ(found.samples.size(), 2U);
    EXPECT_EQ(found.samples[0].other_captions, std::vector<std::string>{"two"});
    EXPECT_EQ(found.samples[1].size, (PictureSize{80, 60}));
    EXPECT_EQ(shared.reads_of_all(), 0);
    shared.dataset.parquet->width_column = "w";
    const auto error = thrown_by([&] { (void)shared.discover(); });
    EXPECT_EQ(error.code, Errc::no_such_column);
    EXPECT_TRUE(error.says("has no column 'w'")) << error.message;
}

TEST(Discovery, OneRankThatFailsOrIsStoppedEndsAllAndWhatWasReadIsKept) {
    PictureFolder shared;
    shared.dataset.caption_strategy = strata::config::CaptionStrategy::filename;
    if (shared.is_last())
        shared.store->calls().on_read = [](std::string_view, int before) {
            if (before >= 3) throw strata::Error{Errc::transfer_failed, "the connection broke", "try again"};
        };
    EXPECT_EQ(thrown_by([&] { (void)shared.discover(); }).code, Errc::transfer_failed);
    const int first = shared.reads_of_all();
    EXPECT_LT(first, 32);
    shared.store->calls().on_read = {};
    if (shared.is_last()) shared.options.stopped = [] { return true; };
    const auto error = thrown_by([&] { (void)shared.discover(); });
    EXPECT_EQ(error.code, Errc::interrupted);
    const int second = shared.reads_of_all();
    EXPECT_LT(first + second, 32);
    shared.options.stopped = {};
    EXPECT_EQ(shared.discover().samples.size(), 31U);
    EXPECT_EQ(first + second + shared.reads_of_all(), 32);
}

TEST(Discovery, MuchIsHandedOutInParts) {
    PictureFolder shared;
    shared.dataset.caption_strategy = strata::config::CaptionStrategy::instanceprompt;
    shared.dataset.instance_prompt = std::string(1 << 20, 'x');
    const Discovered found = shared.discover();
    EXPECT_EQ(found.samples.size(), 31U);
    EXPECT_EQ(found.samples.back().caption.size(), std::size_t{1} << 20);
}

TEST(Discovery, AMissingFolderIsTheSameErrorOnEveryRank) {
    PictureFolder shared;
    const CountingStore store{shared.path / "missing"};
    const auto error = thrown_by([&] { (void)discover(shared.comm, store, shared.dataset, shared.options); });
    EXPECT_EQ(error.code, Errc::no_samples);
}

}  // namespace
