// A run with an adapter leaves the adapter, and its average in a folder of its own.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lora.hpp>
#include <strata/models/layers.hpp>
#include <strata/strata.hpp>
#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/exported_weights.hpp>
#include <strata/train/session.hpp>
#include <strata/weights/weight_files.hpp>

#include "../support/adapter_files.hpp"
#include "adapted_model.hpp"
#include "toy_engines.hpp"
#include "trainer_runs.hpp"

namespace {

using namespace strata_test;
using strata::weights::WeightFiles;

/// A model whose layers can have adapters.
struct AdaptableNet : torch::nn::Module {
    using Batch = Rows;
    struct Block : torch::nn::Module {
        std::shared_ptr<strata::models::Linear> to_q =
            register_module("to_q", std::make_shared<strata::models::Linear>(6, 6));
        torch::Tensor forward(const torch::Tensor& x) { return x + torch::tanh(to_q->forward(x)); }
    };
    using Units = strata::UnitList<Block>;
    std::shared_ptr<strata::models::Linear> in = register_module("in", std::make_shared<strata::models::Linear>(3, 6));
    std::shared_ptr<strata::Unit<Block>> block = register_module("block", std::make_shared<strata::Unit<Block>>());
    torch::Tensor loss(const Batch& batch) {
        return torch::mse_loss(block->forward(in->forward(batch.x)).mean(1, true), batch.y);
    }
};

struct AdapterExport : TrainerRuns {
    using Engine = EngineOf<ZeroStage<3>, strata::Ema<strata::Cpu>>;
    using Composed = strata::Trainer<AdaptableNet, strata::ZeroStage<3>, strata::Adapter<strata::Lora>, strata::Ema<>>;
    /// Runs, and returns the adapter of the block's layer.
    at::Tensor trained(const std::string& name, std::int64_t steps, const std::filesystem::path& init = {},
                       bool fresh = false) {
        at::Tensor down;
        const auto run = [&](strata::Session& session) {
            Composed::Options given{.max_steps = steps, .schedule = {.lr = 1e-2}};
            given.exported.weights = true;
            given.adapter.kind = {.rank = 2, .alpha = 4, .dropout = 0};
            given.adapter.targets = "in,to_q";
            given.adapter.init = init;
            Composed trainer{session, AdaptableNet{}, given};
            if (fresh) {  // not to its end
                trainer.fit(strata::FunctionSource{plain, 10, 8}, steps - 1);
                return;
            }
            trainer.fit(strata::FunctionSource{plain, 10, 8});
            trainer.with_whole_model([&] {
                down = trainer.model().named_parameters()["block.to_q.lora.down"].detach().to(at::kFloat).clone();
            });
        };
        in_session(name, run, fresh);
        comm.barrier();
        return down;
    }
};

TEST_F(AdapterExport, LeavesTheAdapterAndItsAverageOnce) {
    std::vector<std::string> words{"test", "--output", (root / "run").string()};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    {
        strata::Session session{comm, static_cast<int>(argv.size()), argv.data()};
        torch::manual_seed(5);
        const Case settings;
        AdaptedModel model;
        Engine engine{comm, strata::zero::parameters_of(model), options_of<Engine>(settings)};
        Trace trace;
        for (int step = 0; step < 3; ++step) train_step(engine, model, comm, settings, step, trace);
        strata::train::EngineOf<Engine> any_engine{engine};
        strata::train::ModelOf<AdaptedModel> any_model{model};
        const auto exported = [&] {
            return strata::train::exported_weights(
                session, any_model, any_engine,
                {.options = {.weights = true, .dtype = strata::train::ExportType::fp32},
                 .averages = true,
                 .folder = root / "run",
                 .step = 3,
                 .loss = 0.5,
                 .adapter = strata::adapters::SaveAdapterOptions{}});
        };
        const auto first = exported();
        EXPECT_TRUE(first.is_new);
        ASSERT_EQ(first.files.size(), 2);
        EXPECT_EQ(first.files[0], root / "run" / "pytorch_lora_weights.safetensors");
        EXPECT_EQ(first.files[1], root / "run" / "ema" / "pytorch_lora_weights.safetensors");
        EXPECT_FALSE(exported().is_new);

        at::Tensor weights, average;
        const auto down_of_first = [&](at::Tensor& value) {
            engine.with_whole_model(
                [&] { value = model.named_parameters()["first.linear.lora.down"].detach().clone(); });
        };
        down_of_first(weights);
        engine.swap_average();
        down_of_first(average);
        engine.swap_average();
        comm.barrier();
        const std::string name = "transformer.first.linear.lora_A.weight";
        EXPECT_TRUE(tensor_in(WeightFiles{first.files[0]}, name).equal(weights));
        EXPECT_TRUE(tensor_in(WeightFiles{first.files[1]}, name).equal(average));
        EXPECT_FALSE(weights.equal(average));
        EXPECT_EQ(WeightFiles{first.files[0]}.tensors().size(), 9);
        EXPECT_TRUE(WeightFiles{first.files[0]}.metadata().contains("lora_adapter_metadata"));
        EXPECT_TRUE(WeightFiles{first.files[0]}.metadata().contains("strata.export"));
    }
    testing::internal::GetCapturedStdout();
}

TEST_F(AdapterExport, ARunLeavesItsAdapterAndAnotherBeginsWithIt) {
    const at::Tensor down = trained("run", 2);
    const auto file = root / "run" / "pytorch_lora_weights.safetensors";
    ASSERT_TRUE(std::filesystem::exists(file));
    EXPECT_TRUE(std::filesystem::exists(root / "run" / "ema" / "pytorch_lora_weights.safetensors"));
    EXPECT_FALSE(std::filesystem::exists(root / "run" / "model.safetensors"));
    const WeightFiles files{file};
    EXPECT_EQ(files.tensors().size(), 4);
    EXPECT_TRUE(tensor_in(files, "transformer.block.to_q.lora_A.weight").equal(down));
    EXPECT_NE(files.metadata().at("lora_adapter_metadata").find("\"transformer.lora_alpha\": 4"), std::string::npos);
    const at::Tensor next = trained("next", 1, file);
    if (comm.rank() == 0) {
        EXPECT_NE(said.find("adapters begin with 2 layers of " + file.string()), std::string::npos) << said;
    }
    EXPECT_LT((next - down).abs().max().item<float>(), 0.05F);  // a step away; another beginning is far
    EXPECT_FALSE(next.equal(down));
}

TEST_F(AdapterExport, ARunThatStartsOverIsRefusedWhereItWouldTakeAwayWhatItBeginsWith) {
    static_cast<void>(trained("run", 1));
    const auto file = root / "run" / "pytorch_lora_weights.safetensors";
    const strata::Error error = error_of([&] { static_cast<void>(trained("run", 3, file, true)); });
    EXPECT_EQ(error.code(), strata::Errc::bad_reference) << error.what();
    EXPECT_NE(std::string{error.what()}.find(file.string()), std::string::npos) << error.what();
    comm.barrier();
    EXPECT_TRUE(std::filesystem::exists(file));
    EXPECT_TRUE(std::filesystem::exists(root / "run" / "ema" / "pytorch_lora_weights.safetensors"));
    EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 1))) << "nothing went before the refusal";
    comm.barrier();
    static_cast<void>(trained("run", 3, {}, true));
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_FALSE(std::filesystem::exists(root / "run" / "ema")) << "nothing else was in it";
}

}  // namespace
