#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <strata/data/tensor_cache.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/safetensors.hpp>

#include "../storage/temporary_folder.hpp"

namespace {

using namespace strata::data;
using strata::Errc;
using strata::Local;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;
using Cache = TensorCache<Local>;

NamedTensors some() { return {{"a", at::arange(6, at::kFloat).reshape({2, 3})}, {"b", at::ones({1}, at::kFloat)}}; }
bool anything(const NamedTensors&) { return true; }
Cache cache_in(const TemporaryFolder& folder, bool compress = false, std::int64_t memory = 0) {
    return {Local{folder.path()}, compress, std::make_shared<CacheMemory>(memory)};
}

TEST(TensorCache, MakesAnEntryOnceAndFindsItInTheNextRun) {
    for (const bool compress : {false, true}) {
        const TemporaryFolder folder;
        int made = 0;
        const auto make = [&] {
            ++made;
            return some();
        };
        EXPECT_EQ(cache_in(folder, compress).get("x", make, anything).second, CacheOutcome::made);
        const auto [tensors, outcome] = cache_in(folder, compress).get("x", make, anything);
        EXPECT_EQ(outcome, CacheOutcome::found);
        EXPECT_EQ(made, 1);
        EXPECT_TRUE(tensors.at("a").equal(some().at("a")));
        EXPECT_TRUE(tensors.at("b").equal(some().at("b")));
        EXPECT_EQ(folder.count_files(), 1);
        EXPECT_TRUE(cache_in(folder, compress).contains("x"));
        EXPECT_FALSE(cache_in(folder, compress).contains("y"));
    }
}

TEST(TensorCache, CachesThatShareMemoryDoNotSeeEachOthersEntries) {
    const TemporaryFolder first;
    const TemporaryFolder second;
    const auto memory = std::make_shared<CacheMemory>(1 << 20);
    const Cache a{Local{first.path()}, false, memory};
    const Cache b{Local{second.path()}, false, memory};
    (void)a.get("x", some, anything);
    const auto other = [] { return NamedTensors{{"a", at::ones({5}, at::kFloat)}}; };
    const auto [tensors, outcome] = b.get("x", other, anything);
    EXPECT_EQ(outcome, CacheOutcome::made);
    EXPECT_EQ(tensors.at("a").numel(), 5);
    EXPECT_EQ(a.get("x", other, anything).first.at("a").numel(), 6);
}

TEST(TensorCache, WhetherItCanBeWrittenShowsWithoutAnEntry) {
    const TemporaryFolder folder;
    cache_in(folder).require_writable();
    EXPECT_EQ(folder.count_files(), 0);
    strata::storage::write_file(folder.path() / "file", "text");
    const Cache through{Local{folder.path() / "file" / "cache"}, false, std::make_shared<CacheMemory>(0)};
    EXPECT_EQ(thrown_by([&] { through.require_writable(); }).code, Errc::io_failed);
}

TEST(TensorCache, EntriesAreSafetensorsThatOthersCanRead) {
    const TemporaryFolder folder;
    (void)cache_in(folder).get("identity \\ \n\xE9", some, anything);
    const strata::storage::SafetensorsFile file{folder.path() / cache_name("identity \\ \n\xE9", false)};
    EXPECT_EQ(file.header().at("a").shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(file.header().metadata.at("identity"), "identity \\x5c \\x0a\\xe9");
}

TEST(TensorCache, DifferentIdentitiesHaveDifferentNames) {
    EXPECT_NE(cache_name("a", false), cache_name("b", false));
    EXPECT_NE(cache_name("", false), cache_name(std::string_view{"\0", 1}, false));
    EXPECT_EQ(cache_name("a", false), cache_name("a", false));
    // FNV-1a of 128 bits, published value for "a".
    EXPECT_EQ(cache_name("a", true), "d2/28cb696f1a8caf78912b704e4a8964.safetensors.gz");
}

TEST(TensorCache, DamagedForeignAndMisshapenEntriesAreMadeAgain) {
    const TemporaryFolder folder;
    const auto path = folder.path() / cache_name("x", false);
    const auto outcome = [&](const auto& intact) { return cache_in(folder).get("x", some, intact).second; };
    EXPECT_EQ(outcome(anything), CacheOutcome::made);
    strata::storage::write_file(path, "garbage");
    EXPECT_EQ(outcome(anything), CacheOutcome::rebuilt);
    EXPECT_EQ(outcome(anything), CacheOutcome::found);
    strata::storage::write_file(path, "");
    EXPECT_EQ(outcome(anything), CacheOutcome::rebuilt);
    strata::storage::write_file(path, pack_entry(some(), "another identity", false));
    EXPECT_EQ(outcome(anything), CacheOutcome::rebuilt);
    strata::storage::write_file(path, pack_entry({{"a", at::ones({2})}}, "x", false));
    EXPECT_EQ(outcome([](const NamedTensors& t) { return t.size() == 2; }), CacheOutcome::rebuilt);
    EXPECT_EQ(thrown_by([&] { (void)outcome([](const NamedTensors&) { return false; }); }).code, Errc::bad_cache_entry);
}

TEST(TensorCache, UnpackRefusesEveryTruncationByName) {
    for (const bool compress : {false, true}) {
        const auto bytes = pack_entry(some(), "x", compress);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            const auto error = thrown_by([&] { (void)unpack_entry(std::span{bytes}.first(size), "x", compress, "c/d"); });
            EXPECT_EQ(error.code, Errc::bad_cache_entry);
            EXPECT_TRUE(error.says("c/d"));
        }
    }
}

TEST(TensorCache, MemoryKeepsUpToItsBudget) {
    const TemporaryFolder folder;
    const Cache cache = cache_in(folder, false, 60);  // one entry has 28 bytes
    for (const char* identity : {"x", "y", "z"}) (void)cache.get(identity, some, anything);
    EXPECT_EQ(cache.memory().bytes(), 56);
    EXPECT_TRUE(cache.memory().is_full());
    for (const char* identity : {"x", "y", "z"}) std::filesystem::remove(folder.path() / cache_name(identity, false));
    EXPECT_EQ(cache.get("x", some, anything).second, CacheOutcome::found);
    EXPECT_EQ(cache.get("z", some, anything).second, CacheOutcome::made);
}

}  // namespace
