// Gradient norms of parameters become those of layers and units.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/train/gradient_norms.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

namespace {

using strata::train::GradientNorms;
using strata::train::GradientNormsOf;
using strata::train::NamedNorm;

struct Block : torch::nn::Module {
    Block() {
        first = register_module("first", torch::nn::Linear(2, 2));
        second = register_module("second", torch::nn::Linear(2, 2));
        second->bias.requires_grad_(false);
    }
    torch::Tensor forward(const torch::Tensor& x) { return second(first(x)); }
    torch::nn::Linear first{nullptr}, second{nullptr};
};
struct Model : torch::nn::Module {
    Model() {
        scale = register_parameter("scale", torch::ones({1}));
        in = register_module("in", torch::nn::Linear(2, 2));
        block = register_module("block", std::make_shared<strata::Unit<Block>>());
    }
    torch::Tensor scale;
    torch::nn::Linear in{nullptr};
    std::shared_ptr<strata::Unit<Block>> block;
};

std::vector<NamedNorm> norms_of(GradientNormsOf of) {
    Model model;
    const auto parameters = strata::zero::parameters_of(model);
    std::vector<strata::zero::ParameterInfo> trained;
    for (const auto& parameter : parameters) {
        if (parameter.tensor.requires_grad()) trained.push_back({parameter.name, parameter.tensor.sizes().vec(), 0});
    }
    return GradientNorms{parameters, trained, of}.of_parts(std::vector<double>{1, 3, 4, 2, 3, 6});
}

TEST(GradientNorms, OfAParameterTheyStayAsTheyAre) {
    EXPECT_EQ(norms_of(GradientNormsOf::parameter), (std::vector<NamedNorm>{{"scale", 1},
                                                                            {"in.weight", 3},
                                                                            {"in.bias", 4},
                                                                            {"block.first.weight", 2},
                                                                            {"block.first.bias", 3},
                                                                            {"block.second.weight", 6}}));
}

TEST(GradientNorms, OfALayerTheSquaresAddUp) {
    const auto norms = norms_of(GradientNormsOf::layer);
    ASSERT_EQ(norms.size(), 4U);
    EXPECT_EQ(norms[0], (NamedNorm{"scale", 1})) << "a parameter of the model itself is its own layer";
    EXPECT_EQ(norms[1], (NamedNorm{"in", 5}));
    EXPECT_EQ(norms[2].name, "block.first");
    EXPECT_EQ(norms[3], (NamedNorm{"block.second", 6})) << "its bias is frozen";
}

TEST(GradientNorms, OfAUnitAllOfItIsOne) {
    EXPECT_EQ(norms_of(GradientNormsOf::unit), (std::vector<NamedNorm>{{"scale", 1}, {"in", 5}, {"block", 7}}));
}

}  // namespace
