// FNV-1a against the values that its authors publish; files and folders are named and found by them.

#include <array>
#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

#include <strata/core/fnv1a.hpp>

namespace {

using strata::core::fnv1a;
using strata::core::fnv1a_128;
using strata::core::fnv1a_start;

TEST(Fnv1a, EqualsThePublishedValues) {
    EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
    EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
    EXPECT_EQ(fnv1a_128(""), (std::array<std::uint64_t, 2>{0x6c62272e07bb0142U, 0x62b821756295c58dU}));
    EXPECT_EQ(fnv1a_128("a"), (std::array<std::uint64_t, 2>{0xd228cb696f1a8cafU, 0x78912b704e4a8964U}));
}

TEST(Fnv1a, OfPartsIsThatOfTheWhole) {
    constexpr std::string_view text =
        "a caption, 100 % r\xc3\xa9"
        "el";
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
        EXPECT_EQ(fnv1a(text.substr(cut), fnv1a(text.substr(0, cut))), fnv1a(text)) << cut;
}

TEST(Fnv1a, BytesAboveHalfAreNotNegative) { EXPECT_EQ(fnv1a("\xff"), (fnv1a_start ^ 0xffU) * 0x100000001b3U); }

}  // namespace
