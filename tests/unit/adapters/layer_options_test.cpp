// Layers with options of their own: what they are adapted with, and what files say of them.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <strata/adapters/load_adapter_file.hpp>
#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/adapters/saved_adapter.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/models/layers.hpp>
#include <strata/options/adapter_options.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/weights/weight_files.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata;
using adapters::FileNaming;
using LoraLayers = std::vector<train::LayerOptions<adapters::LoraOptions>>;
using LokrLayers = std::vector<train::LayerOptions<adapters::LokrOptions>>;

struct Block : torch::nn::Module {
    Block() {
        to_q = register_module("to_q", std::make_shared<models::Linear>(16, 16));
        proj_out = register_module("proj_out", std::make_shared<models::Linear>(16, 24));
    }
    std::shared_ptr<models::Linear> to_q, proj_out;
};
struct Net : torch::nn::Module {
    Net() {
        torch::manual_seed(4);
        blocks = register_module("blocks", torch::nn::ModuleList{});
        for (int i = 0; i < 2; ++i) blocks->push_back(std::make_shared<Block>());
        proj_out = register_module("proj_out", std::make_shared<models::Linear>(24, 8));
    }
    torch::nn::ModuleList blocks = nullptr;
    std::shared_ptr<models::Linear> proj_out;
};
const std::vector<std::string> all_layers{"to_q", "proj_out"};

at::Tensor parameter_of(torch::nn::Module& net, const std::string& name) {
    const auto all = net.named_parameters();
    const at::Tensor* const found = all.find(name);
    return found == nullptr ? at::Tensor{} : *found;
}
std::int64_t rank_of(torch::nn::Module& net, const std::string& layer) {
    return parameter_of(net, layer + ".lora.down").size(0);
}
Error error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    return {Errc{}, "nothing was thrown", ""};
}

class LayerOptions : public testing::Test {
protected:
    /// Writes the adapters of a model, whose parameters are all random, and says where.
    std::filesystem::path written(torch::nn::Module& net, const adapters::AdapterFacts& facts, FileNaming naming) {
        {
            const torch::NoGradGuard no_grad;
            for (auto& item : net.named_parameters())
                if (adapters::is_of_adapter(item.key())) item.value().add_(torch::randn_like(item.value()) * 0.3);
        }
        std::vector<weights::SavedTensor> parameters;
        for (const auto& item : net.named_parameters()) parameters.push_back({item.key(), item.value()});
        auto saved = adapters::saved_adapter(parameters, {.naming = naming, .facts = facts});
        comm::SelfComm comm;
        const std::filesystem::path file = folder_.path() / "adapter.safetensors";
        weights::save_weights(comm, file, std::move(saved.tensors), [](const at::Tensor&) {},
                              {.metadata = saved.metadata});
        return file;
    }
    /// A file's merged weights, and the adapters that begin with it, are those of the model that wrote it.
    template <class Kind>
    void expect_files_keep_it(const typename Kind::Options& options,
                              const std::vector<train::LayerOptions<typename Kind::Options>>& by_layer) {
        for (const FileNaming naming : {FileNaming::peft, FileNaming::kohya, FileNaming::comfyui}) {
            Net net, merged, begun;
            auto adapted = adapters::adapt<Kind>(net, options, all_layers, {}, by_layer);
            const auto facts = adapters::facts_of<Kind>(options, by_layer);
            const std::filesystem::path file = written(net, facts, naming);
            EXPECT_EQ(adapters::merge_adapter_file(merged, file).layers, 5U);
            static_cast<void>(adapters::adapt<Kind>(begun, options, all_layers, {}, by_layer));
            EXPECT_EQ(adapters::load_adapter_file(begun, file, facts).layers, 5U);
            for (const auto& item : net.named_parameters())
                EXPECT_TRUE(begun.named_parameters()[item.key()].equal(item.value()))
                    << item.key() << ' ' << name_of(naming) << ": alphas are alike, and bits are kept";
            adapted.merge();
            for (const auto& item : merged.named_parameters())
                EXPECT_TRUE(torch::allclose(item.value(), net.named_parameters()[item.key()], 1e-5, 1e-6))
                    << item.key() << ' ' << name_of(naming);
        }
    }
    strata_test::TemporaryFolder folder_;
};

TEST_F(LayerOptions, TheFirstThatFitsALayerIsTheLayers) {
    Net net;
    const LoraLayers own{{.layers = "blocks.1.to_q", .options = {.rank = 5}},
                         {.layers = "to_q, blocks.0.proj_out", .options = {.rank = 3}},
                         {.layers = "proj_out", .options = {.rank = 7}, .also = "blocks.*"}};
    static_cast<void>(adapters::adapt<Lora>(net, {.rank = 2}, all_layers, {}, own));
    EXPECT_EQ(rank_of(net, "blocks.0.to_q"), 3);
    EXPECT_EQ(rank_of(net, "blocks.1.to_q"), 5);
    EXPECT_EQ(rank_of(net, "blocks.0.proj_out"), 3);
    EXPECT_EQ(rank_of(net, "blocks.1.proj_out"), 7);
    EXPECT_EQ(rank_of(net, "proj_out"), 2) << "its second list fits no layer outside of blocks";
}

TEST_F(LayerOptions, FactorsOfLokrDifferFromLayerToLayer) {
    Net net;
    const LokrLayers own{{.layers = "proj_out", .options = {.factor = 2, .full_matrix = true}}};
    static_cast<void>(adapters::adapt<Lokr>(net, {.factor = 4, .full_matrix = true}, all_layers, {}, own));
    EXPECT_EQ(parameter_of(net, "blocks.0.to_q.lokr.w1").sizes(), (std::vector<std::int64_t>{4, 4}));
    EXPECT_EQ(parameter_of(net, "blocks.0.proj_out.lokr.w1").sizes(), (std::vector<std::int64_t>{2, 2}));
    EXPECT_EQ(parameter_of(net, "blocks.0.proj_out.lokr.w2").sizes(), (std::vector<std::int64_t>{12, 8}));
}

TEST_F(LayerOptions, AllPatternsThatFitNothingAreInOneError) {
    Net net;
    const LoraLayers own{{.layers = "to_q,to_k"}, {.layers = "to_q", .also = "middle.*"}, {.layers = "proj_out"}};
    const Error error = error_of([&] { static_cast<void>(adapters::adapt<Lora>(net, {}, {"to_q"}, {}, own)); });
    EXPECT_EQ(error.code(), Errc::bad_value);
    const std::string message = error.what();
    for (const char* said : {"'to_k'", "'middle.*'", "'proj_out'", "there are to_q"})
        EXPECT_NE(message.find(said), std::string::npos) << said << " in " << message;
    EXPECT_FALSE(parameter_of(net, "blocks.0.to_q.lora.down").defined()) << "the model is as it was";
}

TEST_F(LayerOptions, AreLookedAtLikeThoseOfAllLayers) {
    train::AdapterOptions<Lora> options;
    options.by_layer = {{.layers = "to_q", .options = {.rank = 0}}, {.layers = " , "}};
    OptionCheck check;
    options.check(check);
    const std::string message = error_of([&] { check.finish(); }).what();
    EXPECT_NE(message.find("by_layer[0].rank is 0"), std::string::npos) << message;
    EXPECT_NE(message.find("by_layer[1] names no layers"), std::string::npos) << message;
}

TEST_F(LayerOptions, FilesKeepLorasOfSeveralRanksAndAlphas) {
    expect_files_keep_it<Lora>({.rank = 2, .alpha = 3, .dropout = 0},
                               {{.layers = "blocks.1.to_q", .options = {.rank = 4, .alpha = 1, .dropout = 0}},
                                {.layers = "blocks.*.proj_out", .options = {.rank = 2, .alpha = 5, .dropout = 0}}});
    expect_files_keep_it<Lora>({.rank = 2}, {{.layers = "proj_out", .options = {.rank = 3}}});
}

TEST_F(LayerOptions, FilesKeepLokrsOfSeveralFactors) {
    expect_files_keep_it<Lokr>({.rank = 1, .alpha = 2, .factor = 4},
                               {{.layers = "to_q", .options = {.rank = 1, .alpha = 0.5, .factor = 2}},
                                {.layers = "blocks.0.proj_out", .options = {.factor = 2, .full_matrix = true}}});
}

TEST_F(LayerOptions, PeftIsToldOfLayersThatAreNotLikeTheRest) {
    Net net;
    const adapters::LoraOptions rest{.rank = 2, .alpha = 3};
    const LoraLayers own{{.layers = "blocks.1.to_q", .options = {.rank = 4, .alpha = 1}},
                         {.layers = "proj_out", .options = {.rank = 5, .alpha = 3}, .also = "proj_out"}};
    static_cast<void>(adapters::adapt<Lora>(net, rest, {"to_q", "proj_out"}, {"blocks.*.proj_out"}, own));
    const auto file = written(net, adapters::facts_of<Lora>(rest, own), FileNaming::peft);
    const auto config = nlohmann::json::parse(weights::WeightFiles{file}.metadata().at("lora_adapter_metadata"));
    const std::string of = "transformer.";
    EXPECT_EQ(config[of + "r"], 2);
    EXPECT_EQ(config[of + "lora_alpha"], 3);
    EXPECT_EQ(config[of + "rank_pattern"], (nlohmann::json{{"blocks.1.to_q", 4}, {"^proj_out", 5}}))
        << "without its anchor it would be the blocks' too";
    EXPECT_EQ(config[of + "alpha_pattern"], (nlohmann::json{{"blocks.1.to_q", 1.0}}));
}

}  // namespace
