#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <strata/storage/digest.hpp>

namespace {

namespace storage = strata::storage;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text.data(), text.size()}); }

// FIPS 180-4 examples, RFC 1321 section A.5, RFC 4231 cases 1, 2 and 6, RFC 4648 section 10.
TEST(Digest, EqualsThePublishedValues) {
    EXPECT_EQ(storage::to_hex(storage::sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(storage::to_hex(storage::sha256(bytes("abc"))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(storage::to_hex(storage::md5({})), "d41d8cd98f00b204e9800998ecf8427e");
    EXPECT_EQ(storage::to_hex(storage::md5(bytes("message digest"))), "f96b697d7cb7938d525a2f31aaf161d0");
    const std::vector<std::byte> twenty(20, std::byte{0x0b});
    EXPECT_EQ(storage::to_hex(storage::hmac_sha256(twenty, "Hi There")),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    EXPECT_EQ(storage::to_hex(storage::hmac_sha256(bytes("Jefe"), "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    const std::vector<std::byte> long_key(131, std::byte{0xaa});
    EXPECT_EQ(storage::to_hex(storage::hmac_sha256(long_key, "Test Using Larger Than Block-Size Key - Hash Key First")),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    EXPECT_EQ(storage::to_base64({}), "");
    EXPECT_EQ(storage::to_base64(bytes("f")), "Zg==");
    EXPECT_EQ(storage::to_base64(bytes("fo")), "Zm8=");
    EXPECT_EQ(storage::to_base64(bytes("foobar")), "Zm9vYmFy");
}

}  // namespace
