#pragma once
// tests/mpi/whole_weights.hpp - all weights of a model that an engine trains, as numbers to compare.

#include <vector>

#include <torch/torch.h>

namespace strata_test {

/// fp32, one parameter after the other. Collective.
template <class AnyEngine>
std::vector<float> whole_weights(AnyEngine& engine, const torch::nn::Module& model) {
    std::vector<float> weights;
    engine.with_whole_model([&] {
        for (const auto& parameter : model.parameters()) {
            const auto values = parameter.detach().contiguous();
            weights.insert(weights.end(), values.template data_ptr<float>(),
                           values.template data_ptr<float>() + values.numel());
        }
    });
    return weights;
}

}  // namespace strata_test
