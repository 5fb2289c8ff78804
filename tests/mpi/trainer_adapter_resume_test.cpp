// Adapters that go on: at another stage, over other weights, of another rank; and what checkpoints hold of them.

#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/adapters/lokr.hpp>
#include <strata/checkpoint/manifest.hpp>
#include <strata/storage/safetensors.hpp>

#include "adapter_runs.hpp"

namespace {

using namespace strata;

struct TrainerAdapterResume : strata_test::AdapterRuns {
    template <int stage>
    using Trained = Trainer<Flux, Adapter<Lora>, ZeroStage<stage>, Ema<>>;

    template <int stage>
    void steps(const std::string& name, std::int64_t count, std::uint64_t base = 1, std::int64_t rank = 4) {
        auto given = adapter_options<Trained<stage>>(count);
        given.adapter.kind.rank = rank;
        train<Trained<stage>>(name, given, {}, strata_test::some_latents, base);
    }
};

TEST_F(TrainerAdapterResume, AtAnotherStageTheBitsAreThoseOfOneRun) {
    steps<2>("whole", 6);
    steps<3>("run", 3);
    steps<2>("run", 6);
    EXPECT_EQ(losses("run"), losses("whole"));
    EXPECT_EQ(said.find("ST2128"), std::string::npos) << said;
}

/// What all ranks began goes on at another stage on one of them, which takes their micro-batches one after the other.
TEST_F(TrainerAdapterResume, OnOneRankTheAverageGoesOnAsWell) {
    struct Learnt {
        std::vector<float> weights, average;
    };
    const auto learnt_by = [](auto& trainer) {
        Learnt learnt;
        learnt.weights = weights_of(trainer);
        trainer.with_average([&] { learnt.average = weights_of(trainer); });
        return learnt;
    };
    // Noise and dropout follow from the place in the whole batch, and not from the rank that computes there.
    const auto at_place = [](int rank, int world) {
        return [rank, world](std::int64_t micro_batch) {
            torch::manual_seed(static_cast<std::uint64_t>(micro_batch * world + rank));
            return strata_test::some_latents(micro_batch);
        };
    };
    const MakeFlux of_this_rank = at_place(comm.rank(), comm.world());
    Learnt whole, alone;
    train<Trained<2>>(
        "whole", adapter_options<Trained<2>>(6), [&](auto& trainer) { whole = learnt_by(trainer); }, of_this_rank);
    train<Trained<3>>("run", adapter_options<Trained<3>>(3), {}, of_this_rank);
    if (comm.rank() == 0) {
        comm::SelfComm self;
        train::CommandLine to_run;
        to_run.output = root / "run";
        using Alone = Trainer<Flux, Adapter<Lora>, ZeroStage<0>, Ema<>, Ranks<comm::SelfComm>>;
        auto given = adapter_options<Alone>(6);
        given.engine.gradient_accumulation_steps = comm.world();
        ::testing::internal::CaptureStdout();
        Session session{self, to_run};
        torch::manual_seed(1);
        Alone trainer{session, std::make_shared<Flux>(strata_test::small_flux_options()), given};
        EXPECT_EQ(trainer.fit(FunctionSource{at_place(0, 1), 10, 2}).step, 6);
        ::testing::internal::GetCapturedStdout();
        alone = learnt_by(trainer);
        const auto apart = [](const std::vector<float>& a, const std::vector<float>& b) {
            return (torch::tensor(a) - torch::tensor(b)).abs().max().item<double>();
        };
        EXPECT_LT(apart(alone.weights, whole.weights), 1e-5);
        EXPECT_LT(apart(alone.average, whole.average), 1e-5);
        EXPECT_GT(apart(alone.average, alone.weights), 1e-3) << "they are not the same thing";
    }
    comm.barrier();
}

/// Adapters have memory of their own from the start, and the units that they are in have none yet.
TEST_F(TrainerAdapterResume, AModelMadeInUnitsGivesTheSameBits) {
    steps<2>("whole", 3);
    const auto in_units = [&](const std::string& name, auto stage) {
        using T = Trained<decltype(stage)::value>;
        in_session(name, [&](Session& session) {
            torch::manual_seed(1);
            T trainer{session,
                      strata::in_units([] { return std::make_shared<Flux>(strata_test::small_flux_options()); }),
                      adapter_options<T>(3)};
            trainer.fit(FunctionSource{strata_test::some_latents, 10, 2});
        });
        return losses(name);
    };
    EXPECT_EQ(in_units("s2", std::integral_constant<int, 2>{}), losses("whole"));
    EXPECT_EQ(in_units("s3", std::integral_constant<int, 3>{}), losses("whole"));
}

TEST_F(TrainerAdapterResume, CheckpointsHoldAdaptersAlone) {
    steps<3>("run", 2);
    if (comm.rank() != 0) return;
    for (const char* file : {"model.safetensors", "model_ema.safetensors"}) {
        const storage::SafetensorsFile found{checkpoint("run", 2) / file};
        std::size_t adapters = 0;
        for (const storage::SafetensorsEntry& entry : found.header().tensors) {
            EXPECT_NE(entry.name.find(".lora."), std::string::npos) << entry.name;
            ++adapters;
        }
        // 2 of 4 and 2 of 4 layers' pairs: to_q, to_k, to_v, to_out.0; to_q, to_k, to_v, proj_mlp
        EXPECT_EQ(adapters, 2U * 16U) << file;
    }
}

TEST_F(TrainerAdapterResume, OverOtherWeightsItIsSaidAndGoesOn) {
    steps<3>("run", 2);
    steps<3>("run", 4, 7);
    expect_said("[ST2128] the adapter of the checkpoint was trained over other base weights");
    EXPECT_EQ(losses("run").size(), 4U);
    steps<2>("run", 6, 7);
    EXPECT_EQ(said.find("ST2128"), std::string::npos) << "they are the base since step 4, at every stage: " << said;
}

TEST_F(TrainerAdapterResume, SetsAreEvaluatedWithAndWithoutThem) {
    in_session("run", [&](Session& session) {
        torch::manual_seed(1);
        Trained<3> trainer{session, std::make_shared<Flux>(strata_test::small_flux_options()),
                           adapter_options<Trained<3>>(4)};
        FunctionSource held_out{strata_test::some_latents, 2, 2};
        trainer.evaluate_every(2, "held_out", held_out);
        trainer.fit(FunctionSource{strata_test::some_latents, 10, 2});
    });
    comm_barrier();
    std::vector<nlohmann::json> found;
    std::ifstream log{root / "run" / "metrics.jsonl"};
    for (std::string line; std::getline(log, line);) {
        const auto json = nlohmann::json::parse(line);
        if (json.contains("evaluations")) found.push_back(json["evaluations"]);
    }
    ASSERT_EQ(found.size(), 2U) << "after steps 2 and 4";
    EXPECT_EQ(found[0]["held_out_without_adapter"], found[1]["held_out_without_adapter"]) << "it does not change";
    EXPECT_NE(found[0]["held_out"], found[1]["held_out"]);
    EXPECT_NE(found[0]["held_out"], found[0]["held_out_without_adapter"]);
    EXPECT_TRUE(found[1].contains("held_out_ema")) << found[1];
}

TEST_F(TrainerAdapterResume, OfAnotherRankOrKindIsAnError) {
    steps<2>("run", 2);
    const Error rank = error_of([&] { steps<2>("run", 4, 1, 8); });
    EXPECT_EQ(rank.code(), Errc::checkpoint_mismatch) << rank.what();
    EXPECT_NE(rank.problem().find("rank: 4 in the checkpoint, 8 now"), std::string::npos) << rank.what();
    using OfLokr = Trainer<Flux, Adapter<Lokr>, ZeroStage<2>, Ema<>>;
    const Error kind = error_of([&] { train<OfLokr>("run", adapter_options<OfLokr>(4)); });
    EXPECT_EQ(kind.code(), Errc::checkpoint_mismatch) << kind.what();
    EXPECT_NE(kind.problem().find("kind: lora in the checkpoint, lokr now"), std::string::npos) << kind.what();
    auto given = adapter_options<Trained<2>>(4);
    given.adapter.targets = "to_q";
    const Error targets = error_of([&] { train<Trained<2>>("run", given); });
    EXPECT_EQ(targets.code(), Errc::checkpoint_mismatch) << targets.what();
    EXPECT_NE(targets.problem().find("targets: to_q,to_k,to_v,to_out.0,proj_mlp in the checkpoint, to_q now"),
              std::string::npos)
        << targets.what();
}

TEST_F(TrainerAdapterResume, AnotherAlphaOrDropoutIsSaidAndGoesOn) {
    steps<2>("run", 2);
    auto given = adapter_options<Trained<2>>(4);
    given.adapter.kind.alpha = 4;  // the rank, which 0 stood for
    given.adapter.targets = "to_k,to_q,to_v,to_out.0,proj_mlp";
    train<Trained<2>>("run", given);
    EXPECT_EQ(said.find("the adapter changed"), std::string::npos) << said;
    given.max_steps = 6;
    given.adapter.kind.alpha = 8;
    given.adapter.kind.dropout = 0.25;
    train<Trained<2>>("run", given);
    expect_said("the adapter changed, alpha: 4 in the checkpoint, 8 now");
    expect_said("the adapter changed, dropout: 0.1 in the checkpoint, 0.25 now");
    EXPECT_EQ(losses("run").size(), 6U);
}

TEST_F(TrainerAdapterResume, CheckpointsThatSayNothingOfTheirAdapterGoOn) {
    steps<2>("run", 2);
    on_disk([&] {
        const auto file = this->checkpoint("run", 2) / "manifest.json";
        strata::checkpoint::Manifest manifest = strata::checkpoint::read_manifest(file);
        EXPECT_FALSE(manifest.adapter.empty());
        manifest.adapter.clear();
        strata::checkpoint::write_manifest(file, manifest);
    });
    const Error rank = error_of([&] { steps<2>("run", 4, 1, 8); });
    EXPECT_NE(rank.problem().find("lora.down of another shape"), std::string::npos) << rank.what();
    auto given = adapter_options<Trained<2>>(4);
    given.adapter.kind.alpha = 8;
    train<Trained<2>>("run", given);
    EXPECT_EQ(said.find("the adapter changed"), std::string::npos) << said;
    EXPECT_EQ(losses("run").size(), 4U);
}

}  // namespace
