// tests/unit/core/error_test.cpp - the message, the number and the exit status class of an Error.

#include <strata/core/error.hpp>

#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

TEST(Error, SaysNumberThenWhatThenFix) {
    const Error error{Errc::unknown_key, "dataset.json: nobody knows the key 'widht'", "type 'width'"};
    EXPECT_STREQ(error.what(), "[ST2102] dataset.json: nobody knows the key 'widht'. Fix: type 'width'.");
}

TEST(Error, KeepsItsCode) { EXPECT_EQ(Error(Errc::no_space, "a", "b").code(), Errc::no_space); }

TEST(Error, IsCaughtAsAStandardException) {
    try {
        throw Error{Errc::not_found, "a", "b"};
    } catch (const std::exception& error) {
        EXPECT_NE(std::string{error.what()}.find("[ST2002]"), std::string::npos);
    }
}

TEST(Error, ATypingErrorIsBadInputAndAFullDiskIsNot) {
    EXPECT_TRUE(is_bad_input(Errc::unknown_key));
    EXPECT_TRUE(is_bad_input(Errc::small_bucket));
    EXPECT_TRUE(is_bad_input(Errc::bad_reference));
    EXPECT_TRUE(is_bad_input(Errc::corrupt_parquet));
    EXPECT_TRUE(is_bad_input(Errc::bad_object_key));
    EXPECT_FALSE(is_bad_input(Errc::not_found)) << "a file that goes away under a run";
    EXPECT_FALSE(is_bad_input(Errc::store_unreachable)) << "the network may be back in a minute";
    EXPECT_FALSE(is_bad_input(Errc::no_space));
    EXPECT_FALSE(is_bad_input(Errc::rank_failed));
}

}  // namespace
}  // namespace strata
