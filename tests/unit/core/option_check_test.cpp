// Everything that is wrong with options, in one sentence, by the names that a person gave them.

#include <limits>

#include <gtest/gtest.h>

#include <strata/core/option_check.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::OptionCheck;
using strata::Range;
using strata_test::thrown_by;

struct Inner {
    double share = 0;
    void check(OptionCheck& check) const { check.number("share", share, {0, 1}); }
};
struct Silent {
    double anything = -1;
};

TEST(OptionCheck, FindsNothingWrongWithNumbersInTheirRange) {
    OptionCheck check;
    EXPECT_TRUE(check.number("a", 1, {1, 2}));
    EXPECT_TRUE(check.number("b", 2.0, {1, 2}));
    check.part("silent", Silent{});
    check.part("inner", Inner{});
    EXPECT_TRUE(check.found_nothing());
    EXPECT_NO_THROW(check.finish());
}

TEST(OptionCheck, SaysNameValueRangeAndWhatToType) {
    OptionCheck check;
    EXPECT_FALSE(check.number("steps", -3, {1, 1e12}, "1000 is usual"));
    const auto error = thrown_by([&] { check.finish(); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_EQ(error.message, "[ST2103] steps is -3. Fix: use steps from 1 to 1e+12 (1000 is usual).");
}

TEST(OptionCheck, RefusesWhatIsNoNumberAndWhatIsWithoutEnd) {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()}) {
        OptionCheck check;
        EXPECT_FALSE(check.number("rate", value, {0, 10})) << value;
    }
    OptionCheck check;
    EXPECT_FALSE(check.number("count", 0, {1}));
    EXPECT_NE(thrown_by([&] { check.finish(); }).message.find("use count >= 1"), std::string::npos);
}

TEST(OptionCheck, CollectsEverythingInTheOrderInWhichItWasFound) {
    OptionCheck check;
    check.number("first", -1, {0, 1});
    check.part("inner", Inner{1.5});
    check.refuse("left and right are both given", "keep one of them");
    EXPECT_FALSE(check.found_nothing());
    EXPECT_EQ(
        thrown_by([&] { check.finish(); }).message,
        "[ST2103] first is -1; inner.share is 1.5; left and right are both given. Fix: use first from 0 to 1; use "
        "inner.share from 0 to 1; keep one of them.");
}

TEST(OptionCheck, CallsOptionsByTheNamesOfTheFileTheyCameFrom) {
    OptionCheck check{OptionCheck::Names{{"inner.share", "'key_of_share'"}}};
    check.part("inner", Inner{-1});
    check.inside("groups[0]", [&] { check.part("inner", Inner{-2}); });
    EXPECT_EQ(thrown_by([&] { check.finish(); }).message,
              "[ST2103] 'key_of_share' is -1; groups[0].inner.share is -2. Fix: use 'key_of_share' from 0 to 1; use "
              "groups[0].inner.share from 0 to 1.");
}

}  // namespace
