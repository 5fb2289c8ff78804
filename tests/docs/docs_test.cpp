// tests/docs/docs_test.cpp - what the pages say is what the code is: snippets, error numbers, their pages and tests.

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

std::string read_text(const fs::path& path) {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::vector<fs::path> files_under(const fs::path& folder, const std::set<std::string>& extensions) {
    std::vector<fs::path> found;
    if (!fs::exists(folder)) return found;
    for (const auto& entry : fs::recursive_directory_iterator{folder}) {
        if (entry.is_regular_file() && extensions.contains(entry.path().extension().string())) {
            found.push_back(entry.path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::vector<fs::path> all_pages() {
    std::vector<fs::path> pages = files_under(source_dir / "docs", {".md"});
    if (fs::exists(source_dir / "README.md")) pages.push_back(source_dir / "README.md");
    return pages;
}

std::set<std::string> numbers_in(const std::string& text, const std::regex& pattern) {
    std::set<std::string> found;
    for (std::sregex_iterator it{text.begin(), text.end(), pattern}, end; it != end; ++it) found.insert((*it)[1].str());
    return found;
}

/// Numbers of sentences that the compiler prints: "[STnnnn] in a string literal of include/.
std::map<std::string, int> compile_time_numbers() {
    const std::regex pattern{R"re("\[(ST[0-9]{4})\])re"};
    std::map<std::string, int> count;
    for (const auto& path : files_under(source_dir / "include", {".hpp", ".ipp"})) {
        const std::string text = read_text(path);
        for (std::sregex_iterator it{text.begin(), text.end(), pattern}, end; it != end; ++it) ++count[(*it)[1].str()];
    }
    return count;
}

/// Names and numbers of the enumerators of Errc.
std::map<std::string, std::string> run_time_numbers() {
    const std::string text = read_text(source_dir / "include/strata/core/error.hpp");
    const auto begin = text.find("enum class Errc");
    const std::string body = text.substr(begin, text.find("};", begin) - begin);
    const std::regex pattern{R"re(([a-z][a-z0-9_]*) =\s+([0-9]{4}))re"};
    std::map<std::string, std::string> found;
    for (std::sregex_iterator it{body.begin(), body.end(), pattern}, end; it != end; ++it) {
        found.emplace((*it)[1].str(), "ST" + (*it)[2].str());
    }
    return found;
}

/// The lines between the two `//! [name]` marks of a file, without the marks.
std::string region_of(const fs::path& file, const std::string& name) {
    std::ifstream in{file};
    std::string region;
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
        const auto text = line.find_first_not_of(' ');
        if (text != std::string::npos && line.substr(text) == "//! [" + name + "]") {
            if (inside) return region;
            inside = true;
        } else if (inside) {
            region += line + "\n";
        }
    }
    return "";
}

TEST(Docs, EverySnippetEqualsTheRegionItNames) {
    const std::string mark = "<!-- snippet: ";
    int compared = 0;
    for (const auto& page : all_pages()) {
        std::ifstream in{page};
        for (std::string line; std::getline(in, line);) {
            if (!line.starts_with(mark)) continue;
            std::istringstream words{line.substr(mark.size())};
            std::string file;
            std::string name;
            words >> file >> name;
            std::getline(in, line);
            EXPECT_EQ(line, "```cpp") << page << ": no cpp fence under the snippet mark of " << file;
            std::string shown;
            while (std::getline(in, line) && line != "```") shown += line + "\n";
            ++compared;
            const std::string region = region_of(source_dir / file, name);
            EXPECT_FALSE(region.empty()) << page << " names " << file << " " << name << ", which has no such region";
            EXPECT_EQ(region, shown) << page << ": snippet " << file << " " << name;
        }
    }
    EXPECT_GE(compared, 3) << "the pages have lost their snippets, or this test no longer finds them";
}

/// The tour's table of rooms is cmake/rooms.cmake's list, lower rooms first.
TEST(Docs, TheTourNamesEveryRoomAboveThoseItNeeds) {
    const std::string tour = read_text(source_dir / "docs/tour.md");
    std::map<std::string, int> floors;
    const std::regex row{R"re(\n\| ([0-9]+) \| ([^\n|]*)\|)re"};
    for (std::sregex_iterator it{tour.begin(), tour.end(), row}, end; it != end; ++it)
        for (const std::string& room : numbers_in((*it)[2].str(), std::regex{"`([a-z]+)`"}))
            floors.emplace(room, std::stoi((*it)[1].str()));
    const std::string rooms = read_text(source_dir / "cmake/rooms.cmake");
    const std::regex stanza{R"re(\nstrata_room\(([a-z]+)\n(?:    NEEDS ([^\n]*)\n)?)re"};
    std::set<std::string> there;
    for (std::sregex_iterator it{rooms.begin(), rooms.end(), stanza}, end; it != end; ++it) {
        const std::string room = (*it)[1].str();
        there.insert(room);
        EXPECT_TRUE(floors.contains(room)) << "docs/tour.md lacks the room " << room;
        std::istringstream needs{(*it)[2].str()};
        for (std::string lower; needs >> lower;)
            EXPECT_TRUE(!floors.contains(lower) || floors[lower] < floors[room]) << room << " needs " << lower;
    }
    ASSERT_GE(there.size(), 10U);
    for (const auto& [room, floor] : floors)
        EXPECT_TRUE(there.contains(room)) << "docs/tour.md shows a room that is not there: " << room;
}

/// The tags of all_slots, as policy/slots.hpp lists them.
std::set<std::string> slot_names() {
    const std::string text = read_text(source_dir / "include/strata/policy/slots.hpp");
    const auto begin = text.find("using all_slots");
    return numbers_in(text.substr(begin, text.find(';', begin) - begin), std::regex{"slot::([A-Za-z]+)"});
}

TEST(Docs, EverySlotHasAPageAKitAnExampleAndATest) {
    const std::string page = read_text(source_dir / "docs/policies.md");
    const auto begin = page.find("## Policies of your own");
    ASSERT_NE(begin, std::string::npos);
    const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
    const std::set<std::string> slots = slot_names();
    ASSERT_GE(slots.size(), 9U);
    const std::regex link{R"re(\]\(([^)]+)\))re"};
    for (const std::string& slot : slots) {
        const std::regex row{"\n\\| `" + slot + "` \\|([^\n]*)"};
        std::smatch found;
        ASSERT_TRUE(std::regex_search(section, found, row)) << slot << " has no row under 'Policies of your own'";
        const std::string cells = found[1].str();
        const std::set<std::string> links = numbers_in(cells, link);
        const auto has = [&](const std::string& part) {
            return std::any_of(links.begin(), links.end(), [&](const auto& one) { return one.find(part) != one.npos; });
        };
        EXPECT_TRUE(has("write-a") && has("/testing/") && has("/examples/") && has("/tests/")) << slot << ": " << cells;
        for (const std::string& one : links)
            EXPECT_TRUE(fs::exists(source_dir / "docs" / one)) << slot << " names " << one << ", which is not there";
    }
}

TEST(Docs, APageOnWritingSomethingOfOnesOwnIsShortAndShowsTestedCode) {
    int pages = 0;
    for (const auto& path : files_under(source_dir / "docs", {".md"})) {
        if (!path.filename().string().starts_with("write-a")) continue;
        ++pages;
        const std::string text = read_text(path);
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60) << path;
        EXPECT_NE(text.find("<!-- snippet: examples/"), std::string::npos) << path << " shows no code of an example";
        if (path.filename() == "write-an-objective.md") continue;  // a function, which keeps no promises but its type's
        EXPECT_TRUE(std::regex_search(text, std::regex{"\n```cpp\n[^`]*_failures[<(]"}))
            << path << " does not show its kit";
    }
    EXPECT_GE(pages, 9);
}

/// Every page of a decision has its row in the list, with its own heading, and a number without a page is named as such.
TEST(Docs, TheListOfDecisionsIsWhole) {
    const fs::path folder = source_dir / "docs/decisions";
    const std::string list = read_text(folder / "README.md");
    std::map<std::string, std::string> rows;  // number -> file, and the heading it must have
    const std::regex row{R"re(\n\| \[([0-9]{3})\]\(([^)]*)\) \| ([^|]*) \| [^|]+ \|)re"};
    for (std::sregex_iterator it{list.begin(), list.end(), row}, end; it != end; ++it)
        EXPECT_TRUE(rows.emplace((*it)[1], (*it)[2].str() + "\n# " + (*it)[1].str() + ": " + (*it)[3].str()).second)
            << (*it)[1] << " has two rows";
    int last = 0;
    for (const auto& page : files_under(folder, {".md"})) {
        const std::string name = page.filename().string(), number = name.substr(0, 3), text = read_text(page);
        if (name == "README.md") continue;
        ASSERT_TRUE(std::regex_match(name, std::regex{"[0-9]{3}-[a-z0-9-]+\\.md"}))
            << page << ": the name is no number and title";
        last = std::max(last, std::stoi(number));
        EXPECT_EQ(rows[number], name + "\n" + text.substr(0, text.find('\n')))
            << page << " has no row of its own, or another heading than its row";
    }
    ASSERT_GE(last, 10) << "the decisions are gone, or this test no longer finds them";
    std::smatch missing;
    ASSERT_TRUE(std::regex_search(list, missing, std::regex{R"re(\*\*Numbers without a page:\*\* ([0-9, ]*)\.)re"}));
    const std::set<std::string> without = numbers_in(missing[1].str(), std::regex{"([0-9]{3})"});
    for (int i = 1; i <= last; ++i) {
        const std::string number = std::to_string(1000 + i).substr(1);
        EXPECT_NE(rows.contains(number), without.contains(number))
            << number
            << (rows.contains(number) ? " has a page and is named as a number without one"
                                      : " has no page, and the list does not say why");
    }
    EXPECT_LE(rows.size() + without.size(), static_cast<std::size_t>(last))
        << "the list has rows for pages that are not there";
}

/// Public names of `class name`: its types, and its functions but for constructors. Members are told by their four spaces.
std::set<std::string> public_members(const std::string& text, const std::string& name) {
    const auto begin = text.find("\nclass " + name);
    std::istringstream lines{text.substr(std::min(begin, text.size()), text.find("\n};", begin) - begin)};
    const std::regex type{R"re(    using ([A-Za-z_]+) = .*)re"};
    const std::regex function{R"re(    (?:\[\[nodiscard\]\] )?[A-Za-z_][^(=]*[ &*]([a-z_]+)\(.*)re"};
    std::set<std::string> found;
    bool is_public = false;
    for (std::string line; std::getline(lines, line);) {
        std::smatch member;
        if (line == "public:") {
            is_public = true;
        } else if (line == "protected:" || line == "private:") {
            is_public = false;
        } else if (is_public && (std::regex_match(line, member, type) || std::regex_match(line, member, function))) {
            found.insert(member[1].str());
        }
    }
    return found;
}

/// A refused trainer must take every use without a second error: the test of it that the compiler runs uses every member.
TEST(Docs, EveryMemberOfATrainerIsUsedOfARefusedOne) {
    const auto members =
        public_members(read_text(source_dir / "include/strata/train/detail/trainer_body.hpp"), "TrainerBody");
    ASSERT_GE(members.size(), 12U) << "TrainerBody has lost its members, or this test no longer finds them";
    for (const auto& known : {"Options", "every", "fit", "with_average", "folder"})
        EXPECT_TRUE(members.contains(known)) << "this test no longer finds " << known;
    const std::string uses = read_text(source_dir / "tests/compile_fail/rejected_trainers_have_every_member.cpp");
    for (const auto& member : members)
        EXPECT_TRUE(std::regex_search(uses, std::regex{"(\\.|Mine::)" + member + "\\b"}))
            << "tests/compile_fail/rejected_trainers_have_every_member.cpp does not use " << member;
}

TEST(Docs, NoFileHoldsAPlaceholderForPrompts) {
    const std::string placeholder = std::string{"PROM"} + "PTS";  // in two parts: this file is looked at as well
    auto files = all_pages();
    for (const auto& folder : {"include", "examples", "tests", "tools", "cmake"})
        for (const auto& path :
             files_under(source_dir / folder, {".hpp", ".ipp", ".cpp", ".sh", ".json", ".cmake", ".txt"}))
            files.push_back(path);
    ASSERT_GE(files.size(), 100U);
    for (const auto& file : files) {
        const std::string text = read_text(file);
        EXPECT_FALSE(std::regex_search(text, std::regex{"\\b" + placeholder + "\\b"})) << file;
    }
}

/// The page's recipe is what the quickstart trains with.
TEST(Docs, TheRecipeInModelsIsTheQuickstarts) {
    const std::string config = read_text(source_dir / "examples/quickstart.json");
    const std::string page = read_text(source_dir / "docs/models.md");
    const auto value = [&](const std::string& key) {
        std::smatch found;
        EXPECT_TRUE(std::regex_search(config, found, std::regex{"\"" + key + "\": *([^,\\s]+)"}))
            << key << " in examples/quickstart.json";
        return found.empty() ? key : found[1].str();
    };
    const auto row = [&](const std::string& what) {
        const auto begin = page.find("\n| " + what + " | ");
        return begin == std::string::npos ? "" : page.substr(begin + 1, page.find('\n', begin + 1) - begin - 1);
    };
    const int a_rank = std::stoi(value("train_batch_size"));
    const int steps = std::stoi(value("max_train_steps"));
    const auto expect_in = [&](const std::string& what, const std::string& words) {
        EXPECT_NE(row(what).find(words), std::string::npos)
            << "docs/models.md, row '" << what << "' should say '" << words << "': " << row(what);
    };
    expect_in("batch", std::to_string(a_rank) + " a rank, " + std::to_string(2 * a_rank) + " in all");
    expect_in("batch", std::to_string(steps) + " steps, " + std::to_string((2 * a_rank * steps + 500) / 1000) +
                           " thousand pictures");
    expect_in("AdamW", "rate " + value("learning_rate"));
    expect_in("AdamW", "betas " + value("optimizer_beta1") + " and " + value("optimizer_beta2"));
    expect_in("schedule", value("lr_warmup_steps") + " steps of warmup");
    expect_in("sampling",
              value("validation_num_inference_steps") + " Euler steps, guidance " + value("validation_guidance"));
}

TEST(Docs, TheVersionInTheHeaderIsTheProjects) {
    const std::string project = read_text(source_dir / "CMakeLists.txt");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(project, found, std::regex{R"re(project\(strata VERSION ([0-9.]+))re"}));
    const std::string header = read_text(source_dir / "include/strata/core/version.hpp");
    EXPECT_NE(header.find("version = \"" + found[1].str() + "\";"), std::string::npos)
        << found[1] << " in core/version.hpp";
}

TEST(Docs, EveryErrorNumberHasAPageThatOpensWithIt) {
    std::set<std::string> numbers;
    for (const auto& [number, count] : compile_time_numbers()) numbers.insert(number);
    for (const auto& [name, number] : run_time_numbers()) numbers.insert(number);
    ASSERT_GE(numbers.size(), 7U);
    std::string missing;
    for (const auto& number : numbers) {
        const std::string page = read_text(source_dir / "docs/errors" / (number + ".md"));
        if (!page.starts_with("# " + number + ": ")) missing += number + " ";
    }
    EXPECT_EQ(missing, "") << "docs/errors/STnnnn.md is missing or does not open with '# STnnnn: '";
}

TEST(Docs, EveryErrorPageBelongsToANumberInUse) {
    std::set<std::string> numbers;
    for (const auto& [number, count] : compile_time_numbers()) numbers.insert(number);
    for (const auto& [name, number] : run_time_numbers()) numbers.insert(number);
    for (const auto& page : files_under(source_dir / "docs/errors", {".md"})) {
        const std::string stem = page.stem().string();
        if (!stem.starts_with("ST")) continue;
        EXPECT_TRUE(numbers.contains(stem)) << page << " explains a number nobody prints";
    }
}

TEST(Docs, EveryRunTimeNumberIsThrownSomewhere) {
    std::string code;
    for (const auto& folder : {"include", "examples", "tools"}) {
        for (const auto& path : files_under(source_dir / folder, {".hpp", ".ipp", ".cpp"})) {
            if (path.filename() != "error.hpp") code += std::regex_replace(read_text(path), std::regex{"//[^\n]*"}, "");
        }
    }
    std::string unused;
    for (const auto& [name, number] : run_time_numbers()) {
        // `Error{Errc::x`, or Errc::x as an argument before others: of a function that throws.
        if (!std::regex_search(code, std::regex{"Error\\{Errc::" + name + "\\b|Errc::" + name + ","}))
            unused += name + " ";
    }
    EXPECT_EQ(unused, "") << "numbers of Errc that nobody throws";
}

TEST(Docs, EveryCompileTimeSentenceStandsOnceAndOffersAFix) {
    for (const auto& [number, count] : compile_time_numbers()) EXPECT_EQ(count, 1) << number;
    for (const auto& path : files_under(source_dir / "include", {".hpp", ".ipp"})) {
        const std::string text = read_text(path);
        for (auto at = text.find("\"[ST"); at != std::string::npos; at = text.find("\"[ST", at + 1)) {
            const std::string sentence = text.substr(at, text.find(");", at) - at);
            EXPECT_NE(sentence.find("Fix: "), std::string::npos) << path << " offers no fix: " << sentence;
        }
    }
}

TEST(Docs, EveryCompileTimeSentenceHasACompileFailTest) {
    const std::string tests = read_text(source_dir / "tests/CMakeLists.txt");
    const auto tested = numbers_in(tests, std::regex{R"re(strata_compile_fail\(\w+ EXPECT (ST[0-9]{4}))re"});
    for (const auto& [number, count] : compile_time_numbers()) {
        EXPECT_TRUE(tested.contains(number)) << number << " has no strata_compile_fail in tests/CMakeLists.txt";
    }
}

}  // namespace
