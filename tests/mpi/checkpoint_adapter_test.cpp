// The adapters of checkpoints, of any stage and number of ranks and over quantised bases, become the weights that the file of the same adapters makes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/adapters/lokr.hpp>
#include <strata/adapters/lora.hpp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/core/error.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/train/checkpoint_adapter.hpp>
#include <strata/train/checkpoint_weights.hpp>
#include <strata/zero/codecs/int8.hpp>
#include <strata/zero/in_units.hpp>

#include "adapter_runs.hpp"

namespace {

using namespace strata;
using train::CheckpointWeights;

struct CheckpointAdapter : strata_test::AdapterRuns {
    /// The weights beneath the adapters, as the run began with them, in units without memory.
    static std::shared_ptr<Flux> base() {
        torch::manual_seed(1);
        return in_units([] { return std::make_shared<Flux>(strata_test::small_flux_options()); });
    }
    static std::vector<at::Tensor> whole(Flux& model) {
        make_whole(model);
        std::vector<at::Tensor> values;
        for (const at::Tensor& parameter : model.parameters()) values.push_back(parameter.detach().clone());
        return values;
    }
    static double apart(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
        double most = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            most = std::max(most, (a[i] - b.at(i)).abs().max().template item<double>());
        return most;
    }
    [[nodiscard]] static std::vector<at::Tensor> with_file(const std::filesystem::path& file) {
        const auto model = base();
        adapters::merge_adapter_file(*model, file);
        return whole(*model);
    }
    [[nodiscard]] std::vector<at::Tensor> with_checkpoint(const std::string& run, CheckpointWeights which,
                                                          std::optional<std::int64_t> step = {}) const {
        const auto found = train::find_checkpoint(root / run, step, which);
        EXPECT_TRUE(train::holds_adapters_alone(found));
        const auto model = base();
        train::merge_checkpoint_adapter(*model, found);
        return whole(*model);
    }

    /// Four steps, with an average, checkpoints of the second and the last, and files at the end.
    template <class Kind, class... Policies>
    void train_four(const std::string& name, const train::AdapterOptions<Kind>& adapter) {
        using Trained = Trainer<Flux, Adapter<Kind>, Ema<>, Policies...>;
        auto given = adapter_options<Trained>(4);
        const std::string targets = given.adapter.targets;
        given.adapter = adapter;
        given.adapter.targets = targets;
        given.checkpoint_every = 2;
        given.exported.weights = true;
        train<Trained>(name, given);
        comm.barrier();
    }
    /// On rank 0: what is there to be read has been written by all.
    ///
    ///   tolerance  of a DoRA, whose norms are rounded in files
    void expect_what_files_make(const std::string& name, double tolerance = 0) {
        if (comm.rank() != 0) return;
        SCOPED_TRACE(name);
        const auto left = with_file(root / name / "pytorch_lora_weights.safetensors");
        const auto average = with_file(root / name / "ema" / "pytorch_lora_weights.safetensors");
        const auto plain = whole(*base());
        EXPECT_GT(apart(left, plain), 1e-3) << "it would not be seen";
        EXPECT_GT(apart(left, average), 1e-4);
        EXPECT_LE(apart(with_checkpoint(name, CheckpointWeights::parameters), left), tolerance);
        EXPECT_LE(apart(with_checkpoint(name, CheckpointWeights::average), average), tolerance);
        EXPECT_LE(apart(with_checkpoint(name, CheckpointWeights::masters), left), tolerance) << "all is in fp32";
        const auto before = with_checkpoint(name, CheckpointWeights::parameters, 2);
        EXPECT_GT(apart(before, left), 1e-4);
        EXPECT_GT(apart(before, plain), 1e-4);
    }
};

TEST_F(CheckpointAdapter, MakesTheWeightsThatItsFileMakes) {
    train_four<Lora, ZeroStage<0>>("zero", {.kind = {.rank = 4, .alpha = 2}});
    expect_what_files_make("zero");
    // Ranks and alphas of some layers' own.
    train_four<Lora, ZeroStage<3>>(
        "three",
        {.kind = {.rank = 4, .alpha = 8}, .by_layer = {{"to_q", {.rank = 2, .alpha = 6}}, {"proj_mlp", {.rank = 3}}}});
    expect_what_files_make("three");
    train_four<Lora, ZeroStage<3>, FrozenWeights<Int8>>("int8", {.kind = {.rank = 4}});
    expect_what_files_make("int8");
    train_four<Lokr, ZeroStage<2>>("lokr", {.kind = {.rank = 2, .alpha = 1, .factor = 4}});
    expect_what_files_make("lokr");
    train_four<Lora, ZeroStage<3>>("dora", {.kind = {.rank = 4, .use_dora = true}});
    expect_what_files_make("dora", 1e-5);
}

TEST_F(CheckpointAdapter, LeavesUnitsWithoutMemoryButForNorms) {
    train_four<Lora, ZeroStage<2>>("lora", {.kind = {.rank = 4}});
    train_four<Lora, ZeroStage<2>>("dora", {.kind = {.rank = 4, .use_dora = true}});
    if (comm.rank() != 0) return;
    const auto has_memory = [&](const std::string& run) {
        const auto model = base();
        train::merge_checkpoint_adapter(*model, train::find_checkpoint(root / run));
        const at::Tensor weight = model->named_parameters()["transformer_blocks.0.attn.to_q.weight"];
        return weight.storage().nbytes() > 0;
    };
    EXPECT_FALSE(has_memory("lora"));
    EXPECT_TRUE(has_memory("dora"));
}

TEST_F(CheckpointAdapter, WhereMoreThanAdaptersWasTrainedItIsRefused) {
    using Trained = Trainer<Flux, Adapter<Lora>, Ema<>, ZeroStage<2>>;
    auto given = adapter_options<Trained>(2);
    in_session("run", [&](Session& session) {
        torch::manual_seed(1);
        Trained trainer{session, std::make_shared<Flux>(strata_test::small_flux_options()), given};
        trainer.set_trainable([](std::string_view name) {
            return name == "x_embedder.weight" || name.find(".lora.") != std::string_view::npos;
        });
        trainer.fit(FunctionSource{strata_test::some_latents, 10, 2});
    });
    comm.barrier();
    if (comm.rank() != 0) return;
    const Error error =
        error_of([&] { train::merge_checkpoint_adapter(*base(), train::find_checkpoint(root / "run")); });
    EXPECT_EQ(error.code(), Errc::checkpoint_mismatch) << error.what();
    EXPECT_NE(error.problem().find("x_embedder.weight"), std::string::npos) << error.what();
}

}  // namespace
