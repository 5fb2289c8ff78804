// A LoRA that somebody published for Stable Diffusion 1.5, merged into models of the real shapes.

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/models/clip_text.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/in_units.hpp>

#include "../../support/adapter_files.hpp"

namespace {

using namespace strata_test;
using strata::adapters::FileNaming;
using strata::weights::LoadTarget;

std::filesystem::path file() {
#ifdef STRATA_REFERENCE_DIR
    return std::filesystem::path{STRATA_REFERENCE_DIR} / "data/weights/lora/analog_svd_rank4.safetensors";
#else
    return {};
#endif
}

/// The number of a layer in the file, and the layer that has it.
using Numbered = std::vector<std::pair<int, std::string>>;

at::Tensor up_times_down(const strata::weights::WeightFiles& files, const std::string& part, int number) {
    const std::string name = part + ":" + std::to_string(number);
    return tensor_in(files, name + ":up").mm(tensor_in(files, name + ":down"));
}

/// The target of a parameter.
const LoadTarget& target_of(const std::vector<LoadTarget>& targets, const std::string& path) {
    for (const LoadTarget& target : targets) {
        if (target.names.front() == path + ".weight") return target;
    }
    throw std::logic_error{"the model has no " + path};
}
/// What a parameter of a unit without memory is to begin with.
at::Tensor value_of(const LoadTarget& target) {
    at::Tensor values = torch::empty(target.tensor.sizes());
    const auto& deferred = *target.link->deferred;
    deferred.values->read(deferred.find(target.tensor).value(), 0, values.view(-1));
    return values;
}

TEST(PublishedLora, MergesIntoTheUnetOfStableDiffusion15) {
    if (!std::filesystem::exists(file())) GTEST_SKIP() << "no published LoRA: " << file() << " is not there";
    const strata::weights::WeightFiles files{file()};
    torch::manual_seed(1);
    const auto unet = strata::in_units([] { return std::make_shared<strata::models::Sd15Unet>(); });
    const std::vector<LoadTarget> targets = strata::weights::load_targets_of(*unet);
    const Numbered numbered{
        {0, "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q"},
        {3, "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_out.0"},
        {4, "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.0.proj"},
        {7, "down_blocks.0.attentions.0.transformer_blocks.0.attn2.to_v"},
        {24, "down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k"},
        {54, "up_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q"},
        {134, "up_blocks.3.attentions.2.transformer_blocks.0.attn2.to_out.0"},
        {135, "mid_block.attentions.0.transformer_blocks.0.attn1.to_q"},
        {143, "mid_block.attentions.0.transformer_blocks.0.attn2.to_out.0"},
    };
    std::vector<at::Tensor> before;
    for (const auto& [number, path] : numbered) before.push_back(value_of(target_of(targets, path)));
    const std::string untouched = "down_blocks.0.attentions.0.transformer_blocks.0.ff.net.2";
    const at::Tensor same = value_of(target_of(targets, untouched));

    const auto merged = strata::adapters::merge_adapter_file(*unet, file(), 0.8);
    EXPECT_EQ(merged.naming, FileNaming::cloneofsimo);
    EXPECT_EQ(merged.layers, 144);
    EXPECT_EQ(merged.of_other_parts, 48);
    for (std::size_t i = 0; i < numbered.size(); ++i) {
        const auto& [number, path] = numbered[i];
        const at::Tensor wanted = before[i] + 0.8 * up_times_down(files, "unet", number);
        const at::Tensor found = value_of(target_of(targets, path));
        EXPECT_LT((found - wanted).abs().max().item<float>(), 1e-6) << path;
        EXPECT_GT((found - before[i]).abs().max().item<float>(), 1e-4) << path;
    }
    EXPECT_TRUE(value_of(target_of(targets, untouched)).equal(same));
}

TEST(PublishedLora, MergesIntoItsTextEncoder) {
    if (!std::filesystem::exists(file())) GTEST_SKIP() << "no published LoRA: " << file() << " is not there";
    const strata::weights::WeightFiles files{file()};
    strata::models::ClipText clip;  // zeros
    const auto merged = strata::adapters::merge_adapter_file(clip, file());
    EXPECT_EQ(merged.layers, 48);
    EXPECT_EQ(merged.of_other_parts, 144);
    const std::vector<LoadTarget> targets = strata::weights::load_targets_of(clip);
    for (const auto& [number, path] : Numbered{{0, "text_model.encoder.layers.0.self_attn.k_proj"},
                                               {1, "text_model.encoder.layers.0.self_attn.v_proj"},
                                               {2, "text_model.encoder.layers.0.self_attn.q_proj"},
                                               {3, "text_model.encoder.layers.0.self_attn.out_proj"},
                                               {42, "text_model.encoder.layers.10.self_attn.q_proj"},
                                               {47, "text_model.encoder.layers.11.self_attn.out_proj"}}) {
        const at::Tensor wanted = up_times_down(files, "text_encoder", number);
        EXPECT_TRUE(torch::allclose(target_of(targets, path).tensor, wanted, 1e-6, 1e-8)) << path;
        EXPECT_GT(wanted.abs().max().item<float>(), 1e-5) << path;
    }
    EXPECT_EQ(target_of(targets, "text_model.encoder.layers.0.mlp.fc1").tensor.abs().max().item<float>(), 0);
}

}  // namespace
