// A model must say what it learns from: without loss(batch) there is one sentence, whatever is done with the trainer.

#include <torch/torch.h>

#include <strata/strata.hpp>

using namespace strata;

struct Model : torch::nn::Module {
    using Batch = torch::Tensor;
#ifndef STRATA_BAD
    torch::Tensor loss(const Batch& batch) { return batch.mean(); }
#endif
};

void use(Session& session) {
    Trainer<Model, ZeroStage<1>> trainer{session, Model{}, {.max_steps = 3}};
    trainer.every(1, [](const train::StepMetrics&) {});
    trainer.report().title = std::to_string(trainer.model().parameters().size());
    trainer.fit(FunctionSource{[](std::int64_t) { return torch::ones({1}); }, 1, 1});
}
