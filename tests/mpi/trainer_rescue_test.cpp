// A step that fails costs nothing that was done before it: what is saved, what is said, and that nobody waits for ever.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::Rows;
using strata_test::SmallNet;
using strata_test::some_rows;
namespace fs = std::filesystem;

struct TrainerRescue : strata_test::TrainerRuns {
    enum class Fault { none, nan, gradient, store, forward };

    /// Rows of which one micro-batch fails on the last rank.
    [[nodiscard]] Make faulty(Fault fault, std::int64_t at) const {
        return [=, last = is_last()](std::int64_t i) {
            Rows rows = some_rows();
            if (i != at || !last) return rows;
            if (fault == Fault::nan) rows.y.fill_(std::numeric_limits<float>::quiet_NaN());
            if (fault == Fault::store) throw Error{Errc::store_unreachable, "the bucket went away", "look for it"};
            rows.breaks_gradient = fault == Fault::gradient;
            rows.breaks_forward = fault == Fault::forward;
            return rows;
        };
    }

    /// Eight steps of which the fifth fails, and the same without a fault: nothing tells them apart in the end.
    template <class... Policies>
    void expect_nothing_lost(const std::string& tag, Fault fault, Errc code, const std::string& problem,
                             int accumulation = 1) {
        SCOPED_TRACE(tag);
        Options eight = options(8);
        eight.engine.gradient_accumulation_steps = accumulation;
        eight.engine.tiers.nvme_path = root;
        on_disk([&] { fs::create_directories(root); });
        run<Policies...>("whole_" + tag, eight);
        const std::int64_t calls_in_all = calls;
        const Error error =
            error_of([&] { run<Policies...>(tag, eight, faulty(fault, 4 * accumulation + accumulation - 1)); });
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_EQ(error.problem(), problem + "; step 4 is saved in " + checkpoint(tag, 4).string());
        EXPECT_TRUE(fs::exists(checkpoint(tag, 4) / "manifest.json"));
        EXPECT_EQ(losses(tag).size(), 4U);
        EXPECT_TRUE(fs::exists(root / tag / "report.html"));
        EXPECT_FALSE(fs::exists(root / tag / "checkpoints/.reserve"));
        run<Policies...>(tag, eight);
        expect_said("resuming from " + checkpoint(tag, 4).string());
        EXPECT_EQ(losses(tag), losses("whole_" + tag));
        EXPECT_EQ(calls, calls_in_all) << "buffers are those of the last step that was done";
        EXPECT_EQ(text_of(checkpoint(tag, 8) / "model.safetensors"),
                  text_of(checkpoint("whole_" + tag, 8) / "model.safetensors"));
    }
    [[nodiscard]] std::string step_five() const {
        return comm.world() > 1 ? "step 5 on rank " + std::to_string(comm.world() - 1) : "step 5";
    }
};

TEST_F(TrainerRescue, ALossThatIsNotANumberCostsNothing) {
    expect_nothing_lost<ZeroStage<2>>("s2", Fault::nan, Errc::non_finite, "the loss of step 5 is not finite");
    expect_nothing_lost<ZeroStage<3>>("s3", Fault::nan, Errc::non_finite, "the loss of step 5 is not finite", 2);
}

TEST_F(TrainerRescue, AGradientThatIsNotANumberCostsNothing) {
    expect_nothing_lost<ZeroStage<2>>("s2", Fault::gradient, Errc::non_finite,
                                      "the gradient norm of step 5 is not finite");
    expect_nothing_lost<ZeroStage<3>>("s3", Fault::gradient, Errc::non_finite,
                                      "the gradient norm of step 5 is not finite");
}

TEST_F(TrainerRescue, AStoreThatIsGoneOnOneRankCostsNothing) {
    for (const int accumulation : {1, 2}) {
        const std::string tag = std::to_string(accumulation);
        expect_nothing_lost<ZeroStage<2>>("s2_" + tag, Fault::store, Errc::store_unreachable, "the bucket went away",
                                          accumulation);
        expect_nothing_lost<ZeroStage<3>>("s3_" + tag, Fault::store, Errc::store_unreachable, "the bucket went away",
                                          accumulation);
    }
}

TEST_F(TrainerRescue, StateOnDiskAndAnAverageAreSavedToo) {
    expect_nothing_lost<ZeroStage<2>, OffloadTarget<Nvme>, Precision<Bf16>, Ema<>>(
        "disk", Fault::store, Errc::store_unreachable, "the bucket went away", 2);
}

TEST_F(TrainerRescue, AModelThatThrowsOnOneRankCostsNothing) {
    expect_nothing_lost<ZeroStage<2>>("s2", Fault::forward, Errc::step_failed,
                                      step_five() + " failed: the model has no answer");
}

TEST_F(TrainerRescue, AModelOfUnitsThatThrowsCostsNothingWhereOneRankIsAlone) {
    if (comm.world() > 1) return;  // that ends the job: trainer_failures
    expect_nothing_lost<ZeroStage<3>>("s3", Fault::forward, Errc::step_failed,
                                      "step 5 failed: the model has no answer");
}

TEST_F(TrainerRescue, AnExceptionOfTheProgramsOwnIsNestedInTheError) {
    try {
        run<ZeroStage<2>>("run", options(8), faulty(Fault::forward, 4));
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::step_failed);
        if (comm.world() > 1) return;  // it came from another rank
        EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
    }
}

TEST_F(TrainerRescue, AnActionThatThrowsOnOneRankCostsNothing) {
    run<ZeroStage<2>>("whole", options(8));
    const Error error = error_of([&] {
        run<ZeroStage<2>>("run", options(8), plain, [&](const train::StepMetrics& m) {
            if (m.step == 5 && comm.rank() == 0) throw Error{Errc::no_space, "no room for a picture", "make some"};
        });
    });
    EXPECT_EQ(error.code(), Errc::no_space);
    EXPECT_EQ(error.problem(), "no room for a picture; step 5 is saved in " + checkpoint("run", 5).string());
    run<ZeroStage<2>>("run", options(8));
    EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(TrainerRescue, AFailureRightAfterACheckpointNamesIt) {
    Options eight = options(8);
    eight.checkpoint_every = 4;
    const Error error = error_of([&] { run<ZeroStage<2>>("run", eight, faulty(Fault::store, 4)); });
    EXPECT_EQ(error.problem(), "the bucket went away; step 4 is saved in " + checkpoint("run", 4).string());
}

TEST_F(TrainerRescue, AFailureInTheFirstStepSavesNothingAndTheTrainerCanGoOn) {
    run<ZeroStage<2>>("whole", options(3));
    in_session("run", [&](Session& session) {
        Trainer<SmallNet, ZeroStage<2>> trainer{session, SmallNet{}, options(3)};
        const Error error = error_of([&] { trainer.fit(FunctionSource{faulty(Fault::nan, 0), 10, 8}); });
        EXPECT_EQ(error.problem(), "the loss of step 1 is not finite; no step was done before, so nothing is lost");
        EXPECT_FALSE(fs::exists(checkpoint("run", 0)));
        EXPECT_EQ(trainer.fit(FunctionSource{plain, 10, 8}).step, 3);
        EXPECT_EQ(trainer.model().calls.item<std::int64_t>(), 3);
    });
    EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(TrainerRescue, WhereNothingCanBeSavedTheErrorSaysWhy) {
    Options eight = options(8);
    eight.checkpoint_every = 2;
    eight.reserve_checkpoint_room = false;
    const Error error = error_of([&] {
        run<ZeroStage<2>>("run", eight, faulty(Fault::store, 3), [&](const train::StepMetrics& m) {
            if (m.step != 3 || comm.rank() != 0) return;
            fs::rename(root / "run/checkpoints", root / "run/moved");
            std::ofstream{root / "run/checkpoints"} << "in the way";
        });
    });
    EXPECT_EQ(error.code(), Errc::store_unreachable);
    EXPECT_NE(error.problem().find("the bucket went away; step 3 could not be saved ("), std::string::npos)
        << error.what();
    EXPECT_NE(error.problem().find("and the newest checkpoint is " + checkpoint("run", 2).string()), std::string::npos)
        << error.what();
}

TEST_F(TrainerRescue, WeightsThatAreNotFiniteAreNeverPublished) {
    for (const std::int64_t every : {0, 3}) {
        const std::string name = "run" + std::to_string(every);
        Options eight = options(8);
        eight.checkpoint_every = every;
        Error error = error_of([&] {
            in_session(name, [&](Session& session) {
                Trainer<SmallNet, ZeroStage<2>> trainer{session, SmallNet{}, eight};
                trainer.every(1, [&](const train::StepMetrics& m) {
                    const torch::NoGradGuard no_grad;
                    if (m.step == 3) trainer.model().out->weight.fill_(std::numeric_limits<float>::infinity());
                });
                trainer.fit(FunctionSource{plain, 10, 8});
            });
        });
        EXPECT_EQ(error.code(), Errc::non_finite);
        EXPECT_NE(error.problem().find("the weights are not finite, and such a checkpoint is never published"),
                  std::string::npos)
            << error.what();
        EXPECT_NE(error.problem().find("there is no checkpoint"), std::string::npos) << error.what();
        EXPECT_FALSE(fs::exists(checkpoint(name, 3)));
    }
}

// ---- room --------------------------------------------------------------------------------------------------------------

std::uint64_t bytes_below(const fs::path& folder) {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator{folder}) bytes += entry.file_size();
    return bytes;
}

TEST_F(TrainerRescue, RoomForACheckpointIsReservedWhileARunGoes) {
    std::uint64_t reserved = 0, of_none = 1;
    Options two = options(2);
    two.checkpoint_every = 1;
    const auto look = [&](const std::string& name, std::uint64_t& bytes) {
        return [&, name](const train::StepMetrics& m) {
            const fs::path file = root / name / "checkpoints/.reserve";
            if (m.step == 2) bytes = fs::exists(file) ? fs::file_size(file) : 0;
        };
    };
    run<ZeroStage<2>, Ema<>>("run", two, plain, look("run", reserved));
    two.reserve_checkpoint_room = false;
    run<ZeroStage<2>, Ema<>>("none", two, plain, look("none", of_none));
    const std::uint64_t taken = bytes_below(checkpoint("run", 2));
    EXPECT_GE(reserved, taken);
    EXPECT_LE(reserved, taken + (2U << 20U));
    EXPECT_EQ(of_none, 0U);
    EXPECT_FALSE(fs::exists(root / "run/checkpoints/.reserve"));
}

TEST_F(TrainerRescue, WhatAKilledRunLeftTakesNoRoom) {
    const fs::path folder = root / "run/checkpoints";
    Options one = options(1);
    run<ZeroStage<2>>("run", one);
    const auto leave = [&](const std::string& partial) {
        on_disk([&] {
            fs::create_directories(folder / partial);
            std::ofstream{folder / partial / "state"} << "half";
            std::ofstream{folder / ".reserve"} << "room";
        });
    };
    leave(".step_00000001.partial");
    run<ZeroStage<2>>("run", one);  // has nothing to do, and needs no room
    EXPECT_FALSE(fs::exists(folder / ".reserve"));
    leave(".step_00000007.partial");
    bool there = true;
    run<ZeroStage<2>>("run", options(2), plain,
                      [&](const train::StepMetrics&) { there = fs::exists(folder / ".step_00000007.partial"); });
    EXPECT_FALSE(there) << "it is gone before room is reserved";
}

/// The log's descriptor becomes one of a disk that is always full.
void fill_disk_under(const fs::path& file) {
    for (const auto& entry : fs::directory_iterator{"/proc/self/fd"}) {
        std::error_code gone;
        if (fs::read_symlink(entry.path(), gone) != file) continue;
        const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
        ASSERT_GE(::dup2(full, std::stoi(entry.path().filename().string())), 0);
        ::close(full);
        return;
    }
    FAIL() << file << " is not open";
}

TEST_F(TrainerRescue, ALogThatFindsNoRoomCostsNothing) {
    run<ZeroStage<2>>("whole", options(8));
    const Error error = error_of([&] {
        run<ZeroStage<2>>("run", options(8), plain, [&](const train::StepMetrics& m) {
            if (m.step == 4 && comm.rank() == 0) fill_disk_under(fs::canonical(root / "run/metrics.jsonl"));
        });
    });
    EXPECT_EQ(error.code(), Errc::no_space) << error.what();
    EXPECT_NE(error.problem().find("metrics.jsonl"), std::string::npos) << error.what();
    EXPECT_NE(error.problem().find("; step 5 is saved in " + checkpoint("run", 5).string()), std::string::npos)
        << error.what();
    EXPECT_EQ(losses("run").size(), 5U) << "the line is written when there is room";
    EXPECT_FALSE(fs::exists(root / "run/metrics.jsonl.kept-1")) << "half a line of our own is nothing to keep";
    run<ZeroStage<2>>("run", options(8));
    EXPECT_EQ(losses("run"), losses("whole"));
}

/// A disk of its own, which only root can make.
class SmallDisk {
public:
    SmallDisk(const fs::path& folder, const char* size) : folder_{folder} {
        fs::create_directories(folder_);
        made_ = ::mount("none", folder_.c_str(), "tmpfs", 0, (std::string{"size="} + size).c_str()) == 0;
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    ~SmallDisk() {
        if (made_) ::umount2(folder_.c_str(), MNT_DETACH);
    }
    [[nodiscard]] bool made() const noexcept { return made_; }

private:
    fs::path folder_;
    bool made_ = false;
};

/// On rank 0, which has it unmounted after the others are done with it.
struct OnSmallDisk {
    OnSmallDisk(comm::DefaultComm& comm, const fs::path& folder, const char* size) : comm_{comm} {
        if (comm.rank() == 0) disk_ = std::make_unique<SmallDisk>(folder, size);
        made = disk_ && disk_->made();
        comm.broadcast(std::as_writable_bytes(std::span{&made, 1}), 0);
    }
    ~OnSmallDisk() { comm_.barrier(); }
    OnSmallDisk(const OnSmallDisk&) = delete;
    OnSmallDisk& operator=(const OnSmallDisk&) = delete;
    bool made = false;

private:
    comm::DefaultComm& comm_;
    std::unique_ptr<SmallDisk> disk_;
};

TEST_F(TrainerRescue, ADiskThatIsFullAtTheStartIsRefusedWithNumbers) {
    const OnSmallDisk disk{comm, root / "small", "512k"};
    if (!disk.made) GTEST_SKIP() << "only root can mount a small disk";
    const Error error = error_of([&] { run<ZeroStage<2>>("small", options(8)); });
    EXPECT_EQ(error.code(), Errc::no_space) << error.what();
    EXPECT_NE(error.problem().find("lacks room for one checkpoint, which takes 1."), std::string::npos) << error.what();
    EXPECT_NE(error.problem().find(" are free"), std::string::npos) << error.what();
    EXPECT_TRUE(losses("small").empty());
    Options bold = options(8);
    bold.reserve_checkpoint_room = false;
    EXPECT_EQ(run<ZeroStage<2>>("small", bold).step, 8);
}

TEST_F(TrainerRescue, ADiskThatFillsUpWhileTrainingCostsNothing) {
    const OnSmallDisk disk{comm, root / "small", "4m"};
    if (!disk.made) GTEST_SKIP() << "only root can mount a small disk";
    run<ZeroStage<2>>("whole", options(120));
    const fs::path filler = root / "small/filler";
    const Error error = error_of([&] {
        run<ZeroStage<2>>("small", options(120), plain, [&](const train::StepMetrics& m) {
            if (m.step != 3 || comm.rank() != 0) return;
            std::ofstream out{filler, std::ios::binary};
            while (out << std::string(1024, 'x') << std::flush) {
            }
        });
    });
    EXPECT_EQ(error.code(), Errc::no_space) << error.what();
    EXPECT_NE(error.problem().find(" is saved in " + (root / "small/checkpoints/step_").string()), std::string::npos)
        << error.what();
    EXPECT_GE(losses("small").size(), 3U);
    EXPECT_FALSE(fs::exists(root / "small/metrics.jsonl.kept-1")) << "half a line of our own is nothing to keep";
    on_disk([&] { fs::remove(filler); });
    run<ZeroStage<2>>("small", options(120));
    EXPECT_EQ(losses("small"), losses("whole"));
}

}  // namespace
