#include <strata/train/rescue.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <strata/core/thrown_type.hpp>
#include <strata/train/step_failure.hpp>

namespace {

using namespace strata;

/// A run as far as rescued() sees it.
struct FailedRun final : train::Rescuable {
    std::int64_t steps = 4;
    int ranks = 2;
    bool saved = false, failed = false, whole = true, has_room = true;
    int undone = 0, written = 0, completed = 0;

    [[nodiscard]] std::int64_t step() const override { return steps; }
    [[nodiscard]] int world() const override { return ranks; }
    [[nodiscard]] bool is_saved() const override { return saved; }
    [[nodiscard]] bool has_failed() const override { return failed; }
    [[nodiscard]] std::filesystem::path newest() const override { return "out/step_00000004"; }
    [[nodiscard]] std::string newest_text() const override { return "there is no checkpoint"; }
    [[nodiscard]] bool state_is_whole() const override { return whole; }
    void undo_step() override { ++undone; }
    void write() override {
        if (!has_room) throw Error{Errc::no_space, "the disk is full", "make room"};
        ++written;
    }
    void complete_log() override { ++completed; }
};

TEST(Rescue, TheStateIsPutBackSavedAndTheLogCompleted) {
    FailedRun run;
    EXPECT_EQ(train::rescued(run, Errc::non_finite, true), "step 4 is saved in out/step_00000004");
    EXPECT_EQ(run.undone + run.written + run.completed, 3);
}

TEST(Rescue, WhatIsSavedIsNotSavedAgain) {
    FailedRun run;
    run.saved = true;
    EXPECT_EQ(train::rescued(run, Errc::non_finite, true), "step 4 is saved in out/step_00000004");
    EXPECT_EQ(run.written, 0);
}

TEST(Rescue, ASaveThatFailedIsNotTriedAgain) {
    FailedRun run;
    run.failed = true;
    EXPECT_EQ(train::rescued(run, Errc::no_space, true), "step 4 is not saved, and there is no checkpoint");
    EXPECT_EQ(run.written, 0);
}

TEST(Rescue, RanksThatArePartedSaveNothing) {
    for (const Errc code : {Errc::step_failed, Errc::rank_failed}) {
        FailedRun run;
        EXPECT_EQ(
            train::rescued(run, code, code == Errc::rank_failed),
            "step 4 could not be saved (the ranks are not at the same place any more), and there is no checkpoint");
        EXPECT_EQ(run.undone + run.written, 0);
        run.ranks = 1;
        EXPECT_EQ(train::rescued(run, code, false), "step 4 is saved in out/step_00000004")
            << "alone there is nobody to lose";
    }
}

TEST(Rescue, HalfAnUpdateIsNotSaved) {
    FailedRun run;
    run.whole = false;
    EXPECT_EQ(train::rescued(run, Errc::io_failed, true),
              "step 4 could not be saved (the update of its weights broke off half way), and there is no checkpoint");
    EXPECT_EQ(run.written, 0);
}

TEST(Rescue, BeforeTheFirstStepThereIsNothingToLose) {
    FailedRun run;
    run.steps = 0;
    EXPECT_EQ(train::rescued(run, Errc::non_finite, true), "no step was done before, so nothing is lost");
    EXPECT_EQ(run.undone, 1);
    EXPECT_EQ(run.written, 0);
}

TEST(Rescue, WhySavingFailedIsSaid) {
    FailedRun run;
    run.has_room = false;
    EXPECT_EQ(train::rescued(run, Errc::non_finite, true),
              "step 4 could not be saved (the disk is full), and there is no checkpoint");
}

TEST(Rescue, AnErrorGoesOnWithWhatBecameOfTheRun) {
    try {
        train::throw_rescued(
            std::make_exception_ptr(Error{Errc::store_unreachable, "the bucket went away", "look for it"}), "step 5",
            "all is well");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::store_unreachable);
        EXPECT_EQ(error.problem(), "the bucket went away; all is well");
        EXPECT_EQ(error.fix(), "look for it");
    }
}

TEST(Rescue, AnExceptionOfTheProgramsOwnIsNested) {
    try {
        train::throw_rescued(std::make_exception_ptr(std::runtime_error{"no answer\nand a trace"}), "step 5",
                             "all is well");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::step_failed);
        EXPECT_EQ(error.problem(), "step 5 failed: no answer; all is well");
        EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
    }
}

TEST(Rescue, WhatIsNestedInAnErrorStaysThere) {
    std::exception_ptr failure;
    try {
        try {
            throw std::out_of_range{"row 7"};
        } catch (...) {
            std::throw_with_nested(Error{Errc::step_failed, "step 5 on rank 1 failed: row 7", "mend that"});
        }
    } catch (...) {
        failure = std::current_exception();
    }
    try {
        train::throw_rescued(failure, "step 5", "all is well");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.problem(), "step 5 on rank 1 failed: row 7; all is well");
        EXPECT_EQ(core::thrown_type(error), "std::out_of_range");
    }
}

TEST(Rescue, AFailureOfAGpuNamesTheRankWhoseItIs) {
    const auto told = [](Errc code, const std::string& problem, const std::string& who) {
        return train::as_error(std::make_exception_ptr(Error{code, problem, "look at it"}), who).problem();
    };
    const std::string call = "cudaMemcpyAsync failed: unknown error";
    const std::string named = "step 7 on rank 1 failed: " + call;
    EXPECT_EQ(told(Errc::device_failed, call, "step 7 on rank 1"), named);
    EXPECT_EQ(told(Errc::device_failed, named, "step 7 on rank 0"), named) << "where all throw what one has met";
    EXPECT_EQ(told(Errc::device_failed, call, "step 7"), call) << "alone it is nobody else's";
    EXPECT_EQ(told(Errc::no_space, "the disk is full", "step 7 on rank 1"), "the disk is full");
}

}  // namespace
