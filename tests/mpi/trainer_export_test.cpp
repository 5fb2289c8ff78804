// The weights that a run leaves for other programs when it is complete: at every stage, once, of its average too.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/policy/ema.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/weight_files.hpp>

#include "trainer_runs.hpp"

namespace {

using namespace strata;

struct TrainerExport : strata_test::TrainerRuns {
    static Options exporting(std::int64_t steps) {
        Options given = options(steps);
        given.exported.weights = true;
        given.schedule.total_steps = 6;
        return given;
    }
    /// All tensors of some weights, one behind the other.
    static std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
        const weights::WeightFiles files{path};
        std::vector<std::byte> all;
        for (const auto& [name, place] : files.tensors()) {
            std::vector<std::byte> one(place.bytes());
            weights::WeightFiles::read(place, one);
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    }
    [[nodiscard]] std::filesystem::path file(const char* name) const { return root / "run" / name; }

    /// The files of a run in bf16 are those of its checkpoint, whose weights are the model's.
    template <int stage>
    void expect_those_of_the_checkpoint() {
        run<ZeroStage<stage>, Precision<Bf16>, Ema<>>("run", exporting(2));
        comm.barrier();
        for (const char* const name : {"model.safetensors", "model_ema.safetensors"})
            EXPECT_EQ(bytes_of(file(name)), bytes_of(checkpoint("run", 2) / name)) << name << " at stage " << stage;
        EXPECT_EQ(weights::WeightFiles{file("model.safetensors")}.find("block.linear.weight")->entry->dtype,
                  storage::Dtype::bf16);
        expect_said("weights of step 2: " + file("model.safetensors").string() + ", " +
                    file("model_ema.safetensors").string());
        EXPECT_NE(text_of(file("report.html")).find(file("model_ema.safetensors").string()), std::string::npos);
        on_disk([&] { std::filesystem::remove_all(root / "run"); });
    }
};

TEST_F(TrainerExport, ACompleteRunLeavesItsWeightsAtEveryStage) {
    expect_those_of_the_checkpoint<0>();
    expect_those_of_the_checkpoint<1>();
    expect_those_of_the_checkpoint<2>();
    expect_those_of_the_checkpoint<3>();
}

TEST_F(TrainerExport, ARunThatIsNotCompleteLeavesNone) {
    in_session("run", [&](Session& session) {
        Trainer<strata_test::SmallNet, ZeroStage<3>> trainer{session, strata_test::SmallNet{}, exporting(2)};
        trainer.fit(FunctionSource{plain, 10, 8}, 1);
        comm.barrier();
        EXPECT_FALSE(std::filesystem::exists(file("model.safetensors")));
        comm.barrier();
        trainer.fit(FunctionSource{plain, 10, 8}, 1);
    });
    comm.barrier();
    EXPECT_TRUE(std::filesystem::exists(file("model.safetensors")));
    EXPECT_FALSE(std::filesystem::exists(file("model_ema.safetensors"))) << "there is no average";
}

TEST_F(TrainerExport, WithoutTheOptionThereAreNone) {
    run<ZeroStage<2>, Ema<>>("run", options(1));
    comm.barrier();
    EXPECT_FALSE(std::filesystem::exists(file("model.safetensors")));
}

TEST_F(TrainerExport, ACompleteRunThatIsStartedAgainWritesWhatIsMissing) {
    const auto written = [&] { return std::filesystem::last_write_time(file("model.safetensors")); };
    run<ZeroStage<1>, Ema<>>("run", exporting(2));
    comm.barrier();
    const auto first = written();
    const auto bytes = bytes_of(file("model_ema.safetensors"));
    on_disk([&] { std::filesystem::remove(file("model_ema.safetensors")); });
    run<ZeroStage<3>, Ema<>>("run", exporting(2));
    comm.barrier();
    EXPECT_EQ(written(), first) << "it was there";
    EXPECT_EQ(bytes_of(file("model_ema.safetensors")), bytes);
    expect_said("weights of step 2");
    run<ZeroStage<1>, Ema<>>("run", exporting(2));
    EXPECT_EQ(said.find("weights of step"), std::string::npos) << said;

    run<ZeroStage<1>, Ema<>>("run", exporting(3));  // more steps: other weights
    comm.barrier();
    EXPECT_EQ(bytes_of(file("model.safetensors")), bytes_of(checkpoint("run", 3) / "model.safetensors"));
}

TEST_F(TrainerExport, TypeSizeAndPlaceOfTheFilesAreOptions) {
    Options given = exporting(1);
    given.exported.path = root / "out" / "net.safetensors";
    given.exported.dtype = train::ExportType::bf16;
    given.exported.max_shard_size = "500";
    run<ZeroStage<3>>("run", given);
    comm.barrier();
    const auto index = root / "out" / "net.safetensors.index.json";
    ASSERT_TRUE(std::filesystem::exists(index));
    EXPECT_FALSE(std::filesystem::exists(file("model.safetensors")));
    {
        const weights::WeightFiles files{index};
        EXPECT_GT(files.files().size(), 1U);
        EXPECT_EQ(files.find("block.linear.weight")->entry->dtype, storage::Dtype::bf16);
        EXPECT_EQ(files.find("calls")->entry->dtype, storage::Dtype::i64);
    }
    const auto first = std::filesystem::last_write_time(index);
    run<ZeroStage<3>>("run", given);
    comm.barrier();
    EXPECT_EQ(std::filesystem::last_write_time(index), first);
    given.exported.dtype = train::ExportType::fp32;
    run<ZeroStage<3>>("run", given);
    comm.barrier();
    EXPECT_EQ(weights::WeightFiles{index}.find("in.weight")->entry->dtype, storage::Dtype::f32);
}

TEST_F(TrainerExport, WhatAnEarlierRunLeftIsGoneWhenARunStartsOver) {
    run<ZeroStage<1>, Ema<>>("run", exporting(2));
    Options given = exporting(2);
    given.exported.path = root / "run" / "shards" / "net.safetensors";
    given.exported.max_shard_size = "500";
    run<ZeroStage<1>, Ema<>>("run", given);  // as another file of the same folder
    on_disk([&] {
        ASSERT_TRUE(std::filesystem::exists(root / "run" / "shards" / "net_ema.safetensors.index.json"));
        std::filesystem::copy_file(file("model.safetensors"), file("kept.safetensors"));
    });
    std::string left;
    in_session(
        "run",
        [&](Session& session) {
            Trainer<strata_test::SmallNet, ZeroStage<3>> trainer{session, strata_test::SmallNet{}, given};
            trainer.fit(FunctionSource{plain, 10, 8}, 1);  // and no further
            comm.barrier();
            for (const auto& entry : std::filesystem::recursive_directory_iterator{root / "run"})
                if (entry.path().string().find("checkpoints") == std::string::npos &&
                    entry.path().string().find(".safetensors") != std::string::npos)
                    left += entry.path().filename().string() + " ";
            comm.barrier();
        },
        true);
    EXPECT_EQ(left, "kept.safetensors ") << "a name that no run gives is somebody's own";
}

TEST_F(TrainerExport, WeightsOutsideOfTheFolderStayUntilARunThatStartsOverIsComplete) {
    Options given = exporting(2);
    given.exported.path = root / "served" / "net.safetensors";
    run<ZeroStage<1>>("run", given);
    comm.barrier();
    const auto before = bytes_of(given.exported.path);
    std::vector<std::byte> meanwhile, after;
    given.schedule.lr = 2e-2;  // other weights
    in_session(
        "run",
        [&](Session& session) {
            Trainer<strata_test::SmallNet, ZeroStage<1>> trainer{session, strata_test::SmallNet{}, given};
            trainer.fit(FunctionSource{plain, 10, 8}, 1);
            comm.barrier();
            meanwhile = bytes_of(given.exported.path);
            comm.barrier();
            trainer.fit(FunctionSource{plain, 10, 8}, 1);
            comm.barrier();
            after = bytes_of(given.exported.path);
        },
        true);
    EXPECT_EQ(meanwhile, before);
    EXPECT_NE(after, before);
    expect_said(given.exported.path.string() + " stays as it is until this run is complete");
}

TEST_F(TrainerExport, OptionsThatCannotBeAreRefusedBeforeTheRun) {
    Options given = exporting(1);
    given.exported.path = "weights.bin";
    given.exported.max_shard_size = "5 apples";
    const Error error = error_of([&] { run<ZeroStage<1>>("run", given); });
    EXPECT_EQ(error.code(), Errc::bad_value);
    EXPECT_NE(error.problem().find("exported.path is 'weights.bin', which does not end in .safetensors"),
              std::string::npos)
        << error.what();
    EXPECT_NE(error.problem().find("exported.max_shard_size is '5 apples', which is no number of bytes"),
              std::string::npos)
        << error.what();
}

}  // namespace
