// How a model's parameters are found: order, units, tied and frozen tensors.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

namespace {

struct Block : torch::nn::Module {
    explicit Block(int width) : linear{register_module("linear", torch::nn::Linear(width, width))} {}
    torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear(x)); }
    torch::nn::Linear linear;
};

struct Model : torch::nn::Module {
    Model() {
        embedding = register_module("embedding", torch::nn::Linear(3, 4));
        first = register_module("first", std::make_shared<strata::Unit<Block>>(4));
        second = register_module("second", std::make_shared<strata::Unit<Block>>(4));
        head = register_module("head", torch::nn::Linear(4, 3));
        own = register_parameter("own", torch::zeros({2}));
    }
    torch::nn::Linear embedding{nullptr}, head{nullptr};
    std::shared_ptr<Block> first, second;
    torch::Tensor own;
};

std::vector<std::string> names(const std::vector<strata::zero::Parameter>& parameters) {
    std::vector<std::string> result;
    for (const auto& parameter : parameters) result.push_back(parameter.name);
    return result;
}

TEST(Parameters, AreTheModelsOwnInTheOrderOfItsStateDict) {
    Model model;
    const auto parameters = strata::zero::parameters_of(model);
    std::vector<std::string> expected;
    for (const auto& item : model.named_parameters()) expected.push_back(item.key());
    EXPECT_EQ(names(parameters), expected);
    for (const auto& parameter : parameters)
        EXPECT_TRUE(parameter.tensor.is_same(model.named_parameters()[parameter.name]));
}

TEST(Parameters, AUnitNumbersItsParametersAndChangesNoName) {
    Model model;
    for (const auto& parameter : strata::zero::parameters_of(model)) {
        const int unit = parameter.name.starts_with("first.") ? 0 : parameter.name.starts_with("second.") ? 1 : -1;
        EXPECT_EQ(parameter.unit, unit) << parameter.name;
    }
}

TEST(Parameters, AUnitComputesWhatItsBlockComputes) {
    torch::manual_seed(1);
    Block block{4};
    torch::manual_seed(1);
    strata::Unit<Block> unit{4};
    const auto x = torch::randn({2, 4});
    EXPECT_TRUE(torch::equal(block.forward(x), unit.forward(x)));
}

TEST(Parameters, AUnitInsideAUnitBelongsToTheOuterOne) {
    struct Outer : torch::nn::Module {
        Outer() {
            inner = register_module("inner", std::make_shared<strata::Unit<Block>>(2));
            after = register_parameter("after", torch::zeros({1}));
        }
        std::shared_ptr<Block> inner;
        torch::Tensor after;
    };
    strata::Unit<Outer> model;
    for (const auto& parameter : strata::zero::parameters_of(model)) EXPECT_EQ(parameter.unit, 0) << parameter.name;
}

TEST(Parameters, ATensorRegisteredTwiceAppearsOnceUnderItsFirstName) {
    struct Tied : torch::nn::Module {
        Tied() {
            in = register_module("in", torch::nn::Linear(3, 3));
            tied = register_parameter("tied", in->weight);
        }
        torch::nn::Linear in{nullptr};
        torch::Tensor tied;
    };
    Tied model;
    EXPECT_EQ(names(strata::zero::parameters_of(model)), (std::vector<std::string>{"tied", "in.bias"}));
}

/// Counts the comparisons of tensors, which is the work that grew with the square of their number.
struct CountingSame {
    static inline std::int64_t calls = 0;
    bool operator()(const void* a, const void* b) const {
        ++calls;
        return a == b;
    }
};

TEST(Parameters, FindingThemTakesWorkInProportionToTheirNumber) {
    constexpr std::int64_t count = 20'000;
    torch::nn::Module model;
    for (std::int64_t i = 0; i < count; ++i) model.register_parameter("p" + std::to_string(i), torch::empty({1}));
    CountingSame::calls = 0;
    const auto parameters = strata::zero::parameters_of<CountingSame>(model);
    EXPECT_EQ(parameters.size(), static_cast<std::size_t>(count));
    EXPECT_LT(CountingSame::calls, 10 * count) << "one by one it would be " << count * (count - 1) / 2;
    EXPECT_GT(CountingSame::calls, 0) << "this counts nothing any more";
}

TEST(Parameters, ATensorOfTwoUnitsBelongsToNoneAndHasItsFirstName) {
    struct Sharing : torch::nn::Module {
        Sharing() {
            first = register_module("first", std::make_shared<strata::Unit<Block>>(3));
            second = register_module("second", std::make_shared<strata::Unit<Block>>(3));
            second->linear->register_parameter("again", first->linear->weight);
        }
        std::shared_ptr<Block> first, second;
    };
    Sharing model;
    const auto parameters = strata::zero::parameters_of(model);
    EXPECT_EQ(names(parameters), (std::vector<std::string>{"first.linear.weight", "first.linear.bias",
                                                           "second.linear.weight", "second.linear.bias"}));
    EXPECT_EQ(parameters[0].unit, -1);
    EXPECT_EQ(parameters[0].link, nullptr);
    EXPECT_EQ(parameters[1].unit, 0);
    EXPECT_EQ(parameters[3].unit, 1);
}

TEST(Parameters, FrozenOnesAreListed) {
    Model model;
    model.head->weight.requires_grad_(false);
    EXPECT_EQ(strata::zero::parameters_of(model).size(), model.parameters().size());
}

}  // namespace
