#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <strata/data/cache_memory.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/storage/local.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::data::CacheMemory;
using strata_test::TemporaryFolder;
using Tensors = CacheMemory::Tensors;

Tensors of_one(double value, std::int64_t numel = 100) { return {{"a", at::full({numel}, value, at::kFloat)}}; }

TEST(CacheMemory, GivesBackWhatWasKeptInAnyTypeAndShape) {
    CacheMemory memory{1 << 20};
    Tensors tensors;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt,
                                      at::kShort, at::kChar, at::kByte, at::kBool})
        tensors.emplace(c10::toString(type), at::arange(6, at::kFloat).reshape({2, 1, 3}).to(type));
    tensors.emplace("of no dimension", at::full({}, 7, at::kLong));
    tensors.emplace("empty", at::ones({3, 0, 2}, at::kBFloat16));
    tensors.emplace("", at::ones({1}, at::kFloat));
    tensors.emplace("transposed", at::arange(6, at::kFloat).reshape({2, 3}).t());
    memory.keep("x", tensors);
    const auto found = memory.find("x");
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
        const at::Tensor& other = found->at(name);
        EXPECT_EQ(other.scalar_type(), tensor.scalar_type()) << name;
        EXPECT_EQ(other.sizes(), tensor.sizes()) << name;
        EXPECT_TRUE(other.is_contiguous()) << name;
        EXPECT_TRUE(other.equal(tensor)) << name;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other.data_ptr()) % 64, 0U) << name;
    }
    memory.keep("no tensors", {});
    ASSERT_TRUE(memory.find("no tensors"));
    EXPECT_TRUE(memory.find("no tensors")->empty());
    EXPECT_FALSE(memory.find("y"));
}

TEST(CacheMemory, TheFirstOfTwoEntriesOfOneIdentityStays) {
    CacheMemory memory{1 << 20};
    memory.keep("x", of_one(1));
    const std::int64_t bytes = memory.bytes();
    memory.keep("x", of_one(2));
    EXPECT_EQ(memory.find("x")->at("a")[0].item<float>(), 1);
    EXPECT_EQ(memory.bytes(), bytes);
    EXPECT_FALSE(memory.is_full());
}

TEST(CacheMemory, ThousandsOfEntriesAreFoundByTheirWholeIdentity) {
    CacheMemory memory{16 << 20};
    for (int i = 0; i < 5000; ++i) memory.keep("picture " + std::to_string(i), of_one(i, 1 + i % 7));
    EXPECT_FALSE(memory.is_full());
    for (int i = 0; i < 5000; ++i) {
        const auto found = memory.find("picture " + std::to_string(i));
        ASSERT_TRUE(found) << i;
        EXPECT_EQ(found->at("a").numel(), 1 + i % 7);
        EXPECT_EQ(found->at("a")[0].item<float>(), static_cast<float>(i));
    }
    EXPECT_FALSE(memory.find("picture 5000"));
    EXPECT_FALSE(memory.find("picture"));
}

TEST(CacheMemory, EverythingAnEntryCostsCounts) {
    CacheMemory memory{1 << 20};
    EXPECT_EQ(memory.bytes(), 0);
    memory.keep(std::string(5000, 'k'), of_one(1, 1000));
    EXPECT_GE(memory.bytes(), 5000 + 4000);
    const std::int64_t one = memory.bytes();
    EXPECT_LE(one, 5000 + 4000 + 3 * 4096) << "the table and what two pages have left";
    std::int64_t kept = 0;
    while (!memory.is_full()) memory.keep(std::to_string(kept++), of_one(1, 1000));
    EXPECT_LE(memory.bytes(), 1 << 20);
    EXPECT_GE(memory.bytes(), (1 << 20) - 2 * 4096);
    EXPECT_GE(kept, (1 << 20) / 4500);
}

TEST(CacheMemory, WhatIsLargerThanASlabHasOneOfItsOwn) {
    CacheMemory memory{64 << 20};
    memory.keep("large 1", of_one(1, 3 << 20));  // 12 MiB
    memory.keep("small 1", of_one(2));
    memory.keep("large 2", of_one(3, 5 << 20));
    memory.keep("small 2", of_one(4));
    EXPECT_LE(memory.bytes(), (32 << 20) + 8 * 4096) << "small ones fill one slab, whatever comes between";
    memory.keep("too large", of_one(5, 9 << 20));
    EXPECT_TRUE(memory.is_full());
    EXPECT_FALSE(memory.find("too large"));
    for (const auto& [identity, value] : {std::pair{"large 1", 1}, {"small 1", 2}, {"large 2", 3}, {"small 2", 4}})
        EXPECT_EQ(memory.find(identity)->at("a")[99].item<float>(), static_cast<float>(value));
}

TEST(CacheMemory, NothingFitsIntoNothing) {
    for (const std::int64_t budget : {0, -1, 63}) {
        CacheMemory memory{budget};
        EXPECT_FALSE(memory.is_full());
        memory.keep("x", of_one(1));
        EXPECT_FALSE(memory.find("x"));
        EXPECT_TRUE(memory.is_full());
        EXPECT_EQ(memory.bytes(), 0);
    }
}

TEST(CacheMemory, TheNextOfItsSizeTakesAnEntrysPlaceWhenNobodyLooksAtItAnyMore) {
    CacheMemory memory{3 * 4096};
    int kept = 0;
    for (; !memory.is_full(); ++kept) memory.keep("entry " + std::to_string(1000 + kept), of_one(kept, 500));
    ASSERT_GE(kept, 3);  // the last one did not fit
    auto looked_at = memory.find("entry 1001");
    memory.drop("entry 1001");
    memory.drop("entry 1001");
    EXPECT_FALSE(memory.is_full());
    EXPECT_FALSE(memory.find("entry 1001"));
    memory.keep("entry 2000", of_one(7, 500));
    EXPECT_FALSE(memory.find("entry 2000")) << "its place is still being looked at";
    EXPECT_EQ(looked_at->at("a")[499].item<float>(), 1);
    looked_at.reset();
    memory.keep("entry 2000", of_one(7, 500));
    EXPECT_EQ(memory.find("entry 2000")->at("a")[499].item<float>(), 7);
    EXPECT_EQ(memory.find("entry 1000")->at("a")[499].item<float>(), 0);
}

TEST(CacheMemory, TensorsOutliveIt) {
    at::Tensor tensor;
    {
        CacheMemory memory{1 << 20};
        memory.keep("x", of_one(5));
        tensor = memory.find("x")->at("a");
    }
    EXPECT_TRUE(tensor.equal(at::full({100}, 5, at::kFloat)));
}

TEST(CacheMemory, ThreadsMayKeepFindAndDropTheSameEntries) {
    CacheMemory memory{8 << 20};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 3000; ++i) {
                const int which = (i * 7 + t) % 50;
                const std::string identity = "entry " + std::to_string(which);
                memory.keep(identity, of_one(which, 64));
                if (const auto found = memory.find(identity))
                    if (!found->at("a").equal(at::full({64}, which, at::kFloat))) ++wrong;
                if (i % 3 == 0) memory.drop(identity);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_FALSE(memory.is_full()) << "places are used again";
}

// ---- what a process takes ----------------------------------------------------------------------------------------------

constexpr int entries = 8000;
constexpr std::int64_t granted = 12 << 20;  // less than the entries have; heaps of two threads are a megabyte of it

/// A pass over a cache as a start and an epoch make it: each entry amid temporaries much larger than itself.
void pass_over(const std::filesystem::path& folder, std::int64_t grant) {
    const strata::data::TensorCache<strata::Local> cache{
        strata::Local{folder, strata::storage::Durability::process_end}, false, std::make_shared<CacheMemory>(grant)};
    const auto share = [&](int begin) {
        for (int i = begin; i < entries; i += 2) {
            const auto [tensors, outcome] = cache.get(
                "autoencoder\n/data/pictures\nIMG_" + std::to_string(i) + ".jpg\n1024 1024",
                [&] {
                    // Below malloc's mmap threshold.
                    const at::Tensor picture = at::full({20'000 + i % 64 * 100}, i, at::kFloat);
                    const at::Tensor more = picture.clone();
                    return Tensors{{"latents", more.slice(0, 0, 512).clone()}};
                },
                [](const Tensors&) { return true; });
            if (tensors.at("latents").numel() != 512) std::abort();
        }
    };
    std::thread other{share, 1};
    share(0);
    other.join();
}

/// The most memory that a process has which only does that, in bytes; 0 if it failed.
std::int64_t peak_of(const std::filesystem::path& folder, std::int64_t grant) {
    int ends[2];
    if (::pipe(ends) != 0) return 0;
    const pid_t process = ::fork();
    if (process == 0) {
        std::ofstream{"/proc/self/clear_refs"} << "5";  // the peak from here on
        pass_over(folder, grant);
        std::ifstream status{"/proc/self/status"};
        std::int64_t kib = 0;
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("VmHWM:")) std::istringstream{line.substr(6)} >> kib;
        const bool written = ::write(ends[1], &kib, sizeof kib) == sizeof kib;
        ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    std::int64_t kib = 0;
    const bool is_read = ::read(ends[0], &kib, sizeof kib) == sizeof kib;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(process, &status, 0);
    return is_read && status == 0 ? kib * 1024 : 0;
}

TEST(CacheMemory, WhatIsGrantedIsHowMuchAProcessGrows) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#else
    const TemporaryFolder without;
    const TemporaryFolder with;
    for (const char* start : {"the first start", "the second start"}) {
        const std::int64_t base = peak_of(without.path(), 0);
        const std::int64_t grown = peak_of(with.path(), granted);
        ASSERT_GT(base, 0);
        ASSERT_GT(grown, 0);
        EXPECT_GE(grown - base, granted / 10 * 8) << start;
        EXPECT_LE(grown - base, granted / 10 * 12) << start;
    }
#endif
}

}  // namespace
