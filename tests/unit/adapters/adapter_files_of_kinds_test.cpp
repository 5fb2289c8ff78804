// What a file says of an adapter is what the adapter computes: kinds of strata's own, written, merged and loaded.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/load_adapter_file.hpp>
#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/adapters/saved_adapter.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/models/layers.hpp>
#include <strata/weights/save_weights.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::adapters::FileNaming;

struct Net : torch::nn::Module {
    Net() {
        torch::manual_seed(4);
        linear = register_module("linear", std::make_shared<strata::models::Linear>(8, 12));
        conv = register_module("conv", std::make_shared<strata::models::Conv2d>(4, 6, 3));
    }
    std::shared_ptr<strata::models::Linear> linear;
    std::shared_ptr<strata::models::Conv2d> conv;
};

class AdapterFilesOfKinds : public testing::Test {
protected:
    template <class Kind>
    void expect_a_file_is_its_adapter(const typename Kind::Options& options) {
        for (const FileNaming naming : {FileNaming::peft, FileNaming::kohya, FileNaming::comfyui}) {
            Net net;
            auto adapted = strata::adapters::adapt<Kind>(net, options, {"linear", "conv"});
            {
                const torch::NoGradGuard no_grad;
                for (const auto& layer : adapted.layers())
                    for (at::Tensor& parameter : layer.layer->adapter()->parameters())
                        parameter.add_(torch::randn_like(parameter) * 0.3);
            }
            const auto facts = strata::adapters::facts_of<Kind>(options);
            std::vector<strata::weights::SavedTensor> parameters;
            for (const auto& item : net.named_parameters()) parameters.push_back({item.key(), item.value()});
            auto saved = strata::adapters::saved_adapter(parameters, {.naming = naming, .facts = facts});
            strata::comm::SelfComm comm;
            const std::filesystem::path file = folder_.path() / "adapter.safetensors";
            strata::weights::save_weights(comm, file, std::move(saved.tensors), [](const at::Tensor&) {},
                                          {.metadata = saved.metadata});
            Net merged, begun;
            EXPECT_EQ(strata::adapters::merge_adapter_file(merged, file).layers, 2);
            static_cast<void>(strata::adapters::adapt<Kind>(begun, options, {"linear", "conv"}));
            EXPECT_EQ(strata::adapters::load_adapter_file(begun, file, facts).layers, 2);
            for (const auto& item : net.named_parameters())
                EXPECT_TRUE(torch::allclose(begun.named_parameters()[item.key()], item.value(), 1e-6, 0)) << item.key();
            adapted.merge();
            for (const auto& item : merged.named_parameters())
                EXPECT_TRUE(torch::allclose(item.value(), net.named_parameters()[item.key()], 1e-5, 1e-6))
                    << item.key() << ' ' << name_of(naming);
        }
    }
    strata_test::TemporaryFolder folder_;
};

TEST_F(AdapterFilesOfKinds, Loras) {
    expect_a_file_is_its_adapter<strata::Lora>({.rank = 2, .alpha = 3, .dropout = 0});
}
TEST_F(AdapterFilesOfKinds, Doras) {
    expect_a_file_is_its_adapter<strata::Lora>({.rank = 2, .dropout = 0, .use_dora = true});
}
TEST_F(AdapterFilesOfKinds, LokrsOfAProductAndOfWholeFactors) {
    expect_a_file_is_its_adapter<strata::Lokr>({.rank = 1, .alpha = 2, .decompose_both = true});
    expect_a_file_is_its_adapter<strata::Lokr>({.rank = 1, .alpha = 2, .full_matrix = true});
}

}  // namespace
