// Files that somebody, or a disk, has changed: each is a picture of its stated size or a named refusal, and none takes
// more memory than the limits allow. Deterministic; run it under -fsanitize=address,undefined as well.

#include <algorithm>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/png.hpp>

#include "../../support/address_space.hpp"
#include "../../support/changed_bytes.hpp"
#include "../../support/made_files.hpp"
#include "../../support/other_formats.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::pictures;
using namespace strata_test;
using strata::Errc;

struct Kind {
    std::string name;
    Bytes file;
};

/// Small files of every format and kind, with metadata.
std::vector<Kind> kinds() {
    std::vector<Kind> all;
    for (const JpegKind& kind : all_jpeg_kinds())
        all.push_back({"JPEG " + kind.name, inserted(make_jpeg(kind, 24, 17).file, 2, exif_segment(exif(6)))});
    for (const PngKind& kind : all_png_kinds()) all.push_back({"PNG " + name_of(kind), make_png(kind, 19, 11).file});
    const Bytes xmp = joined({bytes_of("XML:com.adobe.xmp"),
                              {std::byte{0}, std::byte{1}, std::byte{0}},
                              Bytes(2),
                              zlib_packed(bytes_of("<x tiff:Orientation=\"8\"/>"))});
    all.push_back(
        {"PNG with metadata", inserted(encode_png(24, 17, soft_picture(24, 17).pixels), after_png_header,
                                       joined({png_chunk("iTXt", xmp), png_chunk("gAMA", big_endian_bytes(45455, 4)),
                                               png_chunk("eXIf", exif(5))}))});
    for (const bool lossless : {false, true})
        for (const std::int64_t channels : {3, 4})
            all.push_back(
                {lossless ? "WebP lossless" : "WebP lossy", make_webp(soft_picture(24, 17, channels), lossless)});
    const Bytes still = webp_chunks(make_webp(soft_picture(24, 17), true));
    all.push_back(
        {"WebP with EXIF", webp_file(joined({vp8x_chunk(0x08, 24, 17), still, webp_chunk("EXIF", exif(7))}))});
    all.push_back({"WebP animation", make_animation(soft_picture(20, 10, 4), 30, 24, 2, 4)});
    const Picture soft = soft_picture(24, 17);
    all.push_back({"PNG with a profile",
                   inserted(encode_png(24, 17, soft.pixels), after_png_header, profile_chunk(swapped_profile()))});
    all.push_back({"BMP", make_bmp(soft)});
    all.push_back({"BMP with masks", make_bmp(soft_picture(24, 17, 4))});
#ifdef STRATA_WITH_TIFF
    for (const TiffKind& kind :
         {TiffKind{.name = "TIFF"}, TiffKind{.name = "TIFF of tiles", .bits = 16, .planes = true, .tiles = true},
          TiffKind{.name = "TIFF by LZW", .packing = COMPRESSION_LZW, .mode = "wb"},
          TiffKind{.name = "TIFF of palette", .bits = 4, .photometric = PHOTOMETRIC_PALETTE}}) {
        const bool palette = kind.photometric == PHOTOMETRIC_PALETTE;
        all.push_back({kind.name, make_tiff(kind, 24, 17, palette ? 1 : 3, soft.pixels)});
    }
#endif
#ifdef STRATA_WITH_GIF
    all.push_back({"GIF", make_gif({.left = 3, .top = 2, .transparent = 1, .interlaced = true}, 24, 17, 9, 5,
                                   std::vector<std::uint8_t>(45, 3))});
#endif
#ifdef STRATA_WITH_AVIF
    if (Bytes avif = make_avif(soft_picture(24, 17, 4), 8, swapped_profile(), 1); !avif.empty())
        all.push_back({"AVIF", std::move(avif)});
#endif
#ifdef STRATA_WITH_HEIC
    if (Bytes heic = make_heic(soft_picture(64, 64, 4)); !heic.empty()) all.push_back({"HEIC", std::move(heic)});
#endif
    return all;
}

/// Check sums as they should be, so that a change is met behind them as well.
void mend_png(Bytes& file) {
    for (std::size_t at = 8; at + 12 <= file.size();) {
        std::uint64_t length = 0;
        for (std::size_t i = 0; i < 4; ++i) length = length * 256 + std::to_integer<unsigned>(file[at + i]);
        if (length > file.size() - at - 12) return;
        const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(&file[at + 4]), static_cast<uInt>(length + 4));
        const Bytes bytes = big_endian_bytes(sum, 4);
        std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(at + 8 + length));
        at += 12 + length;
    }
}

Bytes changed_picture(const Bytes& file, Numbers& numbers) {
    Bytes result = changed(file, numbers);
    if (numbers.below(2) == 0 && format_of(result) == ImageFormat::png) mend_png(result);
    return result;
}

constexpr DecodeLimits limits{.edge = 2048, .pixels = 1 << 20};
constexpr std::uint64_t most_memory = std::uint64_t{64}
                                      << 20;  // 16 bytes a pixel of the limit, and as much again for the heap

/// 1 for a picture, 0 for a refusal; anything else fails the test.
int outcome(std::span<const std::byte> file, const PictureSize& target) {
    try {
        const Picture picture = decode_image(file, target, "'it'", limits);
        const PictureSize stated = image_header(file).size();
        if (target.width == 0) {
            EXPECT_EQ((PictureSize{picture.width, picture.height}), stated);
        }
        EXPECT_TRUE(picture.channels == 3 || picture.channels == 4);
        EXPECT_LE(picture.width * picture.height, limits.pixels);
        EXPECT_EQ(picture.pixels.size(), static_cast<std::size_t>(picture.width * picture.height * picture.channels));
        return 1;
    } catch (const strata::Error& error) {
        EXPECT_TRUE(is_picture_fault(error.code()) && error.code() != Errc::no_picture_library) << error.what();
        const std::string& problem = error.problem();
        EXPECT_NE(problem.find("'it'"), std::string::npos) << problem;
        // The limits refuse before memory runs out; newer versions of libwebp confuse it with damage to an alpha plane.
        EXPECT_TRUE(error.code() == Errc::picture_too_large || problem.find("emory") == std::string::npos ||
                    problem.find("its alpha plane is damaged") != std::string::npos)
            << problem;
        return 0;
    }
}

TEST(HostilePictures, EveryPrefixIsAPictureOrARefusal) {
    const std::vector<Kind> all = kinds();
    const AddressSpaceLimit limit{most_memory};
    for (const Kind& kind : all) {
        ASSERT_EQ(outcome(kind.file, {}), 1) << kind.name;
        int pictures = 0;
        for (std::size_t size = 0; size < kind.file.size(); ++size)
            pictures += outcome(std::span{kind.file}.first(size), {});
        EXPECT_LT(pictures, 30) << kind.name;  // PNG does without its last chunk, WebP without its EXIF
    }
}

TEST(HostilePictures, EveryChangeIsAPictureOrARefusal) {
    const std::vector<Kind> all = kinds();
    const AddressSpaceLimit limit{most_memory};
    int pictures = 0;
    int refusals = 0;
    Numbers numbers{2026};
    for (const Kind& kind : all)
        for (int i = 0; i < 300; ++i) {
            SCOPED_TRACE(kind.name + ", change " + std::to_string(i));
            ++(outcome(changed_picture(kind.file, numbers), i % 2 == 0 ? PictureSize{} : PictureSize{5, 5}) == 1
                   ? pictures
                   : refusals);
        }
    EXPECT_GT(pictures, 1000);  // both ends are reached
    EXPECT_GT(refusals, 1000);
}

}  // namespace
