// Configurations of public projects, as they are: read, or refused in one Error; and the same files damaged.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/convert.hpp>
#include <strata/config/hostfile.hpp>
#include <strata/config/intent_options.hpp>
#include <strata/config/launch_script.hpp>
#include <strata/options/train_options.hpp>

#include "read_intent.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
namespace fs = std::filesystem;

const fs::path folder = fs::path{STRATA_REFERENCE_DIR} / "data/configs";

std::vector<fs::path> files_in(const char* kind) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& one : fs::directory_iterator{folder / kind, error}) files.push_back(one.path());
    std::sort(files.begin(), files.end());
    return files;
}
std::string text_of(const fs::path& file) {
    std::ifstream stream{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{stream}, {}};
}
bool is_yaml(const fs::path& file) { return file.extension() == ".yml" || file.extension() == ".yaml"; }
Document parse(const std::string& text, bool yaml) {
    return yaml ? parse_yaml(text, "file") : parse_json(text, "file", JsonDialect::relaxed);
}
Intent read(const Document& document, bool of_accelerate, Findings& findings) {
    findings.take(document);
    return of_accelerate ? read_accelerate(document.root, findings) : read_deepspeed(document.root, findings);
}

class RealConfigs : public testing::Test {
protected:
    void SetUp() override {
        if (STRATA_REFERENCE_DIR[0] == '\0' || !fs::is_directory(folder))
            GTEST_SKIP() << "no reference material: configure with -DSTRATA_REFERENCE_DIR=/path";
        std::ifstream stream{folder / "manifest.json"};
        for (const auto& one : nlohmann::json::parse(stream))
            malformed_[one.at("file")] = !one.at("malformed").is_null();
    }
    /// Reads all of them; a well-formed one in ten may be refused.
    void read_all(const std::string& kind) {
        int well_formed = 0;
        int taken = 0;
        std::string outcomes;
        for (const fs::path& file : files_in(kind.c_str())) {
            const std::string name = kind + "/" + file.filename().string();
            const bool is_good = !malformed_[name];
            well_formed += is_good ? 1 : 0;
            Findings findings;
            try {
                const Intent intent =
                    kind == "accelerate" ? load_accelerate(file, findings) : load_deepspeed(file, findings);
                findings.throw_if_refused();
                taken += is_good ? 1 : 0;
                outcomes += name + ": read, " + std::to_string(findings.warnings()) + " warnings, Setup<" +
                            policies(intent.composition) + ">\n";
                expect_every_key_has_its_word(load_document(file).root, findings, name);
                strata::TrainOptions<strata::zero::NoRule> options;
                EXPECT_NO_THROW((void)apply(intent, options)) << name;
                Findings again;
                const Intent second =
                    kind == "accelerate"
                        ? read_accelerate(parse_yaml(write_accelerate(intent), "again").root, again)
                        : read_deepspeed(parse_json(write_deepspeed(intent), "again", JsonDialect::strict).root, again);
                EXPECT_EQ(again.refused(), 0U) << name;
                EXPECT_TRUE(!intent.missing_files.empty() || intent == second) << name;
            } catch (const strata::Error& problem) {
                outcomes += name + ": refused, " + problem.problem() + "\n";
                expect_one_sentence(problem);
            }
        }
        EXPECT_GE(taken * 10, well_formed * 9) << taken << " of " << well_formed;
        std::cout << outcomes << kind << ": " << taken << " of " << well_formed << " well-formed files are read\n";
    }
    static void expect_one_sentence(const strata::Error& problem) {
        const std::string message = problem.what();
        EXPECT_TRUE(message.starts_with("[ST21")) << message;
        EXPECT_NE(message.find(". Fix: "), std::string::npos) << message;
        EXPECT_FALSE(problem.fix().empty()) << message;
        for (const char* raw :
             {"json.exception", "yaml-cpp", "bad conversion", "basic_string", "std::", "terminate", "stoi"})
            EXPECT_EQ(message.find(raw), std::string::npos) << message;
    }
    void expect_every_key_has_its_word(const Node& node, const Findings& findings, const std::string& name) {
        for (const Node::Member& member : node.members()) {
            if (findings.of(member.value.pointer()) != nullptr) continue;
            EXPECT_TRUE(member.value.is(NodeKind::object)) << name << " " << member.value.pointer();
            expect_every_key_has_its_word(member.value, findings, name);
        }
    }
    std::map<std::string, bool> malformed_;
};

TEST_F(RealConfigs, DeepSpeedsAreReadOrRefusedInOneError) { read_all("deepspeed"); }
TEST_F(RealConfigs, AcceleratesAreReadOrRefusedInOneError) { read_all("accelerate"); }

TEST_F(RealConfigs, WrittenBackTheySayTheSame) {
    for (const char* kind : {"deepspeed", "accelerate"})
        for (const fs::path& file : files_in(kind)) {
            if (malformed_[std::string{kind} + "/" + file.filename().string()]) continue;
            const Node root = load_document(file).root;
            EXPECT_TRUE(parse_json(write_json(root), "again", JsonDialect::relaxed).root.same_as(root)) << file;
            EXPECT_TRUE(parse_yaml(write_yaml(root), "again").root.same_as(root)) << file;
        }
}

TEST_F(RealConfigs, TheirFormatsAreKnown) {
    for (const auto& [kind, format] :
         {std::pair{"deepspeed", ConfigFormat::deepspeed}, std::pair{"accelerate", ConfigFormat::accelerate}})
        for (const fs::path& file : files_in(kind)) {
            if (malformed_[std::string{kind} + "/" + file.filename().string()]) continue;
            EXPECT_EQ(format_of(load_document(file).root), format) << file;
        }
}

TEST_F(RealConfigs, HostfilesAreRead) {
    int count = 0;
    for (const fs::path& file : files_in("launch")) {
        const std::string text = text_of(file);
        if (file.filename().string().find("host") == std::string::npos || text.find("slots=") == std::string::npos)
            continue;
        ++count;
        try {
            EXPECT_FALSE(parse_hostfile(text, "hosts").empty());
        } catch (const strata::Error& problem) {
            expect_one_sentence(problem);  // redacted ones name one host several times
        }
    }
    EXPECT_GE(count, 5);
}

TEST_F(RealConfigs, ScriptsThatLaunchAreRead) {
    std::size_t taken = 0;
    std::size_t number = 0;
    for (const fs::path& file : files_in("launch")) {
        const std::string text = text_of(file);
        if (!has_launch_line(text) || text.find("XX,XX") != std::string::npos ||
            text.find("xx.xx") != std::string::npos)
            continue;  // no call, or a hostfile whose hosts were taken out
        Findings findings;
        const Intent intent = read_launch_script(text, file.filename().string(), findings, {.folder = "/nowhere"});
        ++number;
        taken += findings.refused() == 0 ? 1 : 0;
        std::cout << file.filename().string() << ": " << (findings.refused() == 0 ? "read, " : "refused, ")
                  << findings.warnings() << " warnings, " << intent.launch.ranks.value_or(0) << " ranks, Setup<"
                  << policies(intent.composition) << ">\n";
        for (const Finding& one : findings.all()) {
            EXPECT_FALSE(one.place.empty()) << file << " " << one.words;
            EXPECT_FALSE(one.words.empty() && one.to.empty()) << file << " " << one.key;
        }
    }
    EXPECT_EQ(taken, number);
    EXPECT_GT(number, 25U);
}

/// Cut off, bytes changed, lines dropped and doubled, values of other kinds: each is read or refused in one sentence.
TEST_F(RealConfigs, DamagedFilesAreRefusedInOneSentence) {
    std::mt19937 random{20240817};  // NOLINT: the same files every time
    const auto below = [&](std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>{0, bound - 1}(random);
    };
    const std::vector<std::string> values{"null",
                                          "true",
                                          "-1",
                                          "1e999",
                                          "\"auto\"",
                                          "[]",
                                          "{}",
                                          "\"\"",
                                          "[[1]]",
                                          "{\"a\": {}}",
                                          "0.5",
                                          "\"\\ud83d\"",
                                          "99999999999999999999",
                                          "\"nvme\""};
    int refused = 0;
    for (const char* kind : {"deepspeed", "accelerate"}) {
        const bool of_accelerate = std::string{kind} == "accelerate";
        for (const fs::path& file : files_in(kind)) {
            const std::string text = text_of(file);
            for (int round = 0; round < 12; ++round) {
                std::string damaged = text;
                const std::size_t at = below(damaged.size());
                switch (round % 6) {
                    case 0:
                        damaged.resize(at);
                        break;
                    case 1:
                        for (int i = 0; i < 3; ++i) damaged[below(damaged.size())] = static_cast<char>(below(256));
                        break;
                    case 2:
                        damaged.insert(at, std::string(1 + below(4), "{}[]\",:#&*\t\\"[below(12)]));
                        break;
                    case 3: {
                        const std::size_t end = std::min(damaged.find('\n', at), damaged.size());
                        damaged.insert(end, damaged.substr(at, end - at));
                        break;
                    }
                    default: {  // another value behind a colon
                        const std::size_t colon = damaged.find(": ", at);
                        if (colon == std::string::npos) break;
                        const std::size_t end = std::min(damaged.find_first_of(",\n}", colon), damaged.size());
                        damaged.replace(colon + 2, end - colon - 2, values[below(values.size())]);
                        break;
                    }
                }
                try {
                    Findings findings;
                    const Intent intent = read(parse(damaged, is_yaml(file)), of_accelerate, findings);
                    findings.throw_if_refused();
                    strata::TrainOptions<strata::zero::NoRule> options;
                    (void)apply(intent, options);
                    (void)convert(intent, ConfigFormat::trainer);
                    (void)findings.table();
                } catch (const strata::Error& problem) {
                    ++refused;
                    expect_one_sentence(problem);
                }
            }
        }
    }
    EXPECT_GT(refused, 200) << "damage that nobody notices tests nothing";
}

}  // namespace
