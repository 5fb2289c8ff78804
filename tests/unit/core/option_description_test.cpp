// What options say of themselves arrives at who visits them, and the numbers of one tree in another.

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace {

using namespace strata;

enum class Colour : std::uint8_t { red, blue };
constexpr std::array<NamedValue<Colour>, 2> colours{{{"red", Colour::red}, {"blue", Colour::blue}}};

struct Inner {
    double share = 0.5;
    static void describe(auto& option) { option("share", &Inner::share, {0, 1}, "A share"); }
};
struct OtherInner {
    double share = 0.125;
    std::int64_t more = 1;
    static void describe(auto& option) {
        option("share", &OtherInner::share, {0, 1}, "A share");
        option("more", &OtherInner::more, {1}, "More");
    }
};

template <class Part>
struct Tree {
    std::int64_t count = 3;
    bool loud = false;
    std::filesystem::path folder;
    Colour colour = Colour::blue;
    std::chrono::seconds wait{5};
    Part part{};
    int undescribed = 1;

    static void describe(auto& option) {
        option("count", &Tree::count, {1, 9}, {.help = "A count", .unit = "apples", .special = "1 is one"});
        option("loud", &Tree::loud, "Says more");
        option("folder", &Tree::folder, {.help = "A folder", .key = "its_folder", .alias = "folder"});
        option("colour", &Tree::colour, colours, {.help = "A colour"});
        option("wait", &Tree::wait, ranges::timeout_s, "Seconds");
        option.part("part", &Tree::part, "part_", "Of the part");
    }
};
struct Silent {
    int number = 1;
};
static_assert(DescribedOptions<Tree<Inner>> && !DescribedOptions<Silent>);

TEST(OptionDescription, EveryOptionIsVisitedOnceAndInOrder) {
    Tree<Inner> tree;
    std::vector<std::string> names;
    visit_options<Tree<Inner>>([&](const auto& option) {
        names.emplace_back(option.name);
        using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
        if constexpr (std::same_as<Member, std::int64_t>) {
            EXPECT_EQ(tree.*option.member, 3);
            EXPECT_EQ(option.kind, OptionKind::number);
            EXPECT_EQ(option.range.most, 9);
            EXPECT_EQ(option.words.unit, "apples");
        } else if constexpr (std::same_as<Member, Colour>) {
            EXPECT_EQ(option.kind, OptionKind::choice);
            EXPECT_EQ(option.values.size(), 2U);
        } else if constexpr (std::same_as<Member, std::filesystem::path>) {
            EXPECT_EQ(option.words.key, "its_folder");
        } else if constexpr (std::same_as<Member, Inner>) {
            EXPECT_EQ(option.kind, OptionKind::part);
            EXPECT_EQ(option.words.key, "part_");
        }
    });
    EXPECT_EQ(names, (std::vector<std::string>{"count", "loud", "folder", "colour", "wait", "part"}));
    visit_options<Silent>([](const auto&) { ADD_FAILURE() << "nothing is described"; });
}

TEST(OptionDescription, OneTreeTakesTheNumbersOfAnotherWithOtherParts) {
    const Tree<Inner> from{.count = 7,
                           .loud = true,
                           .folder = "a",
                           .colour = Colour::red,
                           .wait = std::chrono::seconds{9},
                           .part = {.share = 0.25},
                           .undescribed = 2};
    Tree<OtherInner> to;
    take_options(from, to);
    EXPECT_EQ(to.count, 7);
    EXPECT_TRUE(to.loud);
    EXPECT_EQ(to.folder, "a");
    EXPECT_EQ(to.colour, Colour::red);
    EXPECT_EQ(to.wait, std::chrono::seconds{9});
    EXPECT_EQ(to.part.share, 0.25) << "by name, though the parts are of two types";
    EXPECT_EQ(to.part.more, 1) << "what the other does not have stays";
    EXPECT_EQ(to.undescribed, 1);
}

}  // namespace
