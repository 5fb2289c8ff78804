#pragma once
// tests/tools/doctor_run.hpp - `strata doctor` in a process of its own, and what its lines say.

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../support/temporary_folder.hpp"
#include "run_tool.hpp"

namespace strata_test {

struct DoctorRun : ::testing::Test {
    TemporaryFolder temporary;
    std::filesystem::path folder = temporary.path();
    std::vector<std::string> set;

    void SetUp() override {
        std::filesystem::create_directories(folder / "printed");
        variable("OMP_NUM_THREADS", "1");
    }
    void TearDown() override {
        for (const std::string& name : set) ::unsetenv(name.c_str());
    }
    void variable(const std::string& name, const std::string& value) {
        ::setenv(name.c_str(), value.c_str(), 1);
        set.push_back(name);
    }
    Outcome strata(std::vector<std::string> words) const {
        words.insert(words.begin(), {STRATA_TOOL, "doctor"});
        return Running{std::move(words), folder / "printed"}.wait();
    }
    /// Its lines, after a look at what is true of all of them.
    nlohmann::json lines_of(std::vector<std::string> words) const {
        words.emplace_back("--json");
        const Outcome outcome = strata(std::move(words));
        const nlohmann::json all = nlohmann::json::parse(outcome.out, nullptr, false);
        EXPECT_TRUE(all.is_object()) << outcome.out << outcome.err;
        if (!all.is_object()) return nlohmann::json::array();
        EXPECT_EQ(outcome.status, all.at("problems") == 0 ? 0 : 1) << outcome.out;
        std::map<std::string, int> count;
        for (const nlohmann::json& line : all.at("lines")) {
            ++count[line.at("state")];
            EXPECT_EQ(line.at("fix") == "", line.at("state") == "ok") << line;
            EXPECT_NE(line.at("found"), "");
        }
        EXPECT_EQ(all.at("ok"), count["ok"]);
        EXPECT_EQ(all.at("warnings"), count["warning"]);
        EXPECT_EQ(all.at("problems"), count["problem"]);
        return all.at("lines");
    }
    static std::vector<nlohmann::json> about(const nlohmann::json& lines, const std::string& subject,
                                             const std::string& host = "") {
        std::vector<nlohmann::json> found;
        for (const nlohmann::json& line : lines)
            if (line.at("subject") == subject && line.at("host") == host) found.push_back(line);
        return found;
    }
    static nlohmann::json one_about(const nlohmann::json& lines, const std::string& subject,
                                    const std::string& host = "") {
        const auto found = about(lines, subject, host);
        EXPECT_EQ(found.size(), 1U) << subject << " in " << lines;
        return found.size() == 1
                   ? found.front()
                   : nlohmann::json{{"state", ""}, {"found", ""}, {"fix", ""}, {"values", nlohmann::json::object()}};
    }
    static bool has(const nlohmann::json& line, const std::string& part, const std::string& text) {
        return line.at(part).get<std::string>().find(text) != std::string::npos;
    }
    void expect_nothing_left(const std::filesystem::path& in) const {
        for (const auto& entry : std::filesystem::recursive_directory_iterator{in})
            EXPECT_EQ(entry.path().filename().string().find(".strata-doctor"), std::string::npos) << entry.path();
    }
};

}  // namespace strata_test
