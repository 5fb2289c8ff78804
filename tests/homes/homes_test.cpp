// tests/homes/homes_test.cpp - what has one home in core/ has no second one: read from the text of include/strata and
// tools.

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

const fs::path source_dir{STRATA_SOURCE_DIR};

struct SourceFile {
    fs::path path;  ///< relative to include/strata, or to the tree
    std::vector<std::string> lines;
};

const std::vector<SourceFile>& all_files() {
    static const std::vector<SourceFile> files = [] {
        std::vector<SourceFile> found;
        for (const fs::path& below : {source_dir / "include/strata", source_dir / "tools"}) {
            const fs::path root = below.filename() == "tools" ? source_dir : below;
            for (const auto& entry : fs::recursive_directory_iterator{below}) {
                if (!entry.is_regular_file()) continue;
                SourceFile file{entry.path().lexically_relative(root), {}};
                std::ifstream in{entry.path()};
                for (std::string line; std::getline(in, line);) file.lines.push_back(line);
                found.push_back(std::move(file));
            }
        }
        return found;
    }();
    return files;
}

/// What has one home: words of its code, in small letters, and the files of core/ in which they may stand.
struct Home {
    std::string name;
    std::vector<std::string> words;
    std::set<std::string> files;
};
const std::vector<Home>& homes() {
    static const std::vector<Home> all{
        {"instruction sets",
         {"gnu::target", "((target", "gcc target", "target_clones", "__builtin_cpu_supports", "__builtin_ia32",
          "immintrin.h"},
         {"core/simd.hpp", "core/simd_avx512_bf16.hpp"}},
        {"vectors of the compiler", {"vector_size("}, {"core/lanes.hpp"}},
        {"FNV-1a",
         {"100000001b3", "1099511628211", "cbf29ce484222325", "14695981039346656037", "6c62272e07bb0142"},
         {"core/fnv1a.hpp"}},
        {"CRC32C", {"82f63b78", "1edc6f41"}, {"core/crc32c.hpp", "core/impl/crc32c.ipp"}},
        {"SplitMix64", {"9e3779b97f4a7c15", "bf58476d1ce4e5b9", "94d049bb133111eb"}, {"core/mix.hpp"}},
        {"names of steps", {"step_%", "\"step_\""}, {"core/step_name.hpp"}},
        {"rounding to 16 bits",
         {"0x7fffu", "to_bf16(", "to_fp16("},
         {"core/bf16.hpp", "core/fp16.hpp", "core/elements.hpp", "core/lanes.hpp"}},
    };
    return all;
}

/// "file:line" of every line with one of the words, but for files of the home.
std::vector<std::string> second_copies(const Home& home, const std::vector<SourceFile>& files) {
    std::vector<std::string> found;
    for (const auto& file : files) {
        if (home.files.contains(file.path.generic_string())) continue;
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            std::string line;
            for (const char c : file.lines[i])
                if (c != '\'') line += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));  // 0x7f'ff too
            for (const std::string& word : home.words)
                if (line.find(word) != std::string::npos) {
                    found.push_back(file.path.string() + ":" + std::to_string(i + 1));
                    break;
                }
        }
    }
    return found;
}

TEST(Homes, WhatHasAHomeInCoreStandsNowhereElse) {
    for (const Home& home : homes())
        for (const std::string& where : second_copies(home, all_files()))
            ADD_FAILURE() << where << " has its own " << home.name << "; call " << *home.files.begin() << " instead";
}

TEST(Homes, EveryHomeIsWhereItIsSaidToBe) {
    for (const Home& home : homes()) {
        EXPECT_FALSE(second_copies({home.name, home.words, {}}, all_files()).empty()) << home.name;
        for (const std::string& file : home.files)
            EXPECT_TRUE(fs::exists(source_dir / "include/strata" / file)) << file;
    }
}

TEST(Homes, ASecondCopyIsSeenHoweverItIsWritten) {
    const auto copies = [](const std::string& line) {
        std::size_t found = 0;
        for (const Home& home : homes()) found += second_copies(home, {{"data/own.hpp", {line}}}).size();
        return found;
    };
    EXPECT_EQ(copies("    hash *= 0x100'0000'01B3U;"), 1U);
    EXPECT_EQ(copies("    hash *= 1'099'511'628'211U;"), 1U);
    EXPECT_EQ(copies("[[gnu::target(\"avx2\")]] void sum();"), 1U);
    EXPECT_EQ(copies("__attribute__((target(\"avx2\"))) void sum();"), 1U);
    EXPECT_EQ(copies("#pragma GCC target(\"avx2\")"), 1U);
    EXPECT_EQ(copies("std::snprintf(name, sizeof name, \"step_%08d.png\", step);"), 1U);
    EXPECT_EQ(copies("if (!name.starts_with(\"step_\")) return -1;"), 1U);
    EXPECT_EQ(copies("check.number(\"step_size\", step_size);"), 0U);
}

}  // namespace
