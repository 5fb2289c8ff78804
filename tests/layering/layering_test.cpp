// tests/layering/layering_test.cpp - the rules of the house, read from the text of every file under include/strata/.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>

namespace {

namespace fs = std::filesystem;

const fs::path source_dir{STRATA_SOURCE_DIR};

/// Floor of every room. A room includes only rooms on lower floors, so rooms of one floor never meet.
const std::map<std::string, int, std::less<>> floors{
    {"core", 0},   {"policy", 1},    {"options", 1},  {"config", 2},     {"storage", 2},  {"comm", 2},
    {"http", 3},   {"tables", 3},    {"pictures", 3}, {"optim", 3},      {"offload", 3},  {"tokenizers", 3},
    {"s3", 4},     {"zero", 4},      {"datasets", 5}, {"checkpoint", 5}, {"health", 5},   {"weights", 5},
    {"data", 6},   {"diffusion", 6}, {"webhooks", 6}, {"models", 7},     {"adapters", 8}, {"families", 9},
    {"train", 10}, {"testing", 11},
};

struct SourceFile {
    std::string room;  ///< empty for the umbrella header
    fs::path path;     ///< relative to include/strata
    std::vector<std::string> lines;
};

std::vector<std::string> read_lines(const fs::path& path) {
    std::ifstream in{path};
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

const std::vector<SourceFile>& all_files() {
    static const std::vector<SourceFile> files = [] {
        std::vector<SourceFile> found;
        const fs::path root = source_dir / "include" / "strata";
        for (const auto& entry : fs::recursive_directory_iterator{root}) {
            if (!entry.is_regular_file()) continue;
            const fs::path relative = entry.path().lexically_relative(root);
            const std::string room = relative.has_parent_path() ? relative.begin()->string() : "";
            found.push_back({room, relative, read_lines(entry.path())});
        }
        std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
        return found;
    }();
    return files;
}

struct Include {
    std::string where;   ///< "zero/engine.hpp:12"
    std::string header;  ///< what stands between the brackets or quotes
};

std::vector<Include> includes_of(const SourceFile& file) {
    std::vector<Include> found;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        std::string_view line = file.lines[i];
        const auto skip_blanks = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
        skip_blanks();
        if (!line.starts_with('#')) continue;
        line.remove_prefix(1);
        skip_blanks();
        if (!line.starts_with("include")) continue;
        line.remove_prefix(std::string_view{"include"}.size());
        skip_blanks();
        const auto end = line.find_first_of(">\"", 1);
        if (line.empty() || end == std::string_view::npos) continue;
        found.push_back({file.path.string() + ":" + std::to_string(i + 1), std::string{line.substr(1, end - 1)}});
    }
    return found;
}

/// Expects that only files of `rooms` include a header for which `matches` is true.
template <class Matches>
void expect_only_in(const std::set<std::string>& rooms, Matches matches) {
    for (const auto& file : all_files()) {
        if (rooms.contains(file.room)) continue;
        for (const auto& include : includes_of(file)) {
            EXPECT_FALSE(matches(include.header)) << include.where << " includes <" << include.header << ">";
        }
    }
}

TEST(Layering, ReadsTheTree) {
    ASSERT_GE(all_files().size(), 10U);
    std::size_t includes = 0;
    for (const auto& file : all_files()) includes += includes_of(file).size();
    EXPECT_GE(includes, 30U);
}

TEST(Layering, EveryRoomHasAFloor) {
    for (const auto& file : all_files()) {
        if (file.path == "strata.hpp") continue;
        EXPECT_TRUE(floors.contains(file.room)) << file.path << " is in no room of design.md";
    }
}

TEST(Layering, ARoomIncludesOnlyItselfAndLowerFloors) {
    for (const auto& file : all_files()) {
        const auto own = floors.find(file.room);
        if (own == floors.end()) continue;
        for (const auto& include : includes_of(file)) {
            const fs::path header{include.header};
            if (*header.begin() != "strata") continue;
            const std::string other = std::next(header.begin())->string();
            const auto lower = floors.find(other);
            ASSERT_NE(lower, floors.end()) << include.where << " includes <" << include.header << "> of no room";
            EXPECT_TRUE(other == file.room || lower->second < own->second)
                << include.where << ": " << file.room << " (floor " << own->second << ") includes " << other
                << " (floor " << lower->second << ")";
        }
    }
}

TEST(Layering, OwnHeadersAreIncludedWithBracketsAndTheirFullPath) {
    for (const auto& file : all_files()) {
        for (const auto& line : file.lines) EXPECT_FALSE(line.starts_with("#include \"")) << file.path << ": " << line;
        for (const auto& include : includes_of(file)) {
            if (!include.header.starts_with("strata/")) continue;
            EXPECT_TRUE(fs::exists(source_dir / "include" / include.header))
                << include.where << " includes <" << include.header << ">, which does not exist";
        }
    }
}

/// What headers reach through others is read from their text, so that a translation unit of options stays one of 0.1 s.
TEST(Layering, OptionsReachNoLibtorch) {
    std::map<fs::path, const SourceFile*> by_path;
    for (const auto& file : all_files()) by_path[file.path] = &file;
    std::vector<fs::path> queue{"train/options.hpp", "train/validate.hpp", "zero/engine_options.hpp",
                                "config/trainer_config.hpp"};
    for (const auto& [path, file] : by_path)
        if (file->room == "options" && path.extension() == ".hpp") queue.push_back(path);
    EXPECT_GE(queue.size(), 12U);
    std::map<fs::path, std::string> reached_by;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        const auto file = by_path.find(queue[i]);
        ASSERT_NE(file, by_path.end()) << queue[i];
        for (const auto& include : includes_of(*file->second)) {
            const fs::path header{include.header};
            const std::string root = header.begin()->string();
            EXPECT_TRUE(root != "ATen" && root != "torch" && root != "c10")
                << include.where << " includes <" << include.header << ">, which options reach by "
                << reached_by[queue[i]];
            if (root != "strata") continue;
            const fs::path next = header.lexically_relative("strata");
            if (reached_by.emplace(next, reached_by[queue[i]] + " " + include.where).second) queue.push_back(next);
        }
    }
    EXPECT_TRUE(reached_by.contains("core/option_description.hpp"));
}

TEST(Layering, OnlyCommSeesMpi) {
    expect_only_in({"comm"}, [](std::string_view header) { return header == "mpi.h"; });
}

TEST(Layering, OnlyDataSetsAndDataSeeTbb) {
    expect_only_in({"datasets", "data"}, [](std::string_view header) {
        return header.starts_with("oneapi/tbb") || header.starts_with("tbb/") || header == "execution";
    });
}

/// What only newer versions of libtorch have is used behind one header, which says what that is.
TEST(Layering, OnlyOneHeaderAsksForTheVersionOfLibtorch) {
    for (const auto& file : all_files()) {
        const bool records_it = file.path == "train/impl/environment.ipp";  // in checkpoints; nothing is chosen by it
        if (file.path == "zero/torch_version.hpp" || records_it) continue;
        for (const auto& line : file.lines)
            EXPECT_EQ(line.find("TORCH_VERSION"), std::string::npos) << file.path << ": " << line;
    }
}

TEST(Layering, OnlyModelsAndAdaptersSeeAllOfTorch) {
    const auto is_heavy = [](std::string_view header) {
        return header == "torch/torch.h" || header == "torch/all.h" || header == "torch/types.h" ||
               header == "torch/script.h" || header.starts_with("torch/nn") || header.starts_with("torch/optim") ||
               header == "ATen/ATen.h" || header == "ATen/Functions.h";
    };
    expect_only_in({"models", "adapters"}, is_heavy);
}

TEST(Layering, OnlyBodiesOfZeroSeeAutogradInternals) {
    for (const auto& file : all_files()) {
        const bool may = file.room == "models" || (file.room == "zero" && file.path.extension() == ".ipp");
        if (may) continue;
        for (const auto& include : includes_of(file)) {
            EXPECT_FALSE(include.header.starts_with("torch/csrc")) << include.where << " includes " << include.header;
        }
    }
}

TEST(Layering, TheLowFloorsSeeNoTensor) {
    for (const auto& file : all_files()) {
        const auto floor = floors.find(file.room);
        if (floor == floors.end() || floor->second > 2) continue;
        for (const auto& include : includes_of(file)) {
            const bool tensor = include.header.starts_with("torch/") || include.header.starts_with("ATen/") ||
                                include.header.starts_with("c10/");
            EXPECT_FALSE(tensor) << include.where << " includes <" << include.header << ">";
        }
    }
}

TEST(Layering, EveryFileOpensWithItsNameAndOneSentence) {
    for (const auto& file : all_files()) {
        ASSERT_GE(file.lines.size(), 2U) << file.path;
        // Text that a body includes more than once, and what nobody includes.
        const bool unguarded =
            file.path.extension() == ".inc" || file.path.extension() == ".cu" || file.path.extension() == ".cpp";
        if (!unguarded) {
            EXPECT_EQ(file.lines[0], "#pragma once") << file.path;
        }
        const std::string& line = file.lines[unguarded ? 0 : 1];
        const std::string opening = "// strata/" + file.path.string() + " - ";
        EXPECT_TRUE(line.starts_with(opening)) << file.path << ": does not open with '" << opening << "...'";
        EXPECT_TRUE(line.size() > opening.size() + 10) << file.path << ": the sentence says nothing";
    }
}

TEST(Layering, NoFileIsLongerThanSixHundredLines) {
    for (const auto& file : all_files()) EXPECT_LE(file.lines.size(), 600U) << file.path;
}

TEST(Layering, EveryBodyBelongsToAHeaderThatIncludesIt) {
    std::set<std::string> included;
    for (const auto& file : all_files()) {
        for (const auto& include : includes_of(file)) included.insert(include.header);
    }
    for (const auto& file : all_files()) {
        if (file.path.extension() != ".ipp") continue;
        EXPECT_TRUE(included.contains("strata/" + file.path.string())) << "no header includes " << file.path;
    }
}

/// Reads headers as a compiler does for a header-only program, from one of them on.
class HeaderOnlyReader {
public:
    HeaderOnlyReader() {
        for (const auto& file : all_files()) {
            File& known = files_["strata/" + file.path.string()];
            known.includes = includes_of(file);
            for (std::size_t i = 0; i < file.lines.size(); ++i) {
                const auto first = file.lines[i].find_first_not_of(" \t");
                if (first == std::string::npos) continue;
                const std::string_view text = std::string_view{file.lines[i]}.substr(first);
                if (!text.starts_with('#') && !text.starts_with("//")) known.last_text = i + 1;
            }
        }
    }
    [[nodiscard]] std::vector<std::string> headers() const {
        std::vector<std::string> all;
        for (const auto& [path, file] : files_)
            if (path.ends_with(".hpp")) all.push_back(path);
        return all;
    }
    /// What is included where it has begun, but has text left that has not been read.
    [[nodiscard]] std::string too_early_from(const std::string& root) {
        read_.clear();
        open_.clear();
        too_early_.clear();
        read(root);
        return too_early_;
    }

private:
    struct File {
        std::vector<Include> includes;
        std::size_t last_text = 0;  ///< line of it, from 1
    };
    void read(const std::string& path) {
        const auto file = files_.find(path);
        if (file == files_.end() || !read_.insert(path).second) return;
        open_.push_back({path, 0});
        for (const Include& include : file->second.includes) {
            open_.back().line = std::stoul(include.where.substr(include.where.rfind(':') + 1));
            const auto begun =
                std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.path == include.header; });
            const bool is_needed = open_.back().line < file->second.last_text;  // else it stands below all text
            const bool through_a_body =
                std::any_of(begun, open_.end(), [](const Open& open) { return open.path.ends_with(".ipp"); });
            if (is_needed && through_a_body && begun->line < files_[include.header].last_text)
                too_early_ += include.where + " includes <" + include.header + ">\n";
            read(include.header);
        }
        open_.pop_back();
    }

    struct Open {
        std::string path;
        std::size_t line;  ///< that is being read
    };
    std::map<std::string, File> files_;
    std::set<std::string> read_;
    std::vector<Open> open_;
    std::string too_early_;
};

/// cmake/headers.cmake compiles every header without the bodies of others. It stands alone in a header-only program, too, as
/// long as no body is read in the middle of a header that it needs.
TEST(Layering, HeaderOnlyNothingIsNeededBeforeItHasBeenRead) {
    HeaderOnlyReader reader;
    EXPECT_GE(reader.headers().size(), 200U);
    for (const std::string& header : reader.headers())
        EXPECT_EQ(reader.too_early_from(header), "") << "where a file begins with #include <" << header << ">";
}

/// Each room's bodies are compiled once, together; of another room they would be defined twice. Its headers bring them where they are needed.
TEST(Layering, BodiesReadBodiesOfTheirOwnRoomAlone) {
    for (const auto& file : all_files()) {
        if (file.path.extension() != ".ipp") continue;
        for (const Include& include : includes_of(file)) {
            if (!include.header.ends_with(".ipp")) continue;
            EXPECT_TRUE(include.header.starts_with("strata/" + file.room + "/"))
                << include.where << " includes <" << include.header << ">: include its header";
        }
    }
}

/// Else a program that includes this header and no other finds no definition. In a body that is compiled with all others nothing shows that.
TEST(Layering, WhatABodyDeclaresIsDefinedInItOrInWhatItIncludes) {
    std::map<std::string, const SourceFile*> by_name;
    for (const auto& file : all_files()) by_name["strata/" + file.path.string()] = &file;
    const auto defines = [](const SourceFile& file, const std::string& function) {
        return std::any_of(file.lines.begin(), file.lines.end(), [&](const std::string& line) {
            return (line.find("STRATA_INLINE ") != std::string::npos || line.find("inline ") != std::string::npos) &&
                   line.find(" " + function + "(") != std::string::npos && !line.ends_with(";");
        });
    };
    const auto reaches_definition = [&](const SourceFile& body, const std::string& function) {
        std::set<std::string> read;
        std::vector<const SourceFile*> open{&body};
        while (!open.empty()) {
            const SourceFile& file = *open.back();
            open.pop_back();
            if (defines(file, function)) return true;
            for (const Include& include : includes_of(file)) {
                const auto known = by_name.find(include.header);
                if (known != by_name.end() && read.insert(include.header).second) open.push_back(known->second);
            }
        }
        return false;
    };
    const std::regex declaration{R"((?:\[\[nodiscard\]\] )?[A-Za-z_][\w:<>*& ]* [*&]?([a-z_]+)\([^()]*\);)"};
    int declared = 0;
    for (const auto& file : all_files()) {
        if (file.path.extension() != ".ipp") continue;
        for (const std::string& line : file.lines) {
            std::smatch parts;
            if (!std::regex_match(line, parts, declaration)) continue;
            ++declared;
            EXPECT_TRUE(reaches_definition(file, parts[1])) << file.path << ": " << line;
        }
    }
    EXPECT_GE(declared, 1) << "the expression above finds nothing any more";
}

/// As clang-format 14 leaves it. Versions differ, so without that one nobody can tell.
TEST(Layering, TheTreeIsFormatted) {
    std::string said;
    std::FILE* const pipe = ::popen(("'" + (source_dir / "cmake/format.sh").string() + "' --check 2>&1").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said += static_cast<char>(c);
    const int status = ::pclose(pipe);
    ASSERT_TRUE(WIFEXITED(status)) << said;
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << said;
    EXPECT_EQ(WEXITSTATUS(status), 0) << "not as cmake/format.sh would leave it:\n" << said;
}

TEST(Layering, EveryHeaderIsListedInRoomsCmake) {
    std::string text;
    for (const auto& line : read_lines(source_dir / "cmake" / "rooms.cmake")) text += line + "\n";
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '(' || c == ')'; }, ' ');

    std::map<std::string, std::set<std::string>> listed;
    std::istringstream words{text};
    std::string room;
    const std::string conditional = "_headers";  // comm_headers: of room comm, under an option, before its stanza
    for (std::string word; words >> word;) {
        if (word == "strata_room")
            words >> room;
        else if (word.ends_with(conditional))
            room = word.substr(0, word.size() - conditional.size());
        else if (word.ends_with(".hpp"))
            listed[room].insert(word);
    }

    std::string missing;
    for (const auto& file : all_files()) {
        if (file.path.extension() != ".hpp" || file.room.empty()) continue;
        const std::string within_room = file.path.lexically_relative(file.room).string();
        if (!listed[file.room].contains(within_room)) missing += file.path.string() + "\n";
    }
    EXPECT_EQ(missing, "") << "headers that are neither installed nor verified, because no room lists them";
}

}  // namespace
