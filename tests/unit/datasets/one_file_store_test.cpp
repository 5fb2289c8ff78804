// The store of docs/write-a-store.md and examples/05_write_a_store.cpp.

#include <gtest/gtest.h>

#include <strata/storage/local.hpp>
#include <strata/testing/object_store_conformance.hpp>

#include "../../../examples/one_file_store.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata_test::TemporaryFolder;

//! [conformance]
TEST(OneFileStore, KeepsThePromisesOfAStore) {
    const TemporaryFolder folder;
    EXPECT_EQ(strata::testing::object_store_failures(OneFile{folder.path()}), std::vector<std::string>{});
}
//! [conformance]

TEST(OneFileStore, StoresOfOneFolderSeeEachOthersObjectsInOneFile) {
    const TemporaryFolder folder;
    const OneFile one{folder.path()};
    const OneFile other{folder.path()};
    one.put("a/b.bin", OneFile::Bytes(5, std::byte{7}));
    EXPECT_EQ(other.get("a/b.bin"), OneFile::Bytes(5, std::byte{7}));
    const auto before = other.head("a/b.bin");
    ASSERT_TRUE(before);
    one.put("a/b.bin", OneFile::Bytes(5, std::byte{8}));
    EXPECT_NE(other.head("a/b.bin")->version, before->version);
    other.remove("a/b.bin");
    EXPECT_FALSE(one.exists("a/b.bin"));
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "objects.sqlite"));
}

}  // namespace
