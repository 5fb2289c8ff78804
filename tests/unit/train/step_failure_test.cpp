#include <exception>
#include <stdexcept>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/train/step_failure.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::train::StepFailure;

const Error shared{Errc::step_failed, "step 7 on rank 1 failed: no more rows", "mend that"};

TEST(StepFailure, TheRankThatHasItThrowsWhatAllThrowWithItsOwnNested) {
    StepFailure failure{"step 7 on rank 1"};
    failure.guard([] { throw std::out_of_range{"no more rows"}; });
    try {
        failure.throw_as(shared);
    } catch (const Error& error) {
        EXPECT_EQ(error.problem(), shared.problem());
        EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
    }
}

TEST(StepFailure, TheOtherRanksThrowItAlone) {
    const StepFailure failure{"step 7 on rank 0"};
    try {
        failure.throw_as(shared);
    } catch (const Error& error) {
        EXPECT_EQ(error.problem(), shared.problem());
        EXPECT_NO_THROW(std::rethrow_if_nested(error));
    }
}

}  // namespace
