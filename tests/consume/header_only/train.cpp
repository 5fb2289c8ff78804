// tests/consume/header_only/train.cpp - models, and trainers of them with most policies, compiled with every warning as an error: by the
// compiler of the build in consume/header_only, and as far as syntax goes by clang in compile_time/clang.

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <torch/torch.h>

#include <strata/strata.hpp>
#include <strata/testing/object_store_conformance.hpp>
#include <strata/testing/tier_conformance.hpp>

#ifdef STRATA_COMPILED
#error "bodies are to be seen here: strata::strata must be header-only"
#endif

namespace {

struct Gains : torch::nn::Module {
    using Batch = torch::Tensor;
    torch::Tensor gains = register_parameter("gains", torch::ones({4}));
    torch::Tensor loss(const Batch& batch) { return (gains * batch - 2 * batch).square().mean(); }
};

struct Half : torch::nn::Module {
    torch::nn::Linear map = register_module("map", torch::nn::Linear(4, 4));
    torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(map(x)); }
};

struct Whole : torch::nn::Module {
    using Batch = torch::Tensor;
    using Units = strata::UnitList<Half>;
    std::vector<std::shared_ptr<strata::Unit<Half>>> blocks;
    Whole() {
        for (int i = 0; i < 2; ++i)
            blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<strata::Unit<Half>>()));
    }
    torch::Tensor loss(const Batch& batch) {
        torch::Tensor x = batch.to(torch::kBFloat16);
        for (const auto& block : blocks) x = block->forward(x);
        return (x - batch).square().mean();
    }
};

template <class Model, class... Policies>
strata::FitResult two_steps(strata::Session& session, const char* name) {
    static_assert(
        std::is_same_v<strata::trainer_for_t<Model, strata::Setup<Policies...>>, strata::Trainer<Model, Policies...>>);
    strata::Trainer<Model, Policies...> trainer{
        session, Model{}, {.max_steps = 2, .engine = {.tiers = {.nvme_path = session.output()}}, .name = name}};
    trainer.every(1, [](const strata::train::StepMetrics&) {});
    trainer.report().title = trainer.folder().string();
    return trainer.fit(strata::FunctionSource{[](std::int64_t) { return torch::ones({4, 4}); }, 1, 4});
}

}  // namespace

/// Of three trainers of two steps each, what the last one said.
strata::FitResult train_two_steps(strata::Session& session) {
    using namespace strata;
    two_steps<Gains, ZeroStage<1>, OffloadTarget<Cpu>, Optimizer<Lamb>, Precision<Fp16>>(session, "in_memory");
    two_steps<Whole, ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>, Optimizer<Lion>, Precision<Bf16>,
              Recompute<Blocks>, Ema<Cpu>, Backend<Local>>(session, "on_disk");
    return two_steps<Gains>(session, "plain");
}
