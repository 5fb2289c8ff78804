#pragma once
// tests/tools/train_folder.hpp - a folder with pictures, captions and a list of them, and `strata train` in it.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../support/pictures.hpp"
#include "../support/temporary_folder.hpp"
#include "run_tool.hpp"

namespace strata_test {

/// Its files are found by path(NAME); list.json names the pictures, and caches in vae/ and texts/.
struct TrainFolder : testing::Test {
    TemporaryFolder temporary;
    std::filesystem::path folder = temporary.path();

    /// Squares of 64 pixels, each of a colour of its own and with the caption caption(i).
    template <class Caption>
    void write_pictures(int count, Caption&& caption) const {
        std::filesystem::create_directories(folder / "pictures");
        for (int i = 0; i < count; ++i) {
            const auto bytes = plain_png(64, 64, static_cast<std::uint8_t>(20 * i), 100, 50);
            const std::string stem = (folder / "pictures" / ("p" + std::to_string(10 + i))).string();
            std::ofstream{stem + ".png", std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                                                 static_cast<std::streamsize>(bytes.size()));
            std::ofstream{stem + ".txt"} << caption(i) << '\n';
        }
    }
    /// `more` are entries of the list behind these, each with a comma before it.
    void write_list(const std::string& more = {}) const {
        write("list.json", R"([{"id": "pictures", "type": "local", "resolution": 64, "instance_data_dir": ")" +
                               path("pictures") + R"(", "cache_dir_vae": ")" + path("vae") +
                               R"("}, {"id": "texts", "type": "local", "dataset_type": "text_embeds", "cache_dir": ")" +
                               path("texts") + "\"}" + more + "]");
    }
    void write(const std::string& name, const std::string& text) const { std::ofstream{folder / name} << text; }
    [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }

    Outcome run(const std::vector<std::string>& words) const { return Running{words, folder}.wait(); }
    Outcome train(std::vector<std::string> words) const {
        words.insert(words.begin(), {STRATA_TOOL, "train"});
        return run(words);
    }

    /// The lines of metrics.jsonl that are steps.
    [[nodiscard]] static std::vector<nlohmann::json> steps_in(const std::filesystem::path& output) {
        std::istringstream lines{text_of(output / "metrics.jsonl")};
        std::vector<nlohmann::json> steps;
        for (std::string line; std::getline(lines, line);)
            if (auto one = nlohmann::json::parse(line); one.contains("loss")) steps.push_back(std::move(one));
        return steps;
    }
    [[nodiscard]] static std::vector<double> losses_in(const std::filesystem::path& output) {
        std::vector<double> losses;
        for (const auto& step : steps_in(output)) losses.push_back(step.at("loss").get<double>());
        return losses;
    }
    static void expect_words(const std::string& text, const std::vector<std::string>& all) {
        for (const std::string& words : all) EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
    }
};

}  // namespace strata_test
