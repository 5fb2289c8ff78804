// The store of Backend<S3>: folder or bucket, with all that either promises.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/s3/folder_or_bucket.hpp>
#include <strata/testing/object_store_conformance.hpp>

#include "../../support/s3_server.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::s3::FolderOrBucket;

TEST(FolderOrBucket, ConformsAsAFolder) {
    const strata_test::TemporaryFolder folder;
    const FolderOrBucket store{folder.path()};
    EXPECT_EQ(strata::testing::object_store_failures(store), std::vector<std::string>{});
    EXPECT_FALSE(store.is_bucket());
    EXPECT_EQ(store.requests_at_once(), 0);
    store.interrupt();  // of no consequence
    store.put("a", {});
    EXPECT_TRUE(store.exists("a"));
    EXPECT_EQ(store.traffic().put, 0U);
}

TEST(FolderOrBucket, ConformsAsABucket) {
    const strata_test::S3Server server;
    if (server.is_missing()) GTEST_SKIP() << server.why_not();
    ASSERT_EQ(server.why_not(), "");
    const FolderOrBucket store{server.bucket("conformance")};
    EXPECT_EQ(strata::testing::object_store_failures(store), std::vector<std::string>{});
    EXPECT_TRUE(store.is_bucket());
    EXPECT_EQ(store.requests_at_once(), 128);
    EXPECT_GT(store.traffic().put, 0U);
    store.interrupt();
    EXPECT_EQ(strata_test::thrown_by([&] { (void)store.exists("a"); }).code, strata::Errc::interrupted);
}

TEST(FolderOrBucket, ListsOneByOneUntilItIsToldToEnd) {
    const strata_test::TemporaryFolder folder;
    const FolderOrBucket store{folder.path()};
    for (const char* key : {"a/1", "a/2", "b", "a/3"}) store.put(key, {});
    std::vector<std::string> keys;
    strata::storage::list_each(store, "a/", [&](strata::storage::ObjectInfo&& info) {
        keys.push_back(std::move(info.key));
        return keys.size() < 2;
    });
    EXPECT_EQ(keys, (std::vector<std::string>{"a/1", "a/2"}));
}

}  // namespace
