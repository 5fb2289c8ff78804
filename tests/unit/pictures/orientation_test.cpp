#include <string>

#include <gtest/gtest.h>

#include <strata/pictures/orientation.hpp>

#include "../../support/made_files.hpp"

namespace {

using namespace strata::pictures;
using strata_test::exif;

/// Rows of letters, one a pixel: "ab/cd".
Picture letters(std::string_view rows, std::int64_t channels) {
    Picture picture{0, 1, channels, {}};
    for (const char letter : rows) {
        if (letter == '/') {
            ++picture.height;
            continue;
        }
        for (std::int64_t c = 0; c < channels; ++c) picture.pixels.push_back(static_cast<std::uint8_t>(letter + c));
    }
    picture.width = static_cast<std::int64_t>(picture.pixels.size()) / channels / picture.height;
    return picture;
}

TEST(Orientation, EveryOneTurnsAsTheStandardSays) {
    // What the stored rows "abc/def" look like when the tag says n (EXIF: where row 0 and column 0 belong).
    const std::array<std::string_view, 9> seen{"",         "abc/def",  "cba/fed",  "fed/cba", "def/abc",
                                               "ad/be/cf", "da/eb/fc", "fc/eb/da", "cf/be/ad"};
    for (const std::int64_t channels : {3, 4})
        for (int n = 1; n <= 8; ++n) {
            const Picture turned_picture = turn_upright(letters("abc/def", channels), static_cast<Orientation>(n));
            const Picture expected = letters(seen[static_cast<std::size_t>(n)], channels);
            EXPECT_EQ(turned_picture.width, expected.width) << n;
            EXPECT_EQ(turned_picture.height, expected.height) << n;
            EXPECT_EQ(turned_picture.pixels, expected.pixels) << n;
            EXPECT_EQ(turned_picture.channels, channels);
            EXPECT_EQ(turned({3, 2}, static_cast<Orientation>(n)), (PictureSize{expected.width, expected.height})) << n;
        }
}

TEST(Orientation, LargerPicturesComeBackWhenTurnedBack) {
    const Picture picture = strata_test::soft_picture(101, 67);
    for (int n = 1; n <= 8; ++n) {
        const int back = n == 6 ? 8 : n == 8 ? 6 : n;
        const Picture twice =
            turn_upright(turn_upright(picture, static_cast<Orientation>(n)), static_cast<Orientation>(back));
        EXPECT_EQ(twice.width, 101);
        EXPECT_EQ(twice.pixels, picture.pixels) << n;
    }
}

TEST(Orientation, IsReadFromExifInBothByteOrders) {
    for (const bool big_endian : {false, true})
        for (const unsigned type : {1U, 3U, 4U})
            for (unsigned n = 1; n <= 8; ++n)
                EXPECT_EQ(exif_orientation(exif(n, big_endian, type)), static_cast<Orientation>(n)) << type << ' ' << n;
}

TEST(Orientation, AValueThatMeansNothingIsUpright) {
    for (const unsigned n : {0U, 9U, 255U, 65535U}) EXPECT_EQ(exif_orientation(exif(n)), Orientation::upright);
    EXPECT_EQ(exif_orientation(exif(6, true, 2)), Orientation::upright);  // a text
}

TEST(Orientation, DamagedExifIsNoneOrAnOrientation) {
    const auto good = exif(6);
    EXPECT_EQ(exif_orientation({}), std::nullopt);
    for (std::size_t size = 0; size < good.size(); ++size) {
        const auto found = exif_orientation(std::span{good}.first(size));
        if (found) {
            EXPECT_LE(static_cast<int>(*found), 8);
        }
    }
    for (std::size_t i = 0; i < good.size(); ++i)
        for (int bit = 0; bit < 256; ++bit) {
            auto damaged = good;
            damaged[i] = static_cast<std::byte>(bit);
            const auto found = exif_orientation(damaged);
            if (found) {
                EXPECT_GE(static_cast<int>(*found), 1);
                EXPECT_LE(static_cast<int>(*found), 8);
            }
        }
    // A directory that begins at the last address there is, or says that it has 65535 entries.
    auto far = good;
    for (std::size_t i = 4; i < 8; ++i) far[i] = std::byte{0xFF};
    EXPECT_EQ(exif_orientation(far), std::nullopt);
    auto many = good;
    many[8] = many[9] = std::byte{0xFF};
    EXPECT_EQ(exif_orientation(many), Orientation::turn_right);
}

TEST(Orientation, IsReadFromXmpAsAttributeAndAsElement) {
    EXPECT_EQ(xmp_orientation("<rdf:Description tiff:Orientation=\"8\" x=\"3\"/>"), Orientation::turn_left);
    EXPECT_EQ(xmp_orientation("<a tiff:Orientation='3'>"), Orientation::turn_half);
    EXPECT_EQ(xmp_orientation("<tiff:Orientation>5</tiff:Orientation>"), Orientation::transpose);
    EXPECT_EQ(xmp_orientation("tiff:Orientation tiff:Orientation>2"), Orientation::mirror);
    EXPECT_EQ(xmp_orientation("tiff:Orientation=\"0\""), Orientation::upright);
    for (const std::string_view nothing :
         {"", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation>x", "exif:Orientation=\"3\""})
        EXPECT_EQ(xmp_orientation(nothing), std::nullopt) << nothing;
}

}  // namespace
