#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <strata/pictures/image_header.hpp>

#include "../../support/made_files.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::pictures;
using namespace strata_test;
using strata::Errc;

/// A file that counts what is read of it.
struct CountedFile {
    Bytes file;
    std::size_t bytes = 0;
    int reads = 0;

    ImageHeader header() {
        return read_image_header(
            [this](std::uint64_t offset, std::size_t length) {
                ++reads;
                const std::size_t begin = std::min<std::size_t>(offset, file.size());
                const std::size_t end = std::min(begin + length, file.size());
                bytes += end - begin;
                return Bytes(file.begin() + static_cast<std::ptrdiff_t>(begin),
                             file.begin() + static_cast<std::ptrdiff_t>(end));
            },
            "'counted'");
    }
};

Errc refusal_of(const Bytes& file) {
    return thrown_by([&] { (void)image_header(file); }).code;
}

TEST(ImageHeader, EveryPngKindHasItsSizeAndChannels) {
    const std::map<int, int> channels{{PNG_COLOR_TYPE_GRAY, 1},
                                      {PNG_COLOR_TYPE_GRAY_ALPHA, 2},
                                      {PNG_COLOR_TYPE_PALETTE, 3},
                                      {PNG_COLOR_TYPE_RGB, 3},
                                      {PNG_COLOR_TYPE_RGB_ALPHA, 4}};
    for (const auto& kind : all_png_kinds()) {
        const ImageHeader header = image_header(make_png(kind, 13, 9).file);
        EXPECT_EQ(header.format, ImageFormat::png);
        EXPECT_EQ(header.stored, (PictureSize{13, 9}));
        EXPECT_EQ(header.size(), (PictureSize{13, 9}));
        EXPECT_EQ(header.channels, channels.at(kind.colour_type)) << name_of(kind);
        EXPECT_EQ(header.orientation, Orientation::upright);
    }
}

TEST(ImageHeader, APngNeedsAnIntactFirstChunk) {
    const Bytes file = plain_png(40, 30, 1, 2, 3);
    EXPECT_EQ(image_header(std::span{file}.first(after_png_header)).stored, (PictureSize{40, 30}));
    for (std::size_t size = 0; size < after_png_header; ++size)
        EXPECT_THROW((void)image_header(std::span{file}.first(size)), strata::Error) << size;
    for (std::size_t i = 0; i < after_png_header; ++i) {
        Bytes damaged = file;
        damaged[i] ^= std::byte{1};
        EXPECT_EQ(refusal_of(damaged), i < 8 ? Errc::unsupported_picture : Errc::bad_picture) << i;
    }
}

TEST(ImageHeader, EveryJpegKindHasItsSizeAndChannels) {
    for (const JpegKind& kind : all_jpeg_kinds()) {
        const ImageHeader header = image_header(make_jpeg(kind, 45, 23).file);
        EXPECT_EQ(header.format, ImageFormat::jpeg);
        EXPECT_EQ(header.stored, (PictureSize{45, 23})) << kind.name;
        EXPECT_EQ(header.channels, kind.pixels == JCS_GRAYSCALE ? 1 : kind.pixels == JCS_CMYK ? 4 : 3) << kind.name;
    }
}

TEST(ImageHeader, ExifTurnsAJpegWhereverItStands) {
    const Bytes plain = make_jpeg({}, 45, 23).file;
    const Bytes comment = jpeg_segment(0xFE, bytes_of("a comment"));
    const Bytes scan_mark{std::byte{0xFF}, std::byte{0xDA}};
    const auto scan = std::search(plain.begin(), plain.end(), scan_mark.begin(), scan_mark.end());
    for (unsigned n = 1; n <= 8; ++n) {
        const PictureSize size = n >= 5 ? PictureSize{23, 45} : PictureSize{45, 23};
        for (const Bytes& file :
             {inserted(plain, 2, exif_segment(exif(n))),
              inserted(plain, 2, joined({comment, exif_segment(exif(n, false))})),
              inserted(plain, static_cast<std::size_t>(scan - plain.begin()), exif_segment(exif(n)))}) {
            const ImageHeader header = image_header(file);
            EXPECT_EQ(header.orientation, static_cast<Orientation>(n));
            EXPECT_EQ(header.stored, (PictureSize{45, 23}));
            EXPECT_EQ(header.size(), size);
        }
    }
    // The first EXIF counts, and other APP1 segments are something else.
    EXPECT_EQ(image_header(inserted(plain, 2, joined({exif_segment(exif(3)), exif_segment(exif(6))}))).orientation,
              Orientation::turn_half);
    EXPECT_EQ(
        image_header(inserted(plain, 2, joined({jpeg_segment(0xE1, exif(6)), exif_segment(exif(8))}))).orientation,
        Orientation::turn_left);
    EXPECT_EQ(image_header(inserted(plain, 2, exif_segment({}))).orientation, Orientation::upright);
}

TEST(ImageHeader, BytesBetweenJpegSegmentsAreSkipped) {
    const Bytes plain = make_jpeg({}, 45, 23).file;
    const Bytes fill(5, std::byte{0xFF});
    EXPECT_EQ(image_header(inserted(plain, 2, fill)).stored, (PictureSize{45, 23}));
    EXPECT_EQ(image_header(inserted(plain, 20, joined({bytes_of("junk"), {std::byte{0xFF}, std::byte{0}}}))).stored,
              (PictureSize{45, 23}));
}

TEST(ImageHeader, AJpegIsReadWithoutItsThumbnailsAndProfiles) {
    const Bytes plain = make_jpeg({}, 45, 23).file;
    Bytes thumbnail = exif(6);
    thumbnail.resize(60'000);
    Bytes segments = exif_segment(thumbnail);
    for (int i = 0; i < 30; ++i) append(segments, jpeg_segment(0xE2, Bytes(65'000, std::byte{0xFF})));
    CountedFile counted{inserted(plain, 2, segments)};
    ASSERT_GT(counted.file.size(), 1'900'000U);
    const ImageHeader header = counted.header();
    EXPECT_EQ(header.size(), (PictureSize{23, 45}));
    EXPECT_LE(counted.bytes, 160'000U);
    CountedFile simple{joined({plain, Bytes(100'000)})};
    EXPECT_EQ(simple.header().stored, (PictureSize{45, 23}));
    EXPECT_EQ(simple.reads, 1);
    EXPECT_EQ(simple.bytes, 4096U);
}

TEST(ImageHeader, EveryWebpKindHasItsSizeAndChannels) {
    for (const bool lossless : {false, true})
        for (const std::int64_t channels : {3, 4}) {
            const ImageHeader header = image_header(make_webp(soft_picture(45, 23, channels), lossless));
            EXPECT_EQ(header.format, ImageFormat::webp);
            EXPECT_EQ(header.stored, (PictureSize{45, 23}));
            EXPECT_EQ(header.channels, channels);
        }
    const ImageHeader animation = image_header(make_animation(soft_picture(10, 8), 60, 50, 4, 6));
    EXPECT_EQ(animation.stored, (PictureSize{60, 50}));
}

TEST(ImageHeader, ExifBehindTheWebpPixelsIsFoundWithoutReadingThem) {
    const Bytes still = make_webp(soft_picture(45, 23), true);
    const Bytes large = webp_chunk("junk", Bytes(1'000'001));
    for (const Bytes& tiff : {exif(6), joined({bytes_of({"Exif\0\0", 6}), exif(6)})}) {
        CountedFile counted{
            webp_file(joined({vp8x_chunk(0x08, 45, 23), webp_chunks(still), large, webp_chunk("EXIF", tiff)}))};
        const ImageHeader header = counted.header();
        EXPECT_EQ(header.orientation, Orientation::turn_right);
        EXPECT_EQ(header.size(), (PictureSize{23, 45}));
        EXPECT_LE(counted.bytes, 16'384U);
    }
    // Without its flag it does not count, and is not looked for.
    CountedFile unflagged{webp_file(joined({vp8x_chunk(0, 45, 23), webp_chunks(still), webp_chunk("EXIF", exif(6))}))};
    EXPECT_EQ(unflagged.header().orientation, Orientation::upright);
    EXPECT_EQ(unflagged.reads, 1);
}

TEST(ImageHeader, PngOrientationStandsInExifThenProfileThenXmp) {
    const Bytes plain = plain_png(40, 30, 1, 2, 3);
    const Bytes xmp = bytes_of("<x tiff:Orientation=\"8\"/>");
    const std::string keyword = "XML:com.adobe.xmp";
    const Bytes xmp_chunk = png_chunk("iTXt", joined({bytes_of(keyword), Bytes(5), xmp}));
    const Bytes packed_xmp = png_chunk(
        "iTXt", joined({bytes_of(keyword), {std::byte{0}, std::byte{1}, std::byte{0}}, Bytes(2), zlib_packed(xmp)}));
    std::string hex;
    for (const std::byte byte : joined({bytes_of({"Exif\0\0", 6}), exif(3)})) {
        hex += "0123456789abcdef"[std::to_integer<int>(byte) >> 4];
        hex += "0123456789abcdef"[std::to_integer<int>(byte) & 15];
        if (hex.size() % 73 == 72) hex += '\n';
    }
    const Bytes profile_text = bytes_of("\nexif\n      64\n" + hex + "\n");
    const Bytes profile_chunk = png_chunk("tEXt", joined({bytes_of("Raw profile type exif"), Bytes(1), profile_text}));
    const Bytes packed_profile =
        png_chunk("zTXt", joined({bytes_of("Raw profile type exif"), Bytes(2), zlib_packed(profile_text)}));
    const auto with = [&](std::initializer_list<Bytes> chunks) {
        return image_header(inserted(plain, after_png_header, joined(chunks))).orientation;
    };
    EXPECT_EQ(with({png_chunk("eXIf", exif(6))}), Orientation::turn_right);
    EXPECT_EQ(with({xmp_chunk}), Orientation::turn_left);
    EXPECT_EQ(with({packed_xmp}), Orientation::turn_left);
    EXPECT_EQ(with({profile_chunk}), Orientation::turn_half);
    EXPECT_EQ(with({packed_profile}), Orientation::turn_half);
    EXPECT_EQ(with({xmp_chunk, profile_chunk, png_chunk("eXIf", exif(6))}), Orientation::turn_right);
    EXPECT_EQ(with({xmp_chunk, profile_chunk}), Orientation::turn_half);
    EXPECT_EQ(with({png_chunk("tEXt", bytes_of("Comment")), xmp_chunk}), Orientation::turn_left);
    // A text that unpacks to 16 MiB is unpacked to 256 KiB at most, and none of it is an orientation.
    EXPECT_EQ(
        with({png_chunk("zTXt", joined({bytes_of("Raw profile type exif"), Bytes(2), zlib_packed(Bytes(16 << 20))}))}),
        Orientation::upright);
}

TEST(ImageHeader, APngIsReadWithoutItsProfileAndPixels) {
    CountedFile counted{inserted(plain_png(40, 30, 1, 2, 3), after_png_header,
                                 joined({png_chunk("iCCP", Bytes(500'000)), png_chunk("eXIf", exif(6))}))};
    EXPECT_EQ(counted.header().size(), (PictureSize{30, 40}));
    EXPECT_LE(counted.bytes, 8192U);
}

TEST(ImageHeader, OtherFormatsAreNamed) {
    const std::map<std::string, Bytes> others{{"JPEG XL", bytes_of("\xFF\x0A..............")},
                                              {"JPEG 2000", bytes_of({"\0\0\0\x0CjP  ........", 16})},
                                              {"Photoshop", bytes_of("8BPS............")}};
    for (const auto& [name, file] : others) {
        const auto error = thrown_by([&file = file] { (void)image_header(file, "'a.png'"); });
        EXPECT_EQ(error.code, Errc::unsupported_picture);
        EXPECT_TRUE(error.says("'a.png' is a " + name)) << error.message;
    }
    EXPECT_EQ(refusal_of(bytes_of("some text in a file")), Errc::unsupported_picture);
    EXPECT_EQ(refusal_of({}), Errc::bad_picture);
}

TEST(ImageHeader, KindsOfJpegThatAreNotDecodedAreNamed) {
    const Bytes plain = make_jpeg({}, 45, 23).file;
    std::size_t frame = 0;
    while (plain[frame] != std::byte{0xFF} || plain[frame + 1] != std::byte{0xC0}) ++frame;
    const auto changed = [&](std::size_t at, int value) {
        Bytes file = plain;
        file[frame + at] = static_cast<std::byte>(value);
        return thrown_by([&] { (void)image_header(file); });
    };
    EXPECT_TRUE(changed(1, 0xC3).says("lossless"));
    EXPECT_TRUE(changed(1, 0xC5).says("hierarchical"));
    EXPECT_TRUE(changed(4, 12).says("12 bits"));
    EXPECT_TRUE(changed(9, 2).says("2 channels"));
    EXPECT_EQ(changed(9, 2).code, Errc::unsupported_picture);
}

TEST(ImageHeader, EveryTruncationIsRefusedOrComplete) {
    const Bytes jpeg = inserted(make_jpeg({}, 45, 23).file, 2, exif_segment(exif(6)));
    const Bytes webp = make_webp(soft_picture(45, 23), false);
    for (const Bytes& file : {jpeg, webp})
        for (std::size_t size = 0; size < file.size(); ++size) {
            try {
                const ImageHeader header = image_header(std::span{file}.first(size));
                EXPECT_EQ(header.stored, (PictureSize{45, 23})) << size;
            } catch (const strata::Error& error) {
                EXPECT_TRUE(error.code() == Errc::bad_picture ||
                            (error.code() == Errc::unsupported_picture && size < 12))
                    << error.what();
            }
        }
}

TEST(ImageHeader, AHeaderWithoutEndIsGivenUp) {
    // Segments of two bytes, comments of 4 KiB that each hide the next, and bytes that are no segments at all.
    Bytes empty{std::byte{0xFF}, std::byte{0xD8}};
    while (empty.size() < 8'000'000)
        empty.insert(empty.end(), {std::byte{0xFF}, std::byte{0xFE}, std::byte{0}, std::byte{2}});
    Bytes hidden{std::byte{0xFF}, std::byte{0xD8}};
    for (int i = 0; i < 1000; ++i) append(hidden, jpeg_segment(0xFE, Bytes(5'000)));
    Bytes junk{std::byte{0xFF}, std::byte{0xD8}, std::byte{0xFF}};
    junk.resize(8'000'000);
    Bytes frames = vp8x_chunk(0x0A, 60, 50);
    for (int i = 0; i < 600; ++i) append(frames, webp_chunk("ANMF", Bytes(5'000)));
    for (const Bytes& file : {empty, hidden, junk, webp_file(frames)}) {
        CountedFile counted{file};
        EXPECT_EQ(thrown_by([&] { (void)counted.header(); }).code, Errc::picture_too_large);
        EXPECT_LE(counted.bytes, std::size_t{1} << 20);
        EXPECT_LE(counted.reads, 256);
    }
}

TEST(ImageHeader, WhatReadingThrowsComesThrough) {
    const ReadRange broken = [](std::uint64_t, std::size_t) -> Bytes {
        throw strata::Error{Errc::io_failed, "broken", "mend"};
    };
    EXPECT_EQ(thrown_by([&] { (void)read_image_header(broken); }).code, Errc::io_failed);
}

}  // namespace
