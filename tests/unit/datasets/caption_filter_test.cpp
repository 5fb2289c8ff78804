#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/caption_filter.hpp>
#include <strata/datasets/captions.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata::config::ImageDataset;
using strata_test::thrown_by;
using Texts = std::vector<std::string>;

std::string filtered(const Texts& entries, const std::string& caption) {
    return CaptionFilter{entries, "photos"}.filtered(caption);
}
std::string refusal(const std::string& entry) {
    const auto thrown = thrown_by([&] { (void)CaptionFilter({"fine", entry}, "photos"); });
    EXPECT_EQ(thrown.code, Errc::bad_caption_filter) << entry;
    return thrown.message;
}

/// The list that SimpleTuner's pages explain, line by line.
TEST(CaptionFilter, DoesWhatThePagesOfSimpleTunerSay) {
    const Texts list{"arafed ", "this .* has a", "^this is the beginning of the string",
                     "s/this/will be found and replaced/"};
    EXPECT_EQ(filtered(list, "an arafed dog and arafed cat"), "an dog and cat");
    EXPECT_EQ(filtered(list, "an arafed"), "an arafed") << "the space at an entry's end counts";
    EXPECT_EQ(filtered(list, "this image clearly has a dog"), "dog");
    EXPECT_EQ(filtered(list, "this is the beginning of the string: a dog"), ": a dog");
    EXPECT_EQ(filtered(list, "and here it is not: this is the beginning of the string"),
              "and here it is not: will be found and replaced is the beginning of the string");
    EXPECT_EQ(filtered({}, " as it is "), "as it is");
    EXPECT_TRUE(CaptionFilter{}.empty());
}

TEST(CaptionFilter, TermsAreTakenOutAsTheyAreWrittenAndAsExpressions) {
    EXPECT_EQ(filtered({"(c) 2020"}, "a dog (c) 2020, c 2020"), "a dog ,") << "first the term, then its matches";
    EXPECT_EQ(filtered({"a.b"}, "a.b acb a-b"), "");
    EXPECT_EQ(filtered({"nothing"}, "nothing, nothingnothing!"), ", !");
    EXPECT_EQ(filtered({"ab"}, "aabb"), "ab") << "what is left is not looked at again";
    EXPECT_EQ(filtered({"ab", "ab"}, "aabb"), "") << "but by the next entry";
    EXPECT_EQ(filtered({"s/x"}, "s/x and x"), "and x") << "no replacement without a second '/'";
    EXPECT_EQ(filtered({"Dog"}, "Dog dog"), "dog");
}

TEST(CaptionFilter, ReplacementsHaveGroupsAndFlags) {
    EXPECT_EQ(filtered({"s/dog/cat"}, "dogs, dog"), "cats, cat");
    EXPECT_EQ(filtered({R"(s/(\w+) and (\w+)/\2 or \1/)"}, "cats and dogs"), "dogs or cats");
    EXPECT_EQ(filtered({R"(s/(?P<pet>cat|dog)s/one \g<pet>/)"}, "two cats"), "two one cat");
    EXPECT_EQ(filtered({"s/DOG/cat/i"}, "Dog doG"), "cat cat");
    EXPECT_EQ(filtered({"s/dog/cat/g"}, "dog dog"), "cat cat");
    EXPECT_EQ(filtered({R"(s/1\/2/half\/2/)"}, "1/2 of it"), "half/2 of it");
    EXPECT_EQ(filtered({"s/price/$5 \\\\/"}, "price"), "$5 \\") << "a dollar is a dollar";
    EXPECT_EQ(filtered({"s/ +/ /", "s/^a //"}, "a   dog    on grass"), "dog on grass");
    EXPECT_EQ(filtered({"s/x/" + std::string(3000, 'y') + "/"}, "xx"), std::string(6000, 'y'));
    EXPECT_EQ(filtered({"s/dog//"}, "a dog"), "a");
}

TEST(CaptionFilter, CharactersAreThoseOfUtf8) {
    EXPECT_EQ(filtered({"^.{3}"}, "äöü dog"), "dog");
    EXPECT_EQ(filtered({"s/[äö]/a/"}, "bär, böse, bü"), "bar, base, bü");
    EXPECT_EQ(filtered({"s/ÄRGER/joy/i"}, "ärger"), "joy");
    EXPECT_EQ(filtered({R"(s/\w+ß/foot/)"}, "groß und Fuß"), "foot und foot");
    EXPECT_EQ(filtered({"b.d"},
                       "bad \xFF b\xFF"
                       "d bid"),
              "\xFF b\xFF"
              "d")
        << "damaged text is kept, and never matches";
}

TEST(CaptionFilter, MistakesAreNamed) {
    const std::string open = refusal("a photo (of");
    for (const char* part : {"[ST2121] entry 'a photo (of' of caption_filter_list of data set 'photos' is no regular "
                             "expression: missing closing parenthesis, at character 12",
                             "\\( for a parenthesis"})
        EXPECT_NE(open.find(part), std::string::npos) << open;
    EXPECT_NE(refusal("s/a/b/c").find("has 'c' behind its last '/'"), std::string::npos);
    EXPECT_NE(refusal("s//b/").find("searches for nothing"), std::string::npos);
    EXPECT_NE(refusal("s/[a/b/").find("missing terminating ]"), std::string::npos);
    // What shows only when it is applied.
    const CaptionFilter group{{R"(s/dog/\3/)"}, "photos"};
    EXPECT_EQ(group.filtered("a cat"), "a cat");
    const auto thrown = thrown_by([&] { (void)group.filtered("a dog"); });
    EXPECT_EQ(thrown.code, Errc::bad_caption_filter);
    EXPECT_TRUE(thrown.says(R"(entry 's/dog/\3/')") && thrown.says("caption 'a dog'")) << thrown.message;
    const CaptionFilter endless{{"(a|aa|aaa)+b"}, "photos"};
    const auto tired = thrown_by([&] { (void)endless.filtered(std::string(60, 'a') + "c b"); });
    EXPECT_EQ(tired.code, Errc::bad_caption_filter);
    EXPECT_TRUE(tired.says("match limit exceeded")) << tired.message;
}

TEST(CaptionFilter, LongCaptionsAreNoTroubleForTheStack) {
    const std::string half(200'000, 'x');
    EXPECT_EQ(filtered({"(x|y)*z"}, half + "z"), "");
    EXPECT_EQ(filtered({"s/^(.*) dog (.*)$/\\2/"}, half + " dog end"), "end");
}

TEST(CaptionFilter, CaptionsOfWhichNothingIsLeftAreLeftOut) {
    const CaptionFilter filter{{"dog"}, "photos"};
    EXPECT_EQ(filter.filtered(Texts{"dog", "a dog", " dogdog"}), Texts{"a"});
    EXPECT_EQ(filter.filtered(Texts{"dog", "dogdog"}), Texts{""});
}

TEST(CaptionFilter, CaptionsAreFilteredBeforeTheyAreShuffledAndThePromptIsNot) {
    ImageDataset settings;
    settings.id = "photos";
    settings.caption_filter_list = {"dog, ", "^dog$"};
    settings.instance_prompt = "sks dog, ";
    settings.prepend_instance_prompt = true;
    settings.caption_shuffle.emplace().enable = true;
    settings.caption_shuffle->include_original = false;
    const CaptionRule rule{settings, 42};
    const Texts found{"dog, one, two", "dog"};
    const Texts all = rule.all(found);
    ASSERT_EQ(all.size(), 1U) << "of 'dog' nothing is left";
    EXPECT_TRUE(all[0] == "sks dog,  one, two" || all[0] == "sks dog,  two, one") << all[0];
    for (std::uint64_t visit = 0; visit < 20; ++visit) EXPECT_EQ(rule.caption(found, visit), all[0]);
    EXPECT_EQ(rule.all({"dog"}), Texts{"sks dog,  "});
    settings.only_instance_prompt = true;
    EXPECT_EQ(CaptionRule(settings, 42).all(found), Texts{"sks dog, "});
}

}  // namespace
