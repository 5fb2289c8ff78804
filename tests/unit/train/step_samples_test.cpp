#include <strata/train/step_samples.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

using strata::train::naming_samples;
using strata::train::StepSamples;

TEST(StepSamples, ALossThatIsNotFiniteNamesThoseOfItsMicroBatch) {
    StepSamples samples;
    samples.add({"a", "b"}, true);
    samples.add({"c", "d"}, false);
    EXPECT_EQ(samples.text(false), "c, d");
    EXPECT_EQ(samples.text(true), "a, b, c, d") << "of gradients that are not finite nobody knows whose";
}

TEST(StepSamples, ARankWhoseLossesAreFiniteNamesNone) {
    StepSamples samples;
    samples.add({"a", "b"}, true);
    EXPECT_EQ(samples.text(false), "");
    EXPECT_EQ(StepSamples{}.text(true), "");
}

TEST(StepSamples, ManyAreCounted) {
    StepSamples samples;
    samples.add({"a", "b", "c"}, true);
    samples.add({"d", "e"}, true);
    EXPECT_EQ(samples.text(true, 2), "a, b and 3 more");
}

TEST(StepSamples, TheSentenceSaysWhichRankHadThem) {
    using Texts = std::vector<std::string>;
    EXPECT_EQ(naming_samples(Texts{"a"}), "; its samples: a");
    EXPECT_EQ(naming_samples(Texts{""}), "");
    EXPECT_EQ(naming_samples(Texts{"", "b, c", "d"}), "; its samples on rank 1: b, c, on rank 2: d");
    EXPECT_EQ(naming_samples(Texts(6, "x")),
              "; its samples on rank 0: x, on rank 1: x, on rank 2: x, on rank 3: x, and those of 2 more ranks");
}

}  // namespace
