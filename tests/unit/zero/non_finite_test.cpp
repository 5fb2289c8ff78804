#include <strata/zero/non_finite.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>

namespace {

using namespace strata;
using zero::NonFiniteSteps;
using zero::OnNonFinite;

std::string problem_of(NonFiniteSteps& steps, std::int64_t step, std::string_view what) {
    try {
        steps.met(step, what);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::non_finite);
        return error.problem();
    }
    return "skipped";
}

TEST(NonFinite, StopsAtTheFirst) {
    NonFiniteSteps steps{OnNonFinite::stop, 10};
    EXPECT_EQ(problem_of(steps, 7, "loss"), "the loss of step 7 is not finite");
    EXPECT_EQ(problem_of(steps, 7, "gradient norm"), "the gradient norm of step 7 is not finite");
}

TEST(NonFinite, SkipsSoManyInARow) {
    NonFiniteSteps steps{OnNonFinite::skip, 2};
    EXPECT_EQ(problem_of(steps, 7, "loss"), "skipped");
    EXPECT_EQ(problem_of(steps, 7, "gradient norm"), "skipped");
    EXPECT_EQ(problem_of(steps, 7, "loss"),
              "the loss of step 7 is not finite, after 2 tries that were skipped for the same reason");
    EXPECT_EQ(problem_of(steps, 7, "loss"), "skipped") << "whoever goes on after that begins anew";
}

TEST(NonFinite, AStepThatPassesBeginsTheCountAnew) {
    NonFiniteSteps steps{OnNonFinite::skip, 1};
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(problem_of(steps, 7 + i, "loss"), "skipped");
        steps.passed();
    }
}

}  // namespace
