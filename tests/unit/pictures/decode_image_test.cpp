#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/orientation.hpp>

#include "../../support/address_space.hpp"
#include "../../support/made_files.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::pictures;
using namespace strata_test;
using strata::Errc;

Errc refusal_of(std::span<const std::byte> file, const DecodeLimits& limits = {}) {
    const auto error = thrown_by([&] { (void)decode_image(file, {}, "'a/b.xyz'", limits); });
    EXPECT_TRUE(error.says("'a/b.xyz'")) << error.message;
    return error.code;
}

TEST(DecodeImage, EveryJpegKindShowsItsPicture) {
    for (const JpegKind& kind : all_jpeg_kinds())
        for (const auto& [width, height] : {std::pair{64, 48}, std::pair{77, 35}, std::pair{8, 100}}) {
            const MadeJpeg made = make_jpeg(kind, width, height);
            const Picture picture = decode_image(made.file);
            EXPECT_EQ(picture.channels, 3);
            EXPECT_LT(mean_difference(picture, made.shows), 4) << kind.name << ' ' << width;
        }
}

TEST(DecodeImage, TheWayAJpegIsStoredDoesNotChangeItsPixels) {
    const Picture plain = decode_image(make_jpeg({}, 77, 35).file);
    for (const JpegKind& kind :
         {JpegKind{.progressive = true}, JpegKind{.arithmetic = true}, JpegKind{.restart_rows = 1}})
        EXPECT_EQ(decode_image(make_jpeg(kind, 77, 35).file).pixels, plain.pixels);
}

TEST(DecodeImage, InksAreStoredInverted) {
    // Equal blocks survive exactly: 255 - ink, for ink 0, a pure cyan, half a black, and all together.
    const std::vector<std::array<int, 4>> stored{
        {255, 255, 255, 255}, {0, 255, 255, 255}, {255, 255, 255, 128}, {200, 100, 50, 128}};
    for (const auto& ink : stored) {
        std::vector<std::uint8_t> samples;
        for (int i = 0; i < 256; ++i)
            for (const int value : ink) samples.push_back(static_cast<std::uint8_t>(value));
        const Bytes file =
            encode_jpeg({.pixels = JCS_CMYK, .stored = JCS_CMYK, .sampling = 0x11, .quality = 100}, 16, 16, samples);
        const Picture picture = decode_image(file);
        for (std::size_t c = 0; c < 3; ++c)
            EXPECT_NEAR(picture.pixels[300 + c], ink[c] * ink[3] / 255.0, 1.5) << ink[0] << ' ' << c;
    }
}

TEST(DecodeImage, AJpegComesAtTheLeastScaleThatCoversItsTarget) {
    const Bytes file = make_jpeg({}, 1000, 700).file;
    struct Case {
        PictureSize target, expected;
    };
    for (const Case& one : {Case{{0, 0}, {1000, 700}}, Case{{1000, 700}, {1000, 700}}, Case{{4000, 100}, {1000, 700}},
                            Case{{501, 100}, {1000, 700}}, Case{{500, 351}, {1000, 700}}, Case{{500, 350}, {500, 350}},
                            Case{{251, 100}, {500, 350}}, Case{{100, 175}, {250, 175}}, Case{{126, 1}, {250, 175}},
                            Case{{125, 88}, {125, 88}}, Case{{1, 1}, {125, 88}}}) {
        const Picture picture = decode_image(file, one.target);
        EXPECT_EQ((PictureSize{picture.width, picture.height}), one.expected)
            << one.target.width << " x " << one.target.height;
    }
}

TEST(DecodeImage, AReducedJpegIsTheSamePictureInSmall) {
    for (const JpegKind& kind : all_jpeg_kinds()) {
        const Bytes file = make_jpeg(kind, 400, 304).file;
        const Picture full = decode_image(file);
        for (const int denominator : {2, 4, 8}) {
            const Picture small = decode_image(file, {400 / denominator, 304 / denominator});
            ASSERT_EQ(small.width, 400 / denominator) << kind.name;
            Picture average{small.width, small.height, 3, {}};
            for (std::int64_t y = 0; y < small.height; ++y)
                for (std::int64_t x = 0; x < small.width; ++x)
                    for (std::int64_t c = 0; c < 3; ++c) {
                        int sum = 0;
                        for (int j = 0; j < denominator; ++j)
                            for (int i = 0; i < denominator; ++i)
                                sum += full.pixels[static_cast<std::size_t>(
                                    ((y * denominator + j) * 400 + x * denominator + i) * 3 + c)];
                        average.pixels.push_back(static_cast<std::uint8_t>(sum / (denominator * denominator)));
                    }
            EXPECT_LT(mean_difference(small, average), 2.5) << kind.name << " 1/" << denominator;
        }
    }
}

TEST(DecodeImage, AReducedJpegIsNeverSmallerThanItsTargetWhicheverWayItLies) {
    for (unsigned n = 1; n <= 8; ++n)
        for (const auto& [width, height] : {std::pair{333, 127}, std::pair{90, 201}}) {
            const Bytes file = inserted(make_jpeg({}, width, height).file, 2, exif_segment(exif(n)));
            const PictureSize upright = turned({width, height}, static_cast<Orientation>(n));
            for (std::int64_t w = 1; w <= 340; w += 31)
                for (std::int64_t h = 1; h <= 340; h += 37) {
                    const Picture picture = decode_image(file, {w, h});
                    EXPECT_GE(picture.width, std::min(w, upright.width));
                    EXPECT_GE(picture.height, std::min(h, upright.height));
                }
        }
}

/// Where the bright quarter of soft_picture() is: 0 1 above, 2 3 below.
int bright_quarter(const Picture& picture) {
    const auto red = [&](std::int64_t x, std::int64_t y) {
        return picture.pixels[static_cast<std::size_t>((y * picture.width + x) * picture.channels)];
    };
    const std::int64_t right = picture.width - 3;
    const std::int64_t low = picture.height - 3;
    const std::array<std::uint8_t, 4> corners{red(2, 2), red(right, 2), red(2, low), red(right, low)};
    return static_cast<int>(std::max_element(corners.begin(), corners.end()) - corners.begin());
}

TEST(DecodeImage, EveryFormatIsTurnedUpright) {
    constexpr std::array<int, 9> quarters{0, 0, 1, 3, 2, 0, 1, 3, 2};
    const Picture picture = soft_picture(60, 40);
    const Bytes jpeg = make_jpeg({}, 60, 40).file;
    const Bytes png = encode_png(60, 40, picture.pixels);
    const Bytes still = make_webp(picture, true);
    for (unsigned n = 1; n <= 8; ++n) {
        const PictureSize size = turned({60, 40}, static_cast<Orientation>(n));
        const Picture expected = turn_upright(picture, static_cast<Orientation>(n));
        const Bytes turned_png = inserted(png, after_png_header, png_chunk("eXIf", exif(n)));
        const Bytes turned_webp =
            webp_file(joined({vp8x_chunk(0x08, 60, 40), webp_chunks(still), webp_chunk("EXIF", exif(n))}));
        for (const Bytes& file : {inserted(jpeg, 2, exif_segment(exif(n))), turned_png, turned_webp}) {
            const Picture seen = decode_image(file);
            EXPECT_EQ((PictureSize{seen.width, seen.height}), size) << n;
            EXPECT_EQ(bright_quarter(seen), quarters[n]) << n;
            EXPECT_LT(mean_difference(seen, expected), 4) << n;
        }
        EXPECT_EQ(decode_image(turned_png).pixels, expected.pixels);
        EXPECT_EQ(decode_image(turned_webp).pixels, expected.pixels);
    }
}

TEST(DecodeImage, AlphaAndPixelsOfWebpAreKept) {
    for (const std::int64_t channels : {3, 4}) {
        const Picture picture = soft_picture(61, 37, channels);
        const Picture lossless = decode_image(make_webp(picture, true));
        EXPECT_EQ(lossless.channels, channels);
        EXPECT_EQ(lossless.pixels, picture.pixels);
        EXPECT_LT(mean_difference(decode_image(make_webp(picture, false)), picture), 4);
    }
}

TEST(DecodeImage, OfAnAnimationTheFirstFrameCounts) {
    for (const std::int64_t channels : {3, 4}) {
        const Picture frame = soft_picture(20, 10, channels);
        const Picture picture = decode_image(make_animation(frame, 50, 40, 6, 4));
        ASSERT_EQ((PictureSize{picture.width, picture.height}), (PictureSize{50, 40}));
        ASSERT_EQ(picture.channels, channels);
        for (std::int64_t y = 0; y < 40; ++y)
            for (std::int64_t x = 0; x < 50; ++x)
                for (std::int64_t c = 0; c < channels; ++c) {
                    const bool inside = x >= 6 && x < 26 && y >= 4 && y < 14;
                    const int expected =
                        inside ? frame.pixels[static_cast<std::size_t>(((y - 4) * 20 + x - 6) * channels + c)] : 0;
                    ASSERT_EQ(picture.pixels[static_cast<std::size_t>((y * 50 + x) * channels + c)], expected)
                        << x << ' ' << y;
                }
    }
}

TEST(DecodeImage, EveryTruncationIsRefused) {
    for (const JpegKind& kind : all_jpeg_kinds()) {
        const Bytes file = make_jpeg(kind, 40, 24).file;
        for (std::size_t size = 0; size < file.size(); ++size)
            EXPECT_THROW((void)decode_image(std::span{file}.first(size)), strata::Error) << kind.name << ' ' << size;
    }
    for (const Bytes& file : {make_webp(soft_picture(40, 24), true), make_webp(soft_picture(40, 24, 4), false),
                              make_animation(soft_picture(20, 10), 50, 40, 6, 4)})
        for (std::size_t size = 0; size < file.size(); ++size)
            EXPECT_THROW((void)decode_image(std::span{file}.first(size)), strata::Error) << size;
    const Bytes jpeg = make_jpeg({}, 40, 24).file;
    EXPECT_EQ(refusal_of(std::span{jpeg}.first(jpeg.size() / 2)), Errc::bad_picture);
    EXPECT_EQ(decode_image(joined({jpeg, Bytes(1000)})).pixels, decode_image(jpeg).pixels);
}

TEST(DecodeImage, LimitsHoldForEveryFormat) {
    const std::vector<Bytes> files{make_jpeg({}, 60, 40).file, encode_png(60, 40, soft_picture(60, 40).pixels),
                                   make_webp(soft_picture(60, 40), true), make_webp(soft_picture(60, 40), false),
                                   make_animation(soft_picture(20, 10), 60, 40, 6, 4)};
    for (const Bytes& file : files) {
        EXPECT_EQ(decode_image(file, {}, "x", {.edge = 60, .pixels = 2400}).width, 60);
        EXPECT_EQ(refusal_of(file, {.edge = 59, .pixels = 2400}), Errc::picture_too_large);
        EXPECT_EQ(refusal_of(file, {.edge = 60, .pixels = 2399}), Errc::picture_too_large);
        const auto bytes = static_cast<std::int64_t>(file.size());
        EXPECT_EQ(decode_image(file, {}, "x", {.file_bytes = bytes}).width, 60);
        EXPECT_EQ(refusal_of(file, {.file_bytes = bytes - 1}), Errc::picture_too_large);
    }
}

TEST(DecodeImage, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
    Bytes jpeg = make_jpeg({.progressive = true}, 60, 40).file;
    std::size_t frame = 0;
    while (jpeg[frame] != std::byte{0xFF} || jpeg[frame + 1] != std::byte{0xC2}) ++frame;
    std::fill_n(jpeg.begin() + static_cast<std::ptrdiff_t>(frame) + 5, 4, std::byte{0xFF});  // 65535 x 65535
    Bytes lossless = make_webp(soft_picture(60, 40), true);
    for (std::size_t i = 21; i < 24; ++i) lossless[i] = std::byte{0xFF};  // 16384 x 1024, just within
    const Bytes still = webp_chunks(make_webp(soft_picture(60, 40), true));
    const Bytes canvas = webp_file(joined({vp8x_chunk(0, 1 << 24, 200), still}));
    const Bytes animation = make_animation(soft_picture(20, 10), 1 << 14, 1 << 24, 0, 0);
    Bytes png = encode_png(60, 40, soft_picture(60, 40).pixels);
    const Bytes size = joined({big_endian_bytes(40'000, 4), big_endian_bytes(40'000, 4)});
    std::copy(size.begin(), size.end(), png.begin() + 16);
    const Bytes sum = big_endian_bytes(::crc32(0, reinterpret_cast<const unsigned char*>(png.data()) + 12, 17), 4);
    std::copy(sum.begin(), sum.end(), png.begin() + 29);
    const AddressSpaceLimit limit{std::uint64_t{64} << 20};
    for (const Bytes& file : {jpeg, canvas, animation, png})
        EXPECT_EQ(refusal_of(file, {.edge = 32768, .pixels = 1 << 24}), Errc::picture_too_large);
    EXPECT_EQ(refusal_of(lossless, {.edge = 32768, .pixels = 1 << 24}), Errc::bad_picture);
}

TEST(DecodeImage, AJpegOfTooManyScansIsRefused) {
    // Each scan says again what the last bit of the first coefficients is: valid, and as long as somebody likes.
    const Bytes file = make_jpeg({.progressive = true}, 8, 8).file;
    const Bytes mark{std::byte{0xFF}, std::byte{0xDA}};
    const auto last = std::find_end(file.begin(), file.end(), mark.begin(), mark.end());
    const Bytes scan(last, file.end() - 2);
    Bytes many(file.begin(), last);
    for (int i = 0; i < 500; ++i) append(many, scan);
    append(many, Bytes(file.end() - 2, file.end()));
    const auto error = thrown_by([&] { (void)decode_image(many); });
    EXPECT_EQ(error.code, Errc::picture_too_large);
    EXPECT_TRUE(error.says("too many scans")) << error.message;
}

TEST(DecodeImage, TakesNoMoreMemoryThanItSays) {
    // Two million pixels each, against an address space of what was said and 4 MiB for the heap's own pages.
    constexpr std::int64_t width = 2000;
    constexpr std::int64_t height = 1000;
    const Picture picture = soft_picture(width, height, 4);
    const std::vector<std::uint8_t> rgb = soft_picture(width, height).pixels;
    const Bytes turned_by = exif_segment(exif(6));
    const Bytes still = make_webp(picture, true);
    for (const Bytes& file :
         {inserted(encode_jpeg({.sampling = 0x11, .progressive = true}, width, height, rgb), 2, turned_by),
          encode_jpeg({.pixels = JCS_CMYK, .stored = JCS_CMYK, .sampling = 0x11, .progressive = true}, width, height,
                      picture.pixels),
          encode_jpeg({}, width, height, rgb),
          inserted(encode_png(width, height, rgb), after_png_header, png_chunk("eXIf", exif(6))), still,
          make_webp(picture, false),
          webp_file(joined({vp8x_chunk(0x18, width, height), webp_chunks(still), webp_chunk("EXIF", exif(6))}))})
        for (const PictureSize& target : {PictureSize{}, PictureSize{500, 500}}) {
            const std::int64_t said = decode_bytes(image_header(file), target);
            const AddressSpaceLimit limit{static_cast<std::uint64_t>(said) + (4U << 20)};
            EXPECT_GT(decode_image(file, target).width, 0) << said;
        }
}

TEST(DecodeImage, OtherFormatsAreUnsupported) {
    EXPECT_EQ(refusal_of(bytes_of("8BPS and more bytes")), Errc::unsupported_picture);
    EXPECT_EQ(refusal_of(bytes_of("no picture")), Errc::unsupported_picture);
    EXPECT_EQ(refusal_of({}), Errc::bad_picture);
}

}  // namespace
