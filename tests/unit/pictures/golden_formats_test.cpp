// The golden pictures of the reference material: BMP, TIFF, GIF, AVIF, HEIC, and colour profiles in every format. Each
// has the pixels that the list says, within its tolerances, or is refused with the file's name.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>

namespace {

using namespace strata::pictures;
using strata::Errc;

const std::filesystem::path folder = std::filesystem::path{STRATA_REFERENCE_DIR} / "data" / "images" / "formats";

void expect_pixels(const Picture& picture, std::span<const std::byte> golden, const nlohmann::json& entry) {
    const auto channels = static_cast<std::size_t>(picture.channels);
    ASSERT_EQ(golden.size(), picture.pixels.size());
    const bool all = entry.value("compare_rgb_where_alpha_0", true);
    int worst = 0;
    double sum = 0;
    std::size_t compared = 0;
    for (std::size_t i = 0; i < golden.size(); ++i) {
        const bool is_colour = channels == 3 || i % 4 != 3;
        if (!all && is_colour && std::to_integer<int>(golden[i / 4 * 4 + 3]) == 0) continue;
        const int difference = std::abs(std::to_integer<int>(golden[i]) - picture.pixels[i]);
        worst = std::max(worst, difference);
        sum += difference;
        ++compared;
    }
    EXPECT_LE(worst, entry.at("tolerance").get<int>());
    EXPECT_LE(sum / static_cast<double>(compared), entry.at("tolerance_mean").get<double>());
}

TEST(GoldenFormats, EveryPictureHasItsPixelsOrIsRefused) {
    std::ifstream stream{folder / "cases.json"};
    if (!stream) GTEST_SKIP() << "no golden pictures at " << folder;
    const auto list = nlohmann::json::parse(stream);
    const auto tensors = strata::storage::read_file(folder / "expected.safetensors");
    const auto parsed = strata::storage::parse_safetensors(tensors, "expected.safetensors");
    int shown = 0;
    int refused = 0;
    for (const auto& entry : list) {
        const auto name = entry.at("file").get<std::string>();
        SCOPED_TRACE(name + ": " + entry.value("note", entry.value("reason", "")));
        const auto file = strata::storage::read_file(folder / name);
        if (entry.contains("refuse")) {
            try {
                (void)decode_image(file, {}, "'" + name + "'");
                ADD_FAILURE() << "is shown";
            } catch (const strata::Error& error) {
                const auto kind = entry.at("refuse").get<std::string>();
                if (error.code() == Errc::no_picture_library) continue;  // of a format this program was built without
                EXPECT_EQ(error.code(), kind == "too_large"     ? Errc::picture_too_large
                                        : kind == "wrong_magic" ? Errc::unsupported_picture
                                                                : Errc::bad_picture)
                    << error.what();
                EXPECT_NE(std::string{error.what()}.find(name), std::string::npos) << error.what();
                ++refused;
            }
            continue;
        }
        const ImageHeader header = image_header(file, name);
        auto format = entry.at("format").get<std::string>();
        if (format == "WEBP") format = "WebP";
        if (format == "HEIF") format = "HEIC";
        EXPECT_EQ(name_of(header.format), format);
        EXPECT_EQ(header.stored, (PictureSize{entry.at("width"), entry.at("height")}));
        EXPECT_EQ(header.size(), (PictureSize{entry.at("upright_width"), entry.at("upright_height")}));
        EXPECT_EQ(header.profile.parts.empty(), entry.at("icc") == "none");
        if (!facts_of(header.format).built_in) continue;
        const Picture picture = decode_image(file, header, {}, name);
        EXPECT_EQ(picture.channels, entry.at("channels").get<int>());
        EXPECT_EQ((PictureSize{picture.width, picture.height}), header.size());
        EXPECT_EQ(picture.note.empty(), entry.at("icc") != "unusable") << picture.note;
        expect_pixels(picture, strata::storage::tensor_bytes(tensors, parsed, name), entry);
        ++shown;
    }
    EXPECT_GT(shown, 20);
    EXPECT_GT(refused, 5);
}

}  // namespace
