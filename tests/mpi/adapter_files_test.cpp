// A file of adapters has all of their values at every stage, and none of the model below them.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/load_adapter_file.hpp>
#include <strata/adapters/saved_adapter.hpp>
#include <strata/weights/save_weights.hpp>

#include "../support/adapter_files.hpp"
#include "adapted_model.hpp"
#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using namespace strata_test;
using strata::comm::MpiComm;
using strata::weights::WeightFiles;

template <class Engine>
class AdapterFiles : public testing::Test {
protected:
    MpiComm comm_;
    SharedFolder<MpiComm> folder_{comm_};
};
using Engines = testing::Types<EngineOf<ZeroStage<0>>, EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<3>>,
                               EngineOf<ZeroStage<3>, Precision<Bf16>>, EngineOf<ZeroStage<3>, AllOnDisk>>;
TYPED_TEST_SUITE(AdapterFiles, Engines);

TYPED_TEST(AdapterFiles, HaveAllValuesAtEveryStageAndAreReadAtAnyOther) {
    torch::manual_seed(5);
    Case settings;
    settings.nvme_path = this->folder_.path;
    const auto model = std::make_shared<AdaptedModel>();
    TypeParam engine{this->comm_, strata::zero::parameters_of(*model), options_of<TypeParam>(settings)};
    Trace trace;
    for (int step = 0; step < 2; ++step) train_step(engine, *model, this->comm_, settings, step, trace);
    Tensors values;
    engine.with_whole_model([&] {
        for (const auto& item : model->named_parameters())
            values.emplace_back(item.key(), item.value().detach().to(at::kFloat).clone());
    });

    std::vector<strata::weights::SavedTensor> parameters;
    for (const auto& item : model->named_parameters()) parameters.push_back({item.key(), item.value()});
    auto saved = strata::adapters::saved_adapter(parameters, {.facts = {.alpha = 4}});
    const auto path = this->folder_.path / "lora" / "pytorch_lora_weights.safetensors";
    strata::weights::save_weights(this->comm_, path, std::move(saved.tensors),
                                  [&](const at::Tensor& tensor) { engine.hold_unit_of(tensor); },
                                  {.dtype = strata::storage::Dtype::f32, .metadata = saved.metadata});
    engine.drop_units();
    this->comm_.barrier();

    const WeightFiles files{path};
    EXPECT_EQ(files.tensors().size(), 9);
    for (const auto& [name, tensor] : files.tensors()) EXPECT_GT(tensor.bytes(), 0) << name;
    AdaptedModel other;  // of other values, and nobody's engine
    {
        const torch::NoGradGuard no_grad;
        for (const auto& [name, value] : values)
            if (name.ends_with(".weight")) other.named_parameters()[name].copy_(value);
    }
    const auto loaded = strata::adapters::load_adapter_file(other, path, {.alpha = 4});
    EXPECT_EQ(loaded.layers, 3);
    for (const auto& [name, value] : values) {
        const at::Tensor found = other.named_parameters()[name];
        if (name.ends_with(".magnitude")) {  // a norm in the file
            EXPECT_TRUE(torch::allclose(found, value, 1e-6, 0)) << name;
        } else {
            EXPECT_TRUE(found.equal(value)) << name;
        }
        if (!name.ends_with(".lora.down")) continue;
        const std::string in_file = "transformer." + name.substr(0, name.find(".lora.")) + ".lora_A.weight";
        EXPECT_TRUE(tensor_in(files, in_file).equal(value)) << in_file;
    }
}

}  // namespace
