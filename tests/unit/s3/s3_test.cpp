// S3 against a real server, a Ceph RADOS gateway that lives as long as this suite. Skips where it is not installed.

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/policy/setup.hpp>
#include <strata/s3/folder_or_bucket.hpp>
#include <strata/s3/s3.hpp>
#include <strata/storage/gzip.hpp>
#include <strata/testing/object_store_conformance.hpp>

#include "../../support/retry_in_steps.hpp"
#include "../../support/s3_server.hpp"

namespace {

using strata::Errc;
using strata_test::FaultyProxy;
using strata_test::S3Server;
using strata_test::thrown_by;
namespace s3 = strata::s3;
namespace storage = strata::storage;
using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text.data(), text.size()}); }
std::string text(const Bytes& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

Bytes numbers(std::size_t size) {
    Bytes made(size);
    for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<std::byte>((i * 2654435761U) >> 13U);
    return made;
}

class S3 : public strata_test::WithS3Server {};

TEST_F(S3, Conforms) {
    const strata::S3 store{server->bucket("conformance")};
    EXPECT_EQ(strata::testing::object_store_failures(store), std::vector<std::string>{});
    s3::S3Options options = server->bucket("conformance");
    options.addressing = s3::Addressing::virtual_host;  // the server calls itself localhost
    options.endpoint_url = "http://localhost:" + std::to_string(server->port());
    options.data_prefix = "a/b c+d";
    options.max_pool_connections = 2;
    EXPECT_EQ(strata::testing::object_store_failures(strata::S3{options}), std::vector<std::string>{});
}

TEST_F(S3, IsTheStoreOfItsPolicy) {
    using Mine = strata::Setup<strata::ZeroStage<2>, strata::Backend<strata::S3>>;
    static_assert(storage::ObjectStore<Mine::backend::store>);
    //! [s3]
    s3::S3Options options = server->bucket("policy");
    options.data_prefix = "photos";
    const Mine::backend::store store{options};
    store.put("cats/1.txt", bytes("a cat"));
    const auto objects = store.list("cats/");
    const std::string bill = summary(store.traffic());  // "1 LIST, 0 HEAD, 0 GET, 1 PUT, 0 DELETE, ..."
    //! [s3]
    ASSERT_EQ(objects.size(), 1U);
    EXPECT_EQ(objects[0].key, "cats/1.txt");
    EXPECT_TRUE(bill.starts_with("1 LIST, 0 HEAD, 0 GET, 1 PUT, 0 DELETE, ")) << bill;
    EXPECT_TRUE(bill.ends_with(" in, 5 bytes out")) << bill;
}

TEST_F(S3, TakesKeysThatNoFolderCouldHold) {
    const strata::S3 store{server->bucket("keys")};
    const std::vector<std::string> keys{"/a",         "//a",
                                        "a",          "a//b",
                                        "a/b",        "a/",
                                        "a/./b",      "a/../b",
                                        "..",         ".",
                                        "a b/c+d%",   "%2F",
                                        "a%2Fb",      "猫//é +",
                                        "a\x01\x02b", "//",
                                        "a?b#c",      "\xF0\x9F\x98\x80",
                                        "a\nb",       "a\\b",
                                        "<&>\"']]>",  std::string(1024, 'k')};
    for (std::size_t i = 0; i < keys.size(); ++i) store.put(keys[i], bytes(std::to_string(i)));
    std::set<std::string> expected{keys.begin(), keys.end()};
    std::vector<std::string> listed;
    for (const auto& info : store.list("")) listed.push_back(info.key);
    EXPECT_EQ(listed, std::vector<std::string>(expected.begin(), expected.end()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        EXPECT_EQ(text(store.get(keys[i])), std::to_string(i)) << keys[i];
        EXPECT_TRUE(store.exists(keys[i])) << keys[i];
        const auto found = store.list_page(keys[i], "", 1);
        ASSERT_EQ(found.objects.size(), 1U) << keys[i];
        EXPECT_TRUE(found.objects[0].key.starts_with(keys[i])) << keys[i];
    }
    for (const std::string& key : keys) store.remove(key);
    EXPECT_TRUE(store.list("").empty());
}

TEST_F(S3, ListsThousandsOfObjectsPageByPage) {
    constexpr int count = 2500;
    const strata::S3 store{server->bucket("pages")};
    const auto name = [](int i) { return "page +" + std::to_string(10'000 + i); };
    std::atomic<int> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
        threads.emplace_back([&] {
            for (int i = next++; i < count; i = next++) store.put(name(i), bytes("x"));
        });
    for (std::thread& thread : threads) thread.join();

    const auto before = store.traffic();
    const auto all = store.list("");
    ASSERT_EQ(all.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].key, name(i));
    EXPECT_EQ(store.traffic().list - before.list, 3U);

    const auto page = store.list_page("", "", 1000);
    EXPECT_EQ(page.objects.size(), 1000U);
    const strata::S3 another_process{server->bucket("pages")};
    const auto second = another_process.list_page("", page.next, 1000);
    EXPECT_EQ(second.objects.at(0).key, name(1000));
    const auto last = another_process.list_page("", second.next, 5000);
    EXPECT_EQ(last.objects.size(), 500U);
    EXPECT_EQ(last.next, "");
}

TEST_F(S3, MovesLargeObjectsInParts) {
    const strata::S3 store{server->bucket("parts")};
    const Bytes twenty = numbers(20'000'000);
    store.put("big", twenty);
    EXPECT_EQ(store.traffic().put, 5U);  // begin, three parts, end
    EXPECT_EQ(store.get("big"), twenty);
    EXPECT_EQ(store.traffic().get, 4U);  // one that shows the size, three parts
    const auto info = store.head("big");
    ASSERT_TRUE(info);
    EXPECT_EQ(info->size, twenty.size());
    EXPECT_TRUE(info->version.ends_with("-3")) << info->version;
    EXPECT_EQ(store.get_range("big", 8'388'600, 16), Bytes(twenty.begin() + 8'388'600, twenty.begin() + 8'388'616));
    EXPECT_EQ(store.get_range("big", 1'000'000, 18'000'000),
              Bytes(twenty.begin() + 1'000'000, twenty.begin() + 19'000'000));

    // Exactly one part, and a byte more; an object in one piece that is read in several.
    const std::size_t part = 8U << 20U;
    for (const std::size_t size : {part, part + 1}) {
        const Bytes made = numbers(size);
        store.put("edge", made);
        EXPECT_EQ(store.get("edge"), made) << size;
    }
    s3::S3Options whole = server->bucket("parts");
    whole.part_bytes = 32U << 20U;
    strata::S3{whole}.put("one piece", twenty);
    EXPECT_FALSE(store.head("one piece")->version.ends_with("-1"));
    EXPECT_EQ(store.get("one piece"), twenty);
    EXPECT_EQ(store.traffic().retries, 0U);
    EXPECT_TRUE(store.traffic().bytes_in > 3 * twenty.size() && store.traffic().bytes_out > twenty.size());
}

TEST_F(S3, KeepsCompressedBytesAsTheyAre) {
    const strata::S3 store{server->bucket("gzip")};
    const Bytes packed = storage::gzip_compress(numbers(10'000));
    store.put("latents.safetensors.gz", packed);
    EXPECT_EQ(store.get("latents.safetensors.gz"), packed);
}

TEST_F(S3, WrongKeysAreNamedAndNotShown) {
    s3::S3Options options = server->bucket("mine");
    options.secret_access_key = "another-secret-entirely";
    const strata::S3 store{options};
    for (const auto& error : {thrown_by([&] { (void)store.list(""); }), thrown_by([&] { (void)store.head("k"); }),
                              thrown_by([&] { (void)store.get("k"); }), thrown_by([&] { store.put("k", bytes("x")); }),
                              thrown_by([&] { store.remove("k"); })}) {
        EXPECT_EQ(error.code, Errc::store_refused);
        EXPECT_TRUE(error.says("the secret access key of the configuration is wrong")) << error.message;
        EXPECT_TRUE(error.says(server->url() + "/mine/")) << error.message;
        EXPECT_FALSE(error.says("another-secret") || error.says(S3Server::key)) << error.message;
    }
    options.access_key_id = "NOBODYSKEY";
    const auto error = thrown_by([&] { (void)strata::S3{options}.list(""); });
    EXPECT_EQ(error.code, Errc::store_refused);
    EXPECT_TRUE(error.says("does not know the access key")) << error.message;
    EXPECT_FALSE(error.says("NOBODYSKEY")) << error.message;
}

TEST_F(S3, ABucketThatIsNotThereIsNamed) {
    s3::S3Options options = server->bucket("mine");
    options.bucket = "not-there";
    const strata::S3 store{options};
    for (const auto& error :
         {thrown_by([&] { (void)store.list(""); }), thrown_by([&] { (void)store.exists("k"); }),
          thrown_by([&] { (void)store.get("k"); }), thrown_by([&] { store.put("k", bytes("x")); }),
          thrown_by([&] { store.put("k", Bytes(9U << 20U)); }), thrown_by([&] { store.remove("k"); })}) {
        EXPECT_EQ(error.code, Errc::no_bucket);
        EXPECT_TRUE(error.says("bucket 'not-there' does not exist at " + server->url())) << error.message;
    }
}

TEST_F(S3, AWrongClockIsSaidWithItsError) {
    s3::S3Options options = server->bucket("mine");
    options.clock = [] { return std::chrono::system_clock::now() + 3600s; };
    const auto error = thrown_by([&] { (void)strata::S3{options}.list(""); });
    EXPECT_EQ(error.code, Errc::clock_skew);
    EXPECT_TRUE(error.says(" s ahead of the clock of " + server->url())) << error.message;
    options.clock = [] { return std::chrono::system_clock::now() - 3600s; };
    EXPECT_TRUE(thrown_by([&] { (void)strata::S3{options}.exists("k"); }).says(" s behind the clock of "));
    options.clock = [] { return std::chrono::system_clock::now() + 600s; };
    EXPECT_TRUE(strata::S3{options}.list("").empty()) << "ten minutes are allowed";
}

TEST_F(S3, TransfersThatBreakAreMadeAgain) {
    const Bytes made = numbers(300'000);
    const strata::S3 direct{server->bucket("broken")};
    direct.put("k", made);
    s3::S3Options options = server->bucket("broken");
    options.retry = {.patience = 3s};
    options.retry_hooks = strata_test::retry_in_steps();

    const FaultyProxy mends{server->port(),
                            [](int n) { return FaultyProxy::Fault{.cut_after = n < 2 ? 100'000U : SIZE_MAX}; }};
    options.endpoint_url = mends.url();
    const strata::S3 store{options};
    EXPECT_EQ(store.get("k"), made);
    EXPECT_EQ(store.traffic().retries, 2U);
    EXPECT_EQ(mends.connections(), 3);

    const FaultyProxy never{server->port(), [](int) { return FaultyProxy::Fault{.cut_after = 100'000}; }};
    options.endpoint_url = never.url();
    const auto error = thrown_by([&] { (void)strata::S3{options}.get("k"); });
    EXPECT_EQ(error.code, Errc::transfer_failed);
    EXPECT_TRUE(error.says("broke in mid-transfer") && error.says("4 times in 3 s") && error.says(never.url()))
        << error.message;

    // What is written while connections break is there whole, or not at all.
    const FaultyProxy answers_lost{server->port(),
                                   [](int n) { return FaultyProxy::Fault{.cut_after = n < 3 ? 0U : SIZE_MAX}; }};
    options.endpoint_url = answers_lost.url();
    options.retry.attempts_at_first = 4;
    const strata::S3 writer{options};
    writer.put("written", made);
    EXPECT_EQ(direct.get("written"), made);
    EXPECT_EQ(direct.list("").size(), 2U);
}

TEST_F(S3, AServerThatIsKilledInMidTransferIsNamed) {
    auto mortal = std::make_unique<S3Server>();
    ASSERT_EQ(mortal->why_not(), "");
    s3::S3Options options = mortal->bucket("mortal");
    options.part_bytes = 64U << 20U;  // one request; more than what sockets hold back
    options.retry = {.patience = 2s};
    options.retry_hooks = strata_test::retry_in_steps();
    const std::string url = mortal->url();
    strata::S3{options}.put("k", numbers(40'000'000));
    const FaultyProxy kills{mortal->port(), [&](int) {
                                return FaultyProxy::Fault{.call_after = 1'000'000, .call = [&] { mortal.reset(); }};
                            }};
    options.endpoint_url = kills.url();
    const auto killed = thrown_by([&] { (void)strata::S3{options}.get("k"); });
    EXPECT_EQ(mortal, nullptr);
    EXPECT_EQ(killed.code, Errc::transfer_failed);
    EXPECT_TRUE(killed.says("broke in mid-transfer") && killed.says("3 times in 2 s")) << killed.message;

    options.endpoint_url = url;
    const auto gone = thrown_by([&] { strata::S3{options}.put("k", bytes("x")); });
    EXPECT_EQ(gone.code, Errc::store_unreachable);
    EXPECT_TRUE(gone.says("no connection to " + url)) << gone.message;
}

TEST_F(S3, AServerThatFallsSilentIsGivenUpAndTriedAgain) {
    const Bytes made = numbers(300'000);
    strata::S3{server->bucket("silent")}.put("k", made);
    const FaultyProxy stalls{server->port(),
                             [](int n) { return FaultyProxy::Fault{.stall_after = n == 0 ? 50'000U : SIZE_MAX}; }};
    s3::S3Options options = server->bucket("silent");
    options.endpoint_url = stalls.url();
    options.stall_timeout = 1s;
    options.retry.first_wait = 1ms;
    const strata::S3 store{options};
    EXPECT_EQ(store.get("k"), made);
    EXPECT_EQ(store.traffic().retries, 1U);
}

TEST_F(S3, ManyThreadsUseOneStore) {
    s3::S3Options options = server->bucket("threads");
    options.max_pool_connections = 4;
    const strata::S3 store{options};
    const Bytes made = numbers(200'000);
    for (int i = 0; i < 8; ++i)
        store.put(std::to_string(i), std::span{made}.first(static_cast<std::size_t>(1000 + 20'000 * i)));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
        threads.emplace_back([&, t] {
            for (int k = 0; k < 20; ++k) {
                const int i = (t + k) % 8;
                const auto size = static_cast<std::size_t>(1000 + 20'000 * i);
                if (store.get(std::to_string(i)) !=
                    Bytes(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(size)))
                    ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(store.traffic().get, 320U);
}

}  // namespace
