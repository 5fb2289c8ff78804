// What a run resumes from, what it says about it, and whose checkpoints it leaves alone.

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <strata/storage/atomic_file.hpp>
#include <strata/train/environment.hpp>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using strata_test::Rows;
using strata_test::SmallNet;
namespace fs = std::filesystem;
using Net = SmallNet;
using Trained = Trainer<Net, ZeroStage<2>>;

struct TrainerResume : strata_test::TrainerRuns {
    /// Eight steps in one go, and the first six of them with checkpoints after 3 and 6.
    std::vector<double> whole_and_six() {
        run<ZeroStage<2>>("whole", options(8));
        six();
        return losses("whole");
    }
    void six() {
        Options six = options(6);
        six.checkpoint_every = 3;
        run<ZeroStage<2>>("run", six);
    }
    void expect_passed_over(const std::string& folder, const std::string& why) {
        expect_said("passed over " + (root / "run/checkpoints" / folder).string() + ": ");
        expect_said(why);
        expect_said("it is kept as damaged_" + folder);
        EXPECT_TRUE(fs::exists(root / "run/checkpoints" / ("damaged_" + folder)));
    }
};

TEST_F(TrainerResume, ASecondFitAfterFreshGoesOnFromWhatTheFirstSaved) {
    run<ZeroStage<2>>("run", options(2));
    in_session(
        "run",
        [&](Session& session) {
            Trained trainer{session, Net{}, options(4)};
            EXPECT_EQ(trainer.fit(FunctionSource{plain, 10, 8}).step, 4);
            EXPECT_EQ(trainer.fit(FunctionSource{plain, 10, 8}).step, 4);
        },
        true);
    expect_said("step 4 is already done");
    EXPECT_TRUE(fs::exists(checkpoint("run", 4) / "manifest.json"));
    EXPECT_EQ(losses("run").size(), 4U);
    EXPECT_FALSE(fs::exists(checkpoint("run", 2))) << "what was there before --fresh";
}

TEST_F(TrainerResume, FreshCountsWhoeverAsksForTheFolderFirst) {
    run<ZeroStage<2>>("run", options(2));
    in_session(
        "run",
        [&](Session& session) {
            Trained trainer{session, Net{}, options(1)};
            EXPECT_EQ(trainer.folder(), root / "run");
            trainer.fit(FunctionSource{plain, 10, 8});
        },
        true);
    EXPECT_FALSE(fs::exists(checkpoint("run", 2)));
    EXPECT_EQ(losses("run").size(), 1U);
}

TEST_F(TrainerResume, TwoTrainersOfOneSessionNeedFoldersOfTheirOwn) {
    in_session("run", [&](Session& session) {
        Trained first{session, Net{}, options(2)};
        first.fit(FunctionSource{plain, 10, 8});
        Trained second{session, Net{}, options(3)};
        const Error error = error_of([&] { second.fit(FunctionSource{plain, 10, 8}); });
        EXPECT_EQ(error.code(), Errc::output_in_use);
        EXPECT_NE(error.problem().find("two trainers of this session would work in " + (root / "run").string()),
                  std::string::npos)
            << error.what();
        EXPECT_NE(error.fix().find(".name = "), std::string::npos) << error.what();

        Options named = options(3);
        named.name = "second";
        Trained other{session, Net{}, named};
        EXPECT_EQ(other.fit(FunctionSource{plain, 10, 8}).step, 3);
        for (const char* name : {"checkpoints", "samples", "..", ".hidden", "a/b", "new\nline", "report.html"}) {
            named.name = name;
            const Error refused = error_of([&] { Trained{session, Net{}, named}; });
            EXPECT_EQ(refused.code(), Errc::bad_value) << name;
            const Error shown{Errc::bad_value, name, ""};
            EXPECT_EQ(refused.problem(), "name cannot be a trainer's folder: " + shown.problem())
                << "before anything is allocated";
        }
    });
    EXPECT_EQ(losses("run").size(), 2U);
    EXPECT_EQ(losses("run/second").size(), 3U);
    for (const char* file : {"metrics.jsonl", "report.html", "checkpoints/step_00000003/manifest.json"})
        EXPECT_TRUE(fs::exists(root / "run/second" / file)) << file;
    EXPECT_FALSE(fs::exists(checkpoint("run", 3)));
}

TEST_F(TrainerResume, TemporaryFilesOfKilledRunsAreSweptInTheFolderOfATrainerWithAName) {
    const fs::path left = root / "run/second/samples" / (".step_00000001.png." + storage::kernel_digits() + "-1.tmp");
    on_disk([&] {
        fs::create_directories(left.parent_path());
        std::ofstream{left} << "half a picture";
    });
    in_session("run", [&](Session& session) {
        Options named = options(1);
        named.name = "second";
        Trained{session, Net{}, named}.fit(FunctionSource{plain, 10, 8});
    });
    EXPECT_FALSE(fs::exists(left));
    expect_said("removed 1 temporary file that killed runs left in " + (root / "run/second").string());
}

TEST_F(TrainerResume, ZeroCheckpointsKeptAreRefusedAndDeleteNothing) {
    run<ZeroStage<2>>("run", options(2));
    Options none = options(4);
    none.checkpoints_kept = 0;
    EXPECT_EQ(error_of([&] { run<ZeroStage<2>>("run", none); }).code(), Errc::bad_value);
    EXPECT_TRUE(fs::exists(checkpoint("run", 2) / "manifest.json"));
}

// ---- what is another than in the checkpoint --------------------------------------------------------------------------

TEST_F(TrainerResume, NothingIsSaidWhereNothingChanged) {
    six();
    run<ZeroStage<3>>("run", options(7));
    EXPECT_EQ(said.find("changed"), std::string::npos) << said;
    EXPECT_EQ(said.find(" in the checkpoint, "), std::string::npos) << said;
}

TEST_F(TrainerResume, AChangedSeedIsSaid) {
    six();
    Options other = options(7);
    other.seed = 7;
    run<ZeroStage<2>>("run", other);
    expect_said(
        "the seed changed: 42 in the checkpoint, 7 now; order, noise and dropout are those of another run from here on");
}

TEST_F(TrainerResume, AChangedBatchIsSaidWithBothNumbers) {
    six();
    Options other = options(7);
    other.engine.gradient_accumulation_steps = 2;
    run<ZeroStage<2>>("run", other);
    const std::string ranks = std::to_string(8 * comm.world());
    expect_said("the effective batch changed, samples a step: " + ranks + " in the checkpoint, " +
                std::to_string(16 * comm.world()) + " now; the data goes on after " +
                std::to_string(48 * comm.world()) + " samples");
    expect_said("gradient_accumulation_steps: 1 in the checkpoint, 2 now");
}

/// A source with data sets, as far as a trainer sees.
struct NamedRows : FunctionSource<Rows (*)(std::int64_t)> {
    checkpoint::Facts facts;
    explicit NamedRows(checkpoint::Facts given)
        : FunctionSource{strata_test::TrainerRuns::plain, 10, 8}, facts{std::move(given)} {}
    [[nodiscard]] checkpoint::Facts identity() const { return facts; }
};

TEST_F(TrainerResume, ChangedDataIsSaidWithBothValues) {
    const auto train = [&](std::int64_t steps, const checkpoint::Facts& data) {
        in_session("run", [&](Session& session) {
            Trained trainer{session, Net{}, options(steps)};
            trainer.fit(NamedRows{data});
        });
    };
    train(2, {{"data set 'a'", "622 samples"}, {"data set 'b'", "5 samples"}});
    train(3, {{"data set 'a'", "623 samples"}, {"data set 'c'", "9 samples"}});
    expect_said(
        "the data changed, data set 'a': 622 samples in the checkpoint, 623 samples now; what is left of the epoch is dealt anew");
    expect_said("the data changed, data set 'c': none in the checkpoint, 9 samples now");
    expect_said("the data changed, data set 'b': 5 samples in the checkpoint, none now");
    train(4, {{"data set 'a'", "623 samples"}, {"data set 'c'", "9 samples"}});
    EXPECT_EQ(said.find("the data changed"), std::string::npos) << said;
}

TEST_F(TrainerResume, ACheckpointKeepsWhatBitsDependOn) {
    run<ZeroStage<2>>("run", options(1));
    const auto found = checkpoint::read_manifest(checkpoint("run", 1) / "manifest.json");
    EXPECT_EQ(found.environment, train::environment());
    ASSERT_FALSE(found.environment.empty());
    auto old = found;
    old.environment.front().second = "of another build";
    const auto lines = train::changes_since(old, found, {});
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0], found.environment.front().first + ": of another build in the checkpoint, " +
                            found.environment.front().second +
                            " now; bits will differ from those of a run that was not stopped");
}

TEST_F(TrainerResume, AManifestOfTheFormerFormatIsReadWithANote) {
    const auto whole = whole_and_six();
    on_disk([&] {
        const fs::path file = checkpoint("run", 6) / "manifest.json";
        replace(file, "strata checkpoint 2", "strata checkpoint 1");
        const std::string text = text_of(file);
        std::ofstream{file} << text.substr(0, text.find(",\n \"plan\"")) << "\n}";
    });
    run<ZeroStage<2>>("run", options(8));
    expect_said("the checkpoint is of format 1, without a seal");
    EXPECT_EQ(losses("run"), whole);
}

// ---- damage ------------------------------------------------------------------------------------------------------------

TEST_F(TrainerResume, AnEditedManifestIsDamage) {
    const auto whole = whole_and_six();
    on_disk([&] {
        const std::string samples = "\"samples\": " + std::to_string(48 * comm.world());
        replace(checkpoint("run", 6) / "manifest.json", samples, "\"samples\": 99");
    });
    run<ZeroStage<2>>("run", options(8));
    expect_passed_over("step_00000006", "it was changed after it was written, its seal does not match");
    expect_said("resuming from " + checkpoint("run", 3).string());
    EXPECT_EQ(losses("run"), whole);
}

TEST_F(TrainerResume, WhateverIsDamagedTheNewestWholeCheckpointIsTaken) {
    const auto whole = whole_and_six();
    const fs::path newest = checkpoint("run", 6);
    struct Damage {
        std::function<void()> make;
        std::string folder, why;
    };
    const std::vector<Damage> damages{
        {[&] {
             std::fstream file{newest / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary};
             file.seekp(-5, std::ios::end);
             file.put('\x55');
         },
         "step_00000006", "its check sum does not match the manifest"},
        {[&] { fs::resize_file(newest / "manifest.json", 100); }, "step_00000006", "manifest.json cannot be read"},
        {[&] {
             for (const auto& entry : fs::directory_iterator{newest})
                 if (entry.path().filename().string().starts_with("state_00000")) fs::remove(entry.path());
         },
         "step_00000006", "is missing"},
        {[&] { fs::rename(newest, checkpoint("run", 9)); }, "step_00000009", "which its folder's name denies"},
        {[&] {
             fs::remove_all(newest);
             fs::create_directory(root / "run/checkpoints/step_99999999");
         },
         "step_99999999", "manifest.json cannot be read"},
    };
    for (const Damage& damage : damages) {
        on_disk([&] { fs::remove_all(root / "run"); });
        six();
        on_disk(damage.make);
        run<ZeroStage<2>>("run", options(8));
        expect_passed_over(damage.folder, damage.why);
        expect_said("resuming from " + checkpoint("run", 3).string());
        EXPECT_EQ(losses("run"), whole) << damage.why;
        EXPECT_TRUE(fs::exists(checkpoint("run", 8) / "manifest.json"));
    }
}

TEST_F(TrainerResume, AFolderInTheWayOfASaveIsSetAsideAndNamed) {
    run<ZeroStage<2>>("run", options(7), plain, [&](const train::StepMetrics& m) {
        if (m.step == 6 && comm.rank() == 0) fs::create_directories(checkpoint("run", 7));
    });
    expect_said("manifest.json cannot be read");
    expect_said("; it is kept as damaged_step_00000007, and its step is saved anew");
    EXPECT_TRUE(fs::exists(checkpoint("run", 7) / "manifest.json"));
}

TEST_F(TrainerResume, AFailureInsideTheAverageDoesNotStayThere) {
    in_session("run", [&](Session& session) {
        Trainer<Net, ZeroStage<2>, Ema<>> trainer{session, Net{}, options(6)};
        bool fails = true;
        trainer.every(3, [&](const train::StepMetrics&) {
            trainer.with_average([&] {
                if (std::exchange(fails, false)) throw Error{Errc::no_space, "no room for a picture", "make some"};
            });
        });
        EXPECT_EQ(error_of([&] {
                      trainer.fit(FunctionSource{plain, 10, 8});
                  }).problem(),
                  "no room for a picture; step 3 is saved in " + checkpoint("run", 3).string());
        EXPECT_EQ(trainer.fit(FunctionSource{plain, 10, 8}).step, 6);
    });
    run<ZeroStage<2>, Ema<>>("whole", options(6));
    EXPECT_EQ(losses("run"), losses("whole"));
}

TEST_F(TrainerResume, WhereNoCheckpointIsWholeTheRunIsRefusedAndNothingTouched) {
    six();
    on_disk([&] {
        fs::resize_file(checkpoint("run", 6) / "manifest.json", 100);
        fs::remove(checkpoint("run", 3) / "model.safetensors");
    });
    const Error error = error_of([&] { run<ZeroStage<2>>("run", options(8)); });
    EXPECT_EQ(error.code(), Errc::corrupt_checkpoint);
    for (const char* words :
         {"none of the 2 checkpoints in ", "step_00000006", "step_00000003", "model.safetensors is missing"})
        EXPECT_NE(error.problem().find(words), std::string::npos) << words << " in " << error.what();
    EXPECT_NE(error.fix().find("--fresh"), std::string::npos) << error.what();
    EXPECT_TRUE(fs::exists(checkpoint("run", 6)));
    EXPECT_TRUE(fs::exists(checkpoint("run", 3)));
    EXPECT_EQ(losses("run").size(), 6U);
}

}  // namespace
