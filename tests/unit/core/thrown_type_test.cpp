#include <exception>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/core/thrown_type.hpp>

namespace {

using strata::Errc;
using strata::Error;

struct OwnFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// `failure` with an Error around it, as often as asked for.
std::exception_ptr wrapped(std::exception_ptr failure, int times) {
    for (int i = 0; i < times; ++i) {
        try {
            std::rethrow_exception(failure);
        } catch (...) {
            try {
                std::throw_with_nested(Error{Errc::step_failed, "step 7 failed", "mend that"});
            } catch (...) {
                failure = std::current_exception();
            }
        }
    }
    return failure;
}
std::string type_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& error) {
        return strata::core::thrown_type(error);
    }
}

TEST(ThrownType, IsThatOfTheExceptionThatIsNestedDeepest) {
    for (const int times : {0, 1, 2}) {
        EXPECT_EQ(type_of(wrapped(std::make_exception_ptr(std::out_of_range{"row 7"}), times)), "std::out_of_range");
        EXPECT_TRUE(type_of(wrapped(std::make_exception_ptr(OwnFailure{"no"}), times)).ends_with("OwnFailure"));
    }
}

TEST(ThrownType, OfAnErrorOrOfWhatIsNoExceptionThereIsNothingToSay) {
    for (const int times : {0, 1, 2})
        EXPECT_EQ(type_of(wrapped(std::make_exception_ptr(Error{Errc::no_space, "full", "make room"}), times)), "");
    EXPECT_EQ(type_of(wrapped(std::make_exception_ptr(7), 1)), "");
}

}  // namespace
