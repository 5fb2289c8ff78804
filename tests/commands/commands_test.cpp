// tests/commands/commands_test.cpp - what a page tells a reader to run is there when they run it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path source_dir{STRATA_SOURCE_DIR};

std::string text_of(const fs::path& path) {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}
std::vector<std::string> words_of(const std::string& line) {
    std::istringstream in{line};
    return {std::istream_iterator<std::string>{in}, {}};
}

/// Every executable of a whole build: path below the build folder -> target.
const std::map<std::string, std::string>& programs() {
    static const std::map<std::string, std::string> all = [] {
        std::map<std::string, std::string> found;
        std::ifstream in{STRATA_PROGRAMS};
        for (std::string target, path; in >> target >> path;) found.emplace(path, target);
        return found;
    }();
    return all;
}

/// The targets that `cmake --build --preset NAME` makes; "all" where the preset names none.
std::set<std::string> targets_of(const std::string& preset) {
    const std::string presets = text_of(source_dir / "CMakePresets.json");
    std::smatch found;
    const std::string builds = presets.substr(presets.find("\"buildPresets\""));
    if (!std::regex_search(builds, found,
                           std::regex{"\\{\"name\": \"" + preset +
                                      "\", \"configurePreset\": \"[a-z]+\"(?:, \"targets\": \\[([^\\]]*)\\])?"}))
        return {};
    const std::string list = found[1].str();
    if (list.empty()) return {"all"};
    std::set<std::string> targets;
    const std::regex name{"\"([^\"]+)\""};
    for (std::sregex_iterator it{list.begin(), list.end(), name}, end; it != end; ++it) targets.insert((*it)[1].str());
    return targets;
}

/// A reader who types a page's commands, one after the other.
class Reader {
public:
    /// What is wrong with the command; empty if it can be run.
    std::string run(const std::string& line) {
        const std::vector<std::string> words = words_of(line.substr(0, line.find(" #")));
        std::string wrong;
        for (std::size_t i = 0; i < words.size(); ++i) {
            const bool is_program =
                i == 0 || words[i - 1] == "&&" || words[i - 1] == "sudo" || words[i - 1] == "|" || words[i - 1] == "--";
            const std::string word = words[i].starts_with("./") ? words[i].substr(2) : words[i];
            if (word == "cmake" && is_program)
                build({words.begin() + static_cast<std::ptrdiff_t>(i),
                       std::find(words.begin() + static_cast<std::ptrdiff_t>(i), words.end(), "&&")});
            if (is_program && word == "strata" && !has_strata)
                wrong += "the command strata, before the page says how to install it; ";
            const std::string first = word.substr(0, word.find('/'));
            if (first == word) {
                if (is_program && word != words[i]) wrong += words[i] + ", which is nowhere; ";
                continue;
            }
            if (first == "build" && word.ends_with(".deb")) {
                if (!packed_.contains(word.substr(6, word.find('/', 6) - 6)))
                    wrong += word + ", which no workflow named before has packed; ";
                has_strata = true;
            } else if (first == "build") {
                if (!is_built(word)) wrong += word + ", which no build named before has made; ";
            } else if (first == "quickstart") {
                if (!built_.contains("quickstart")) wrong += word + ", before the quickstart; ";
            } else if (fs::is_directory(source_dir / first) && !first.empty()) {
                if (!fs::exists(source_dir / word)) wrong += word + ", which is not there; ";
                if (is_program && fs::exists(source_dir / word) &&
                    (fs::status(source_dir / word).permissions() & fs::perms::owner_exec) == fs::perms::none)
                    wrong += word + ", which is no program; ";
                if (word == "examples/quickstart.sh") built_["quickstart"] = targets_of("quickstart");
                if (word == "tests/run.sh") built_["dev"] = targets_of("dev");
            }
        }
        return wrong;
    }
    bool has_strata = false;

private:
    /// `words` are one call of cmake.
    void build(const std::vector<std::string>& words) {
        const auto after = [&](const std::string& option) {
            const auto found = std::find(words.begin(), words.end(), option);
            return found == words.end() || found + 1 == words.end() ? std::string{} : *(found + 1);
        };
        if (const std::string folder = after("--install"); !folder.empty()) {
            const auto preset = folder.substr(folder.find('/') + 1);
            const auto made = built_.find(preset);
            has_strata |=
                made != built_.end() && (made->second.contains("all") || made->second.contains("strata_tool"));
        }
        const std::string preset = after("--preset") + after("--workflow");
        if (preset.empty()) return;
        const std::string name = after("--preset");
        if (std::find(words.begin(), words.end(), "--workflow") != words.end()) {
            built_[name].merge(targets_of(name));
            const std::string presets = text_of(source_dir / "CMakePresets.json");
            const std::string packages = presets.substr(std::min(presets.find("\"packagePresets\""), presets.size()));
            if (packages.find("{\"name\": \"" + name + "\", \"configurePreset\"") != std::string::npos)
                packed_.insert(name);
        }
        if (std::find(words.begin(), words.end(), "--build") == words.end()) return;
        const auto target = std::find(words.begin(), words.end(), "--target");
        if (target == words.end())
            built_[name].merge(targets_of(name));
        else
            built_[name].insert(target + 1, words.end());
    }
    [[nodiscard]] bool is_built(const std::string& path) const {
        const auto slash = path.find('/', 6);
        const auto made = built_.find(path.substr(6, slash == std::string::npos ? slash : slash - 6));
        if (made == built_.end()) return false;
        if (slash == std::string::npos) return true;  // the build folder itself
        const auto program = programs().find(path.substr(slash + 1));
        return program != programs().end() && (made->second.contains("all") || made->second.contains(program->second));
    }
    std::map<std::string, std::set<std::string>> built_;
    std::set<std::string> packed_;  // presets whose workflow makes a package
};

std::vector<fs::path> all_pages() {
    std::vector<fs::path> pages{source_dir / "README.md"};
    for (const auto& entry : fs::recursive_directory_iterator{source_dir / "docs"})
        if (entry.path().extension() == ".md") pages.push_back(entry.path());
    std::sort(pages.begin(), pages.end());
    return pages;
}

TEST(Commands, EveryShellBlockRunsWhatIsThere) {
    ASSERT_GE(programs().size(), 8U) << STRATA_PROGRAMS;
    int commands = 0;
    for (const auto& page : all_pages()) {
        Reader reader;
        std::ifstream in{page};
        bool inside = false;
        for (std::string line; std::getline(in, line);) {
            if (line.find("use-strata.md") != std::string::npos && page.filename() != "README.md")
                reader.has_strata = true;
            if (line.starts_with("```"))
                inside = line == "```sh";
            else if (inside) {
                ++commands;
                EXPECT_EQ(reader.run(line), "") << page << ": " << line;
            }
        }
    }
    EXPECT_GE(commands, 15);
}

/// `tools/x` in running text is a file of the tree, and `build/dev/x` one that a build makes.
TEST(Commands, EveryFileNamedInTextIsThere) {
    const std::regex code{"`([^`\n]+)`"};
    int named = 0;
    for (const auto& page : all_pages()) {
        if (page.filename() == "CHANGELOG.md") continue;  // it names what was there
        const std::string text = text_of(page);
        for (std::sregex_iterator it{text.begin(), text.end(), code}, end; it != end; ++it) {
            const auto words = words_of((*it)[1].str());
            if (words.empty()) continue;
            const std::string word = words[0].starts_with("./") ? words[0].substr(2) : words[0];
            if (!std::regex_match(word,
                                  std::regex{"(bench|build|cmake|docs|examples|tests|tools|include)/[A-Za-z0-9_./-]+"}))
                continue;
            if (std::regex_search(word, std::regex{"thing|job\\.cpp|nnnn"})) continue;  // stands for what a reader adds
            ++named;
            if (word.starts_with("build/"))
                EXPECT_TRUE(std::any_of(programs().begin(), programs().end(),
                                        [&](const auto& p) { return word.ends_with("/" + p.first); }))
                    << page << ": " << word;
            else
                EXPECT_TRUE(fs::exists(source_dir / word)) << page << ": " << word;
        }
    }
    EXPECT_GE(named, 20);
}

/// A reader has the command that is installed, not a file of the tree.
TEST(Commands, PagesUseTheInstalledCommand) {
    for (const auto& page : all_pages()) {
        if (page.filename() == "CHANGELOG.md") continue;
        EXPECT_EQ(text_of(page).find("launch.sh"), std::string::npos)
            << page << ": `strata launch -n N -- PROGRAM` is what is installed";
    }
}

TEST(Commands, AReaderNoticesWhatIsNotThere) {
    Reader reader;
    EXPECT_NE(reader.run("build/dev/tests/strata_light_tests"), "") << "no build yet";
    EXPECT_NE(reader.run("strata data scan FILE"), "") << "not installed yet";
    EXPECT_NE(reader.run("tools/no_such_file.sh 2"), "");
    EXPECT_NE(reader.run("./01_train_your_model --output x"), "") << "nowhere";
    EXPECT_EQ(reader.run("cmake --build --preset quickstart   # some targets"), "");
    EXPECT_EQ(reader.run("build/quickstart/tools/strata"), "");
    EXPECT_EQ(reader.run("build/quickstart/tools/strata-train"), "");
    EXPECT_NE(reader.run("build/quickstart/examples/01_train_your_model"), "") << "the preset does not build it";
    EXPECT_EQ(reader.run("cmake --preset quickstart && cmake --build --preset quickstart --target all"), "");
    EXPECT_EQ(reader.run("build/quickstart/examples/01_train_your_model"), "");
    EXPECT_EQ(reader.run("sudo cmake --install build/quickstart"), "");
    EXPECT_NE(reader.run("sudo apt-get install ./build/package/strata_*.deb"), "") << "not packed yet";
    EXPECT_EQ(reader.run("cmake --workflow --preset package"), "");
    EXPECT_EQ(reader.run("sudo apt-get install ./build/package/strata_*.deb"), "");
    EXPECT_EQ(reader.run("strata launch -n 2 -- build/quickstart/examples/01_train_your_model"), "");
}

}  // namespace
