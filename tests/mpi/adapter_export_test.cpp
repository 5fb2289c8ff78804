// A run with an adapter leaves the adapter, and its average in a folder of its own.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/train/any_engine.hpp>
#include <strata/train/any_model.hpp>
#include <strata/train/exported_weights.hpp>
#include <strata/train/session.hpp>
#include <strata/weights/weight_files.hpp>

#include "../support/adapter_files.hpp"
#include "adapted_model.hpp"
#include "toy_engines.hpp"

namespace {

using namespace strata_test;
using strata::comm::MpiComm;
using strata::weights::WeightFiles;

class AdapterExport : public testing::Test {
protected:
    using Engine = EngineOf<ZeroStage<3>, strata::Ema<strata::Cpu>>;
    MpiComm comm_;
    SharedFolder<MpiComm> folder_{comm_};
};

TEST_F(AdapterExport, LeavesTheAdapterAndItsAverageOnce) {
    std::vector<std::string> words{"test", "--output", (folder_.path / "run").string()};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    {
        strata::Session session{comm_, static_cast<int>(argv.size()), argv.data()};
        torch::manual_seed(5);
        const Case settings;
        AdaptedModel model;
        Engine engine{comm_, strata::zero::parameters_of(model), options_of<Engine>(settings)};
        Trace trace;
        for (int step = 0; step < 3; ++step) train_step(engine, model, comm_, settings, step, trace);
        strata::train::EngineOf<Engine> any_engine{engine};
        strata::train::ModelOf<AdaptedModel> any_model{model};
        const auto exported = [&] {
            return strata::train::exported_weights(
                session, any_model, any_engine,
                {.options = {.weights = true, .dtype = strata::train::ExportType::fp32},
                 .averages = true,
                 .folder = folder_.path / "run",
                 .step = 3,
                 .loss = 0.5,
                 .adapter = strata::adapters::SaveAdapterOptions{}});
        };
        const auto first = exported();
        EXPECT_TRUE(first.is_new);
        ASSERT_EQ(first.files.size(), 2);
        EXPECT_EQ(first.files[0], folder_.path / "run" / "pytorch_lora_weights.safetensors");
        EXPECT_EQ(first.files[1], folder_.path / "run" / "ema" / "pytorch_lora_weights.safetensors");
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
        comm_.barrier();
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

}  // namespace
