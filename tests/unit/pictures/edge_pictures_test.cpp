// The hard pictures of the reference material: same pixels as the list says, or a refusal with the file's name.
//
// The list's rule: upright, packed 8-bit RGB rows, alpha dropped, palettes expanded, 16-bit samples reduced to their
// high byte, JPEG as libjpeg-turbo decodes by default, profiles ignored: so they are taken out of the headers here, and
// golden_formats_test.cpp has pictures with profiles.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/digest.hpp>

namespace {

using namespace strata::pictures;

std::string hash_of(const std::vector<std::uint8_t>& samples) {
    return strata::storage::to_hex(strata::storage::sha256(std::as_bytes(std::span{samples})));
}

/// The first `channels` of every pixel; alpha is opaque where the picture has none.
std::vector<std::uint8_t> samples_of(const Picture& picture, std::int64_t channels) {
    std::vector<std::uint8_t> samples;
    for (std::int64_t i = 0; i < picture.width * picture.height; ++i)
        for (std::int64_t c = 0; c < channels; ++c)
            samples.push_back(c < picture.channels ? picture.pixels[static_cast<std::size_t>(i * picture.channels + c)]
                                                   : 255);
    return samples;
}

/// The picture as it is without its colour profile.
Picture without_profile(std::span<const std::byte> file, const std::string& name) {
    ImageHeader header = image_header(file, name);
    header.profile = {};
    return decode_image(file, header, {}, name);
}

/// Where this decoder and the oracle rightly differ.
///
/// Refused, though the oracle shows a picture: a critical chunk or the pixels themselves fail their check sum or do not
/// unpack, so the pixels are not what somebody saved.
const std::set<std::string> stricter{"png_bad/badadler.png", "png_bad/badcrc.png", "png_bad/huge_IDAT.png",
                                     "broken/broken_data_stream.png"};
/// Shown, though the oracle gives up: what is broken, or a bomb, is a text or a profile, which is not unpacked here.
const std::set<std::string> kinder{"broken/png_decompression_dos.png", "png_bad/empty_ancillary_chunks.png"};

TEST(EdgePictures, EveryOneBehavesAsTheListSays) {
    const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data" / "images" / "edge";
    std::ifstream stream{folder / "edge_expected.json"};
    if (!stream) GTEST_SKIP() << "no hard pictures at " << folder;
    const auto list = nlohmann::json::parse(stream).at("files");
    int shown = 0;
    int refused = 0;
    for (const auto& entry : list) {
        const auto name = entry.at("file").get<std::string>();
        const auto& expected = entry.at("pillow");
        const std::vector<std::byte> file = strata::storage::read_file(folder / name);
        Picture picture;
        std::string refusal;
        try {
            picture = without_profile(file, "'" + name + "'");
        } catch (const strata::Error& error) {
            if (error.code() == strata::Errc::no_picture_library) {  // of a build without it
                ++refused;
                continue;
            }
            EXPECT_TRUE(is_picture_fault(error.code())) << error.what();
            refusal = error.what();
            EXPECT_NE(refusal.find(name), std::string::npos) << refusal;
        }
        if (expected.at("decode").get<std::string>() != "ok" || stricter.contains(name)) {
            EXPECT_EQ(refusal.empty(), kinder.contains(name)) << name << ' ' << refusal;
            refused += refusal.empty() ? 0 : 1;
            continue;
        }
        EXPECT_EQ(refusal, "") << name;
        if (!refusal.empty()) continue;
        ++shown;
        EXPECT_EQ(picture.width, expected.at("upright_size").at(0).get<std::int64_t>()) << name;
        EXPECT_EQ(picture.height, expected.at("upright_size").at(1).get<std::int64_t>()) << name;
        if (expected.contains("rgb_sha256")) {
            EXPECT_EQ(hash_of(samples_of(picture, 3)), expected.at("rgb_sha256").get<std::string>()) << name;
        }
        if (expected.contains("rgba_sha256") && expected.at("mode").get<std::string>() != "I") {
            EXPECT_EQ(hash_of(samples_of(picture, 4)), expected.at("rgba_sha256").get<std::string>()) << name;
        }

        const ImageHeader header = image_header(file, name);
        EXPECT_EQ(header.stored, (PictureSize{expected.at("stored_size").at(0), expected.at("stored_size").at(1)}))
            << name;
        EXPECT_EQ(header.size(), (PictureSize{picture.width, picture.height})) << name;
        auto format = expected.at("format").get<std::string>();
        if (format == "WEBP") format = "WebP";
        EXPECT_EQ(name_of(header.format), format) << name;
        const auto oriented = expected.find("exif_orientation");
        const int orientation = oriented == expected.end() || oriented->is_null() ? 1 : oriented->get<int>();
        EXPECT_EQ(static_cast<int>(header.orientation), std::max(orientation, 1)) << name;
    }
    EXPECT_EQ(shown + refused + static_cast<int>(kinder.size()), static_cast<int>(list.size()));
}

TEST(EdgePictures, RealPhotosHaveTheirSizesAndPixels) {
    const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data" / "images";
    std::ifstream stream{folder / "photos.jsonl"};
    if (!stream) GTEST_SKIP() << "no photos at " << folder;
    int photos = 0;
    for (std::string line; std::getline(stream, line); ++photos) {
        const auto entry = nlohmann::json::parse(line);
        const auto name = entry.at("filename").get<std::string>();
        const std::vector<std::byte> file = strata::storage::read_file(folder / "photos" / name);
        const ImageHeader header = image_header(file, name);
        EXPECT_EQ(header.size(), (PictureSize{entry.at("width"), entry.at("height")})) << name;
        EXPECT_EQ(header.stored, (PictureSize{entry.at("stored_width"), entry.at("stored_height")})) << name;
        if (header.stored.width * header.stored.height > 1'000'000 && photos % 8 != 0) continue;  // all take seconds
        EXPECT_EQ(hash_of(samples_of(without_profile(file, name), 3)), entry.at("rgb_sha256").get<std::string>())
            << name;
    }
    EXPECT_GE(photos, 100);
}

}  // namespace
