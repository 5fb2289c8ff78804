// Layers whose numbers differ, from a configuration's words to options and to the layers of a model.

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/models/flux.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/options_from_config.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata;

class ConfiguredLayers : public ::testing::Test {
protected:
    std::string write(const std::string& name, std::string_view text) {
        std::ofstream{folder_.path() / name} << text;
        return (folder_.path() / name).string();
    }
    /// The options of an adapter by the keys of a file.
    template <class Kind>
    train::AdapterOptions<Kind> options_of(std::string_view json) {
        const auto config = config::load_trainer_config(write("config.json", json));
        return train::options_from<strata::Setup<Adapter<Kind>>>(config, 5).adapter;
    }
    /// A Flux with an adapter by these options.
    template <class Kind>
    static models::Flux adapted(const train::AdapterOptions<Kind>& options) {
        models::Flux flux{models::FluxOptions{.token_values = 16,
                                              .output_values = 16,
                                              .text_width = 24,
                                              .pooled_width = 24,
                                              .heads = 2,
                                              .rotary_axes = {4, 6, 6},
                                              .double_blocks = 1,
                                              .single_blocks = 1,
                                              .has_guidance = false}};
        static_cast<void>(adapters::adapt<Kind>(flux, options.kind, adapters::patterns_of(options.targets),
                                                adapters::patterns_of(options.excluded), options.by_layer));
        return flux;
    }
    static std::vector<std::int64_t> sizes(const models::Flux& flux, const std::string& name) {
        const auto parameters = flux.named_parameters();
        const at::Tensor* const found = parameters.find(name);
        return found == nullptr ? std::vector<std::int64_t>{} : found->sizes().vec();
    }
    strata_test::TemporaryFolder folder_;
};
using Sizes = std::vector<std::int64_t>;

TEST_F(ConfiguredLayers, TheFileThatPeopleBeginWithHasAFactorForEachClass) {
    write("lycoris.json", R"({"bypass_mode": true, "algo": "lokr", "multiplier": 1.0, "full_matrix": true,
        "linear_dim": 10000, "linear_alpha": 1, "factor": 8, "apply_preset": {
        "target_module": ["Attention", "FeedForward"],
        "module_algo_map": {"Attention": {"factor": 8}, "FeedForward": {"factor": 4}}}})");
    const auto options = options_of<Lokr>(R"({"model_type": "lora", "model_family": "flux", "max_train_steps": 1,
        "lora_type": "lycoris", "lycoris_config": "lycoris.json"})");
    ASSERT_EQ(options.by_layer.size(), 2U);
    EXPECT_EQ(options.by_layer[1].layers, "ff.net.0.proj,ff.net.2,ff_context.net.0.proj,ff_context.net.2");
    EXPECT_EQ(options.by_layer[1].options.factor, 4);
    EXPECT_EQ(options.by_layer[1].options.rank, 10000);
    EXPECT_TRUE(options.by_layer[1].options.full_matrix);
    const models::Flux flux = adapted(options);  // 32 wide, 128 inside
    EXPECT_EQ(sizes(flux, "transformer_blocks.0.attn.to_q.lokr.w1"), (Sizes{4, 4})) << "8 is no factor below 32's root";
    EXPECT_EQ(sizes(flux, "transformer_blocks.0.ff.net.0.proj.lokr.w1"), (Sizes{4, 4}));
    EXPECT_EQ(sizes(flux, "transformer_blocks.0.ff.net.0.proj.lokr.w2"), (Sizes{32, 8}));
    EXPECT_EQ(sizes(flux, "single_transformer_blocks.0.proj_mlp.lokr.w1"), Sizes{}) << "no such class was named";
}

TEST_F(ConfiguredLayers, RanksAndAlphasAreFoundOnTheirOwn) {
    const auto options = options_of<Lora>(R"({"model_type": "lora", "model_family": "flux", "max_train_steps": 1,
        "lora_rank": 4, "lora_alpha": 8, "lora_rank_pattern": {"to_q": 2, "single_transformer_blocks.*.to_q": 3},
        "lora_alpha_pattern": {"single_transformer_blocks.*": 5}})");
    const auto of = [&](std::string_view path) {
        const auto* const own = adapters::own_options(options.by_layer, path);
        const auto& found = own == nullptr ? options.kind : *own;
        return std::pair{found.rank, found.alpha};
    };
    EXPECT_EQ(of("transformer_blocks.0.attn.to_q"), (std::pair<std::int64_t, double>{2, 8}));
    EXPECT_EQ(of("single_transformer_blocks.0.attn.to_q"), (std::pair<std::int64_t, double>{3, 5}));
    EXPECT_EQ(of("single_transformer_blocks.0.attn.to_k"), (std::pair<std::int64_t, double>{4, 5}));
    EXPECT_EQ(of("transformer_blocks.0.attn.to_k"), (std::pair<std::int64_t, double>{4, 8}));
    const models::Flux flux = adapted(options);
    EXPECT_EQ(sizes(flux, "single_transformer_blocks.0.attn.to_q.lora.down"), (Sizes{3, 32}));
    EXPECT_EQ(sizes(flux, "transformer_blocks.0.attn.to_q.lora.down"), (Sizes{2, 32}));
    EXPECT_EQ(sizes(flux, "transformer_blocks.0.attn.to_v.lora.down"), (Sizes{4, 32}));
}

}  // namespace
