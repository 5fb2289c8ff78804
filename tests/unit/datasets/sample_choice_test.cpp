#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/sample_choice.hpp>

namespace {

using strata::datasets::chosen_samples;

std::vector<std::string> names(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back("folder/picture " + std::to_string(i) + ".png");
    return all;
}

std::set<std::string> chosen(const std::vector<std::string>& all, const std::string& id, std::int64_t most) {
    std::set<std::string> keys;
    for (const std::size_t i : chosen_samples({all.begin(), all.end()}, id, most)) keys.insert(all[i]);
    return keys;
}

TEST(SampleChoice, IsTheSameInWhateverOrderThePicturesAreListed) {
    auto all = names(1000);
    const auto first = chosen(all, "photos", 100);
    EXPECT_EQ(first.size(), 100U);
    std::reverse(all.begin(), all.end());
    EXPECT_EQ(chosen(all, "photos", 100), first);
    std::rotate(all.begin(), all.begin() + 333, all.end());
    EXPECT_EQ(chosen(all, "photos", 100), first);
    EXPECT_NE(chosen(all, "drawings", 100), first);
}

TEST(SampleChoice, AddedPicturesPushOutAtMostAsMany) {
    const auto before = chosen(names(1000), "photos", 100);
    const auto after = chosen(names(1010), "photos", 100);
    int kept = 0;
    for (const std::string& key : after) kept += before.contains(key) ? 1 : 0;
    EXPECT_GE(kept, 90);
}

TEST(SampleChoice, AllAreKeptWithoutANumberOrWithALargeOne) {
    const auto all = names(5);
    const std::vector<std::size_t> everything{0, 1, 2, 3, 4};
    for (const std::int64_t most : {0, 5, 6, 1000000})
        EXPECT_EQ(chosen_samples({all.begin(), all.end()}, "photos", most), everything) << most;
    EXPECT_TRUE(chosen_samples({}, "photos", 3).empty());
}

TEST(SampleChoice, EveryPictureIsEquallyLikely) {
    const auto all = names(20);
    std::vector<int> times(20);
    for (int id = 0; id < 2000; ++id)
        for (const std::size_t i : chosen_samples({all.begin(), all.end()}, std::to_string(id), 5)) ++times[i];
    for (const int count : times) EXPECT_NEAR(count, 500, 5 * 20);
}

}  // namespace
