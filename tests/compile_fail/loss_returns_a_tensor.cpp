// A loss() that returns a number gets ST0013, whatever is done with the trainer.

#include <torch/torch.h>

#include <strata/strata.hpp>

using namespace strata;

struct Model : torch::nn::Module {
    using Batch = torch::Tensor;
#ifdef STRATA_BAD
    double loss(const Batch& batch) { return batch.mean().item<double>(); }
#else
    torch::Tensor loss(const Batch& batch) { return batch.mean(); }
#endif
};

void use(Session& session) {
    Trainer<Model, ZeroStage<1>> trainer{session, Model{}, {.max_steps = 3}};
    trainer.report().title = std::to_string(trainer.model().parameters().size());
    trainer.fit(FunctionSource{[](std::int64_t) { return torch::ones({1}); }, 1, 1});
}
