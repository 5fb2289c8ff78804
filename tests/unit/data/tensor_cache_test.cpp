#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <strata/core/crc32c.hpp>
#include <strata/data/tensor_cache.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/safetensors.hpp>

#include "../../support/fake_s3.hpp"
#include "../../support/temporary_folder.hpp"

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

TEST(TensorCache, EntriesAreRemovedOneByOneOrAFolderAtATime) {
    const TemporaryFolder folder;
    const auto memory = std::make_shared<CacheMemory>(1 << 20);
    const Cache all{Local{folder.path()}, false, memory};
    const Cache some_of_them{Local{folder.path()}, false, memory, "part/"};
    for (const Cache& cache : {all, some_of_them})
        for (const char* identity : {"x", "y", "z"}) (void)cache.get(identity, some, anything);
    EXPECT_EQ(folder.count_files(), 6);
    some_of_them.remove("x");
    some_of_them.remove("x");
    EXPECT_FALSE(some_of_them.contains("x"));
    EXPECT_TRUE(all.contains("x"));
    EXPECT_EQ(some_of_them.get("x", some, anything).second, CacheOutcome::made);
    EXPECT_EQ(some_of_them.get("x", some, anything).second, CacheOutcome::found);
    some_of_them.clear();
    EXPECT_EQ(folder.count_files(), 3);
    EXPECT_TRUE(all.contains("y"));
    EXPECT_NE(some_of_them.where().find("part"), std::string::npos);
}

TEST(TensorCache, EntriesAreSafetensorsThatOthersCanRead) {
    const TemporaryFolder folder;
    (void)cache_in(folder).get("identity \\ \n\xE9", some, anything);
    const strata::storage::SafetensorsFile file{folder.path() / cache_name("identity \\ \n\xE9", false)};
    EXPECT_EQ(file.header().at("a").shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(file.header().metadata.at("identity"), "identity \\x5c \\x0a\\xe9");
}

TEST(TensorCache, GzipHoldsTheSameFileAndPacksWhatCanBePacked) {
    at::Tensor noise = at::ones({4096}, at::kFloat);
    auto* const bits = static_cast<std::uint32_t*>(noise.data_ptr());
    std::mt19937 random{1};
    for (std::int64_t i = 0; i < noise.numel(); ++i) bits[i] = static_cast<std::uint32_t>(random()) & 0xBFFFFFFFU;
    const at::Tensor rounded = noise.to(at::kBFloat16).to(at::kFloat);
    const auto sizes = [](const at::Tensor& tensor) {
        const auto plain = pack_entry({{"a", tensor}}, "x", false);
        const auto packed = pack_entry({{"a", tensor}}, "x", true);
        EXPECT_EQ(strata::storage::gzip_decompress(packed), plain);
        return std::pair{plain.size(), packed.size()};
    };
    const auto [noise_plain, noise_packed] = sizes(noise);
    EXPECT_GE(noise_packed, noise_plain);
    EXPECT_LE(noise_packed, noise_plain + 64);
    const auto [rounded_plain, rounded_packed] = sizes(rounded);
    EXPECT_LT(rounded_packed, rounded_plain * 2 / 3);
}

TEST(TensorCache, EveryBitOfANumberComesBack) {
    // A quiet and a signalling NaN with something in it, -0, infinity, the least and the largest number.
    std::vector<std::uint32_t> bits{0x7FC12345, 0x7F812345, 0x80000000, 0xFF800000, 1, 0x7F7FFFFF};
    for (std::uint32_t i = 0; i < 1000; ++i) bits.push_back(i * 2654435761U);
    at::Tensor tensor = at::ones({static_cast<std::int64_t>(bits.size())}, at::kFloat);
    std::memcpy(tensor.data_ptr(), bits.data(), bits.size() * 4);
    for (const bool compress : {false, true}) {
        const NamedTensors back = unpack_entry(pack_entry({{"a", tensor}}, "x", compress), "x", compress, "place");
        ASSERT_EQ(back.at("a").nbytes(), bits.size() * 4);
        EXPECT_EQ(std::memcmp(back.at("a").data_ptr(), bits.data(), bits.size() * 4), 0) << compress;
    }
}

TEST(TensorCache, EmptyTensorsAndScalarsComeBack) {
    const NamedTensors tensors{{"none", at::ones({0, 3}, at::kFloat)}, {"one", at::ones({}, at::kFloat)}};
    for (const bool compress : {false, true}) {
        const NamedTensors back = unpack_entry(pack_entry(tensors, "x", compress), "x", compress, "place");
        EXPECT_EQ(back.at("none").sizes(), (at::IntArrayRef{0, 3}));
        EXPECT_EQ(back.at("one").dim(), 0);
        EXPECT_TRUE(back.at("one").equal(tensors.at("one")));
    }
}

TEST(TensorCache, EveryTypeComesBackBitByBitAtItsOwnSize) {
    NamedTensors tensors;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt,
                                      at::kShort, at::kChar, at::kByte, at::kBool, at::kComplexFloat})
        tensors[at::toString(type)] = at::arange(15, at::kFloat).sub(4).reshape({3, 5}).to(type);
    for (const bool compress : {false, true}) {
        const NamedTensors back = unpack_entry(pack_entry(tensors, "x", compress), "x", compress, "place");
        ASSERT_EQ(back.size(), tensors.size());
        for (const auto& [name, tensor] : tensors) {
            EXPECT_EQ(back.at(name).scalar_type(), tensor.scalar_type());
            EXPECT_TRUE(back.at(name).equal(tensor)) << name;
        }
    }
    const NamedTensors caption{{"tokens", at::ones({256, 4096}, at::kBFloat16)}};  // of T5-XXL
    EXPECT_LT(pack_entry(caption, "x", false).size(), 256U * 4096U * 2U + 512U);
    const auto error = thrown_by([&] { (void)pack_entry({{"z", at::ones({2}, at::kComplexDouble)}}, "x", false); });
    EXPECT_EQ(error.code, Errc::unsupported_dtype);
    EXPECT_TRUE(error.says("'z'")) << error.message;
}

TEST(TensorCache, TypesThatNoTensorHasAreRefused) {
    const std::vector<std::byte> bytes(12);
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{12}, {3, 4}, {2, 6}})
        for (const bool compress : {false, true}) {
            const strata::storage::TensorBytes tensor{"a", strata::storage::Dtype::f8_e4m3, shape, bytes};
            auto file = strata::storage::encode_safetensors({&tensor, 1}, {{"identity", "x"}});
            if (compress) file = strata::storage::gzip_compress(file);
            EXPECT_EQ(thrown_by([&] { (void)unpack_entry(file, "x", compress, "place"); }).code, Errc::bad_cache_entry);
        }
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
            const auto error =
                thrown_by([&] { (void)unpack_entry(std::span{bytes}.first(size), "x", compress, "c/d"); });
            EXPECT_EQ(error.code, Errc::bad_cache_entry);
            EXPECT_TRUE(error.says("c/d"));
        }
    }
}

/// An entry as versions before wrote it: its identity, and no check sum.
std::vector<std::byte> old_entry(const NamedTensors& tensors, const std::string& identity, bool compress = false) {
    std::vector<strata::storage::TensorBytes> list;
    for (const auto& [name, tensor] : tensors)
        list.push_back({name,
                        strata::storage::Dtype::f32,
                        tensor.sizes().vec(),
                        {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()}});
    const auto file = strata::storage::encode_safetensors(list, {{"identity", identity}});
    return compress ? strata::storage::gzip_compress(file) : file;
}

bool same_bits(const NamedTensors& a, const NamedTensors& b) {
    return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& one) {
               const auto other = b.find(one.first);
               return other != b.end() && other->second.sizes() == one.second.sizes() &&
                      std::memcmp(other->second.data_ptr(), one.second.data_ptr(), one.second.nbytes()) == 0;
           });
}

TEST(TensorCache, TheSumIsOneThatOtherProgramsCanForm) {
    auto file = pack_entry(some(), "x", false);
    const auto header = strata::storage::parse_safetensors(file);
    const std::string digits = header.metadata.at("crc32c");
    ASSERT_EQ(digits.size(), 8U);
    const std::string_view text{reinterpret_cast<const char*>(file.data()), file.size()};
    const std::size_t at = text.find("\"crc32c\":\"" + digits) + 10;
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(at), 8, std::byte{'0'});
    std::array<char, 9> expected{};
    std::snprintf(expected.data(), expected.size(), "%08x", strata::core::crc32c(file));
    EXPECT_EQ(digits, expected.data());
}

TEST(TensorCache, EverySingleBitOfAnEntryIsProtected) {
    auto plain = pack_entry(some(), "x", false);
    for (std::size_t bit = 0; bit < 8 * plain.size(); ++bit) {  // length, header, sum, padding and numbers
        const auto flip = static_cast<std::byte>(1U << bit % 8);
        plain[bit / 8] ^= flip;
        EXPECT_EQ(thrown_by([&] { (void)unpack_entry(plain, "x", false, "c/d"); }).code, Errc::bad_cache_entry) << bit;
        plain[bit / 8] ^= flip;
    }
    plain.push_back(std::byte{0});
    EXPECT_EQ(thrown_by([&] { (void)unpack_entry(plain, "x", false, "c/d"); }).code, Errc::bad_cache_entry);
    auto packed = pack_entry(some(), "x", true);
    int refused = 0;
    for (std::size_t bit = 0; bit < 8 * packed.size(); ++bit) {
        const auto flip = static_cast<std::byte>(1U << bit % 8);
        packed[bit / 8] ^= flip;
        try {  // gzip's time and system, say, change nothing
            EXPECT_TRUE(same_bits(unpack_entry(packed, "x", true, "c/d"), some())) << bit;
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), Errc::bad_cache_entry) << bit;
            ++refused;
        }
        packed[bit / 8] ^= flip;
    }
    EXPECT_GT(refused, 8 * static_cast<int>(packed.size()) * 9 / 10);
}

TEST(TensorCache, DamageThatGzipCannotSeeIsSeenInsideIt) {
    auto file = pack_entry(some(), "x", false);
    file[file.size() - 5] ^= std::byte{4};
    EXPECT_TRUE(thrown_by([&] {
                    (void)unpack_entry(strata::storage::gzip_compress(file), "x", true, "c/d");
                }).says("do not have the check sum they were written with"));
}

TEST(TensorCache, ZeroedNumbersAndOldEntriesAreMadeAgain) {
    for (const bool compress : {false, true}) {
        const TemporaryFolder folder;
        const auto path = folder.path() / cache_name("x", compress);
        const auto outcome = [&] {
            const auto [tensors, how] = cache_in(folder, compress).get("x", some, anything);
            EXPECT_TRUE(same_bits(tensors, some()));
            return how;
        };
        auto zeroed = pack_entry(some(), "x", false);
        std::fill(zeroed.end() - 28, zeroed.end(), std::byte{0});
        strata::storage::write_file(path, compress ? strata::storage::gzip_compress(zeroed) : zeroed);
        EXPECT_EQ(outcome(), CacheOutcome::rebuilt);
        strata::storage::write_file(path, old_entry({{"a", at::ones({2, 3})}, {"b", at::ones({1})}}, "x", compress));
        EXPECT_EQ(outcome(), CacheOutcome::replaced);
        EXPECT_EQ(outcome(), CacheOutcome::found);
    }
    const auto error = thrown_by([] { (void)unpack_entry(old_entry(some(), "x"), "x", false, "c/d"); });
    EXPECT_EQ(error.code, Errc::unsummed_cache_entry);
    EXPECT_TRUE(error.says("cache entry 'c/d' has no check sum: an earlier version wrote it")) << error.message;
    EXPECT_EQ(thrown_by([] { (void)unpack_entry(old_entry(some(), "y"), "x", false, "c/d"); }).code,
              Errc::bad_cache_entry);
}

/// A bucket in memory; a test may change what lies in it.
struct Bucket {
    std::mutex mutex;
    std::map<std::string, std::pair<std::string, std::string>> objects;  // by target: bytes, and the sum put() left
    strata_test::FakeHttpServer server{[this](const strata_test::FakeRequest& request) {
        using strata_test::FakeReply;
        const std::lock_guard lock{mutex};
        if (request.method == "PUT") {
            objects[request.target] = {request.body, request.header("x-amz-meta-strata-crc32c")};
            return FakeReply::answer(200, "", "ETag: \"not-a-sum\"\r\n");
        }
        const auto found = objects.find(request.target);
        if (found == objects.end()) return FakeReply::error(404, "NoSuchKey");
        const auto& [bytes, sum] = found->second;
        return strata_test::fake_s3::object_for(request, bytes, "not-a-sum",
                                                sum.empty() ? "" : "x-amz-meta-strata-crc32c: " + sum + "\r\n");
    }};
};

TEST(TensorCache, DamageInABucketIsMadeGood) {
    for (const bool compress : {false, true})
        for (const bool has_sum_beside : {true, false}) {  // another program may have copied the object without it
            Bucket bucket;
            const TensorCache<strata::S3> cache{strata::S3{strata_test::fake_s3::options_for(bucket.server.url())},
                                                compress, std::make_shared<CacheMemory>(0)};
            const auto outcome = [&] {
                const auto [tensors, how] = cache.get("x", some, anything);
                EXPECT_TRUE(same_bits(tensors, some()));
                return how;
            };
            EXPECT_EQ(outcome(), CacheOutcome::made);
            EXPECT_EQ(outcome(), CacheOutcome::found);
            {
                const std::lock_guard lock{bucket.mutex};
                ASSERT_EQ(bucket.objects.size(), 1U);
                auto& [bytes, sum] = bucket.objects.begin()->second;
                bytes[bytes.size() - 9] ^= 1;
                if (!has_sum_beside) sum.clear();
            }
            EXPECT_EQ(outcome(), CacheOutcome::rebuilt) << compress << has_sum_beside;
            EXPECT_EQ(outcome(), CacheOutcome::found);
            {
                const std::lock_guard lock{bucket.mutex};
                const auto old = old_entry(some(), "x", compress);
                bucket.objects.begin()->second = {{reinterpret_cast<const char*>(old.data()), old.size()}, ""};
            }
            EXPECT_EQ(outcome(), CacheOutcome::replaced);
        }
}

TEST(TensorCache, MemoryKeepsUpToItsBudget) {
    const TemporaryFolder folder;
    const auto large = [] { return NamedTensors{{"a", at::ones({20, 1000}, at::kFloat)}}; };
    const Cache cache = cache_in(folder, false, 200'000);  // one entry has 80,000 bytes and something
    for (const char* identity : {"x", "y", "z"}) (void)cache.get(identity, large, anything);
    EXPECT_GE(cache.memory().bytes(), 160'000);
    EXPECT_LE(cache.memory().bytes(), 200'000);
    EXPECT_TRUE(cache.memory().is_full());
    for (const char* identity : {"x", "y", "z"}) std::filesystem::remove(folder.path() / cache_name(identity, false));
    EXPECT_EQ(cache.get("x", large, anything).second, CacheOutcome::found);
    EXPECT_EQ(cache.get("z", large, anything).second, CacheOutcome::made);
}

}  // namespace
