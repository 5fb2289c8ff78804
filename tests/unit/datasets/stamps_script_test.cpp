// examples/datasets/stamps.sh: what it leaves out is one line and a file of names, not a screen full of them.

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>

#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata_test::plain_png;

std::string run(const std::string& command) {
    std::string said;
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    std::array<char, 4096> part{};
    while (pipe != nullptr && std::fgets(part.data(), part.size(), pipe) != nullptr) said += part.data();
    EXPECT_EQ(pipe == nullptr ? -1 : ::pclose(pipe), 0) << said;
    return said;
}

TEST(StampsScript, WhatIsLeftOutIsALineAndAFile) {
    const strata_test::TemporaryFolder folder;
    const auto source = folder.path() / "source";
    const auto add = [&](const std::string& name, int width, bool has_caption, bool is_whole) {
        auto file = plain_png(width, 70, 1, 2, 3);
        if (!is_whole) file.resize(file.size() / 2);
        strata::storage::write_file(source / (name + ".png"), file);
        if (has_caption) strata::storage::write_file(source / (name + ".txt"), "A picture.\n");
    };
    for (int i = 0; i < 3; ++i) add("good" + std::to_string(i), 64, true, true);
    for (int i = 0; i < 30; ++i) add("small" + std::to_string(i), 63, true, true);
    add("bare", 64, false, true);
    for (int i = 0; i < 7; ++i) add("broken" + std::to_string(i), 64, true, false);
    const std::string command =
        STRATA_SOURCE_DIR "/examples/datasets/stamps.sh '" + (folder.path() / "out").string() + "' --source '";
    const std::string said = run(command + source.string() + "'");
    const auto names = folder.path() / "out-skipped.txt";
    EXPECT_NE(
        said.find(
            "41 pictures: 3 used, 1 without caption, 30 below 64 pixels, 7 broken; the names of the 38 left out are in " +
            names.string() + "\n"),
        std::string::npos)
        << said;
    EXPECT_TRUE(said.starts_with("broken: broken0.png\n")) << said;
    EXPECT_NE(said.find("broken: broken4.png\nand 2 more broken ones\n"), std::string::npos) << said;
    EXPECT_EQ(said.find("small"), std::string::npos) << said;
    const auto bytes = strata::storage::read_file(names);
    const std::string list{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 38);
    EXPECT_NE(list.find("below 64 pixels: small29.png (63 x 70)\n"), std::string::npos) << list;

    for (const auto& entry : std::filesystem::directory_iterator{source})
        if (!entry.path().filename().string().starts_with("good")) std::filesystem::remove(entry.path());
    EXPECT_TRUE(run(command + source.string() + "'")
                    .starts_with("3 pictures: 3 used, 0 without caption, 0 below 64 pixels, 0 broken\n"));
    EXPECT_FALSE(std::filesystem::exists(names)) << "of an earlier run";
}

TEST(StampsScript, OfSomeFoldersItTakesThoseAlone) {
    const strata_test::TemporaryFolder folder;
    const auto source = folder.path() / "source";
    for (const char* name : {"food/fruit/apple", "food/cake", "animals/fish/cod", "animals/birds/crow", "town/house"}) {
        strata::storage::write_file(source / (std::string{name} + ".png"), plain_png(64, 70, 1, 2, 3));
        strata::storage::write_file(source / (std::string{name} + ".txt"), "A picture.\n");
    }
    const std::string command = STRATA_SOURCE_DIR "/examples/datasets/stamps.sh '" + (folder.path() / "out").string() +
                                "' --source '" + source.string() + "' --only ";
    EXPECT_TRUE(run(command + "food,animals/fish").starts_with("3 pictures: 3 used,"));
    for (const char* name : {"food-fruit-apple.png", "food-cake.png", "animals-fish-cod.txt"})
        EXPECT_TRUE(std::filesystem::exists(folder.path() / "out" / name)) << name;
    const std::string refused = run("(" + command + "food,drinks || true)");
    EXPECT_NE(refused.find("'drinks': there is no such folder"), std::string::npos) << refused;
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "out/food-cake.png")) << "what is there stays";
}

}  // namespace
