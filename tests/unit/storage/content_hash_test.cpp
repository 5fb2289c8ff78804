#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>

namespace {

namespace storage = strata::storage;
using storage::ContentHash;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text.data(), text.size()}); }

// Names of cache entries depend on it: FIPS 180-4, the first half of the digits that sha256sum prints.
TEST(ContentHash, IsTheFirstHalfOfASha256) {
    EXPECT_EQ(storage::to_hex(storage::content_hash(bytes("abc")).bytes), "ba7816bf8f01cfea414140de5dae2223");
    EXPECT_EQ(storage::to_hex(storage::content_hash({}).bytes), "e3b0c44298fc1c149afbf4c8996fb924");
}

TEST(ContentHash, EveryByteAndTheLengthMakeAnother) {
    std::vector<std::byte> file(300);
    const ContentHash whole = storage::content_hash(file);
    for (std::size_t i = 0; i < file.size(); ++i) {
        file[i] = std::byte{1};
        EXPECT_NE(storage::content_hash(file), whole) << i;
        file[i] = std::byte{0};
    }
    EXPECT_EQ(storage::content_hash(file), whole);
    file.push_back(std::byte{0});
    EXPECT_NE(storage::content_hash(file), whole);
}

TEST(ContentHash, GoesThroughTextAndIsUnknownOtherwise) {
    const ContentHash hash = storage::content_hash(bytes("abc"));
    EXPECT_TRUE(hash);
    EXPECT_EQ(ContentHash::of_text(hash.text()), hash);
    EXPECT_FALSE(ContentHash{});
    EXPECT_FALSE(ContentHash::of_text(""));
    EXPECT_FALSE(ContentHash::of_text("fifteen bytes.."));
}

}  // namespace
