// What is written at a step, and which step a name is of.

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <strata/core/step_name.hpp>

namespace {

using strata::core::step_name;
using strata::core::step_of;

TEST(StepName, HasEightDigitsSoThatNamesSortAsStepsDo) {
    EXPECT_EQ(step_name(0), "step_00000000");
    EXPECT_EQ(step_name(250), "step_00000250");
    EXPECT_LT(step_name(9), step_name(10));
    EXPECT_EQ(step_name(1'234'567'890), "step_1234567890");
}

TEST(StepName, LeadsBackToItsStep) {
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{7}, std::int64_t{99'999'999}, std::int64_t{1} << 40})
        EXPECT_EQ(step_of(step_name(step)), step);
    EXPECT_EQ(step_of("step_7"), 7) << "digits that a person left out";
}

TEST(StepName, OtherNamesAreOfNoStep) {
    for (const char* name : {"", "step_", "step", "step_x", "step_12.png", "step_-3", "step_+3", "step_ 3",
                             ".step_00000003.partial", "damaged_step_00000003", "step_99999999999999999999"})
        EXPECT_EQ(step_of(name), std::nullopt) << name;
}

}  // namespace
