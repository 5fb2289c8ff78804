#include <gtest/gtest.h>

#include <strata/core/amounts.hpp>

namespace {

using strata::core::in_megabytes;
using strata::core::with_commas;

TEST(Amounts, DigitsStandInGroupsOfThree) {
    EXPECT_EQ(with_commas(0), "0");
    EXPECT_EQ(with_commas(999), "999");
    EXPECT_EQ(with_commas(1000), "1,000");
    EXPECT_EQ(with_commas(1234567), "1,234,567");
    EXPECT_EQ(with_commas(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(Amounts, UnitsArePowersOfAThousandAndNeverShowAThousandOfOne) {
    EXPECT_EQ(in_megabytes(0), "0 bytes");
    EXPECT_EQ(in_megabytes(999), "999 bytes");
    EXPECT_EQ(in_megabytes(1000), "1.0 kB");
    EXPECT_EQ(in_megabytes(307'249'000), "307.2 MB");
    EXPECT_EQ(in_megabytes(999'949), "999.9 kB");
    EXPECT_EQ(in_megabytes(999'950), "1.0 MB");
    EXPECT_EQ(in_megabytes(2'500'000'000'000), "2.5 TB");
    EXPECT_EQ(in_megabytes(~std::uint64_t{0}), "18446.7 PB");
}

TEST(Amounts, BytesAreReadWithTheirUnits) {
    using strata::core::bytes_in;
    EXPECT_EQ(bytes_in("0"), 0U);
    EXPECT_EQ(bytes_in("4096"), 4096U);
    EXPECT_EQ(bytes_in("5GB"), 5'000'000'000U);
    EXPECT_EQ(bytes_in("1.5 MB"), 1'500'000U);
    EXPECT_EQ(bytes_in("2GiB"), std::uint64_t{2} << 30);
    for (const char* text : {"", "GB", "5 apples", "-1", "5  GB", "1.2.3", ".", "1e3", "99999999TB"})
        EXPECT_EQ(bytes_in(text), std::nullopt) << text;
}

TEST(Amounts, TimesHaveTwoUnitsAtMost) {
    using namespace std::chrono_literals;
    EXPECT_EQ(strata::core::in_words(-3s), "0 s");
    EXPECT_EQ(strata::core::in_words(0s), "0 s");
    EXPECT_EQ(strata::core::in_words(59s), "59 s");
    EXPECT_EQ(strata::core::in_words(60s), "1 min");
    EXPECT_EQ(strata::core::in_words(90s), "1 min 30 s");
    EXPECT_EQ(strata::core::in_words(300s), "5 min");
    EXPECT_EQ(strata::core::in_words(3600s), "1 h");
    EXPECT_EQ(strata::core::in_words(3900s), "1 h 5 min");
    EXPECT_EQ(strata::core::in_words(3959s), "1 h 5 min");
    EXPECT_EQ(strata::core::in_words(2h), "2 h");
}

}  // namespace
