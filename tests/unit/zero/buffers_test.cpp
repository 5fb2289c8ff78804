// A model's buffers: which there are, what becomes of odd ones, and the sentence for types that do not go together.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/zero/buffers.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::zero::Buffer;
using strata::zero::buffers_of;
using strata::zero::explain_mixed_types;
using strata::zero::take_buffers;

struct Model : torch::nn::Module {
    Model() {
        norm = register_module("norm", torch::nn::BatchNorm1d(4));
        table = register_buffer("table", torch::arange(6, torch::kFloat).view({2, 3}).t());
        again = register_buffer("again", table);
        nothing = register_buffer("nothing", torch::Tensor{});
    }
    torch::nn::BatchNorm1d norm{nullptr};
    torch::Tensor table, again, nothing;
};

TEST(Buffers, EachIsFoundOnceUnderItsFirstName) {
    Model model;
    std::vector<std::string> names;
    for (const Buffer& buffer : buffers_of(model)) names.push_back(buffer.name);
    EXPECT_EQ(names,
              (std::vector<std::string>{"table", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}));
}

TEST(Buffers, TheyKeepTypeStridesAndValues) {
    strata::comm::SelfComm comm;
    Model model;
    model.table = torch::Tensor{};  // the registered handle is what counts
    take_buffers(comm, buffers_of(model));
    const auto table = model.named_buffers()["table"];
    EXPECT_FALSE(table.is_contiguous());
    EXPECT_EQ(table.scalar_type(), torch::kFloat);
    EXPECT_TRUE(torch::equal(table, torch::arange(6, torch::kFloat).view({2, 3}).t()));
    EXPECT_EQ(model.norm->num_batches_tracked.scalar_type(), torch::kLong);
}

TEST(Buffers, ElementsThatShareMemoryGetTheirOwn) {
    strata::comm::SelfComm comm;
    torch::nn::Module model;
    const torch::Tensor mask = model.register_buffer("mask", torch::ones({1, 3}).expand({4, 3}));
    take_buffers(comm, buffers_of(model));
    EXPECT_TRUE(mask.is_contiguous()) << "the model's own handle";
    mask.select(0, 1).zero_();
    EXPECT_EQ(mask.sum().item<float>(), 9);
}

TEST(Buffers, WhatIsNotDenseIsRefusedByName) {
    strata::comm::SelfComm comm;
    torch::nn::Module model;
    model.register_buffer("graph", torch::eye(3).to_sparse());
    try {
        take_buffers(comm, buffers_of(model));
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_parameter);
        EXPECT_EQ(error.problem(), "the buffer graph is not dense");
    }
}

/// What libtorch says of a layer in bf16 that is given fp32.
std::string said_of(const std::vector<Buffer>& buffers, at::ScalarType parameters) {
    try {
        torch::nn::Linear layer{3, 2};
        layer->to(torch::kBFloat16);
        layer(torch::ones({1, 3}));
    } catch (const c10::Error& error) {
        try {
            explain_mixed_types(error, buffers, parameters);
        } catch (const Error& explained) {
            EXPECT_EQ(explained.code(), Errc::bad_parameter);
            return explained.problem();
        }
        return "";
    }
    return "libtorch did not mind";
}

TEST(Buffers, MixedTypesNameThoseThatDiffer) {
    std::vector<Buffer> buffers{{"a", torch::ones(1)},
                                {"b", torch::ones(1, torch::kBFloat16)},
                                {"count", torch::ones(1, torch::kLong)},
                                {"c", torch::ones(1, torch::kDouble)}};
    const std::string said = said_of(buffers, torch::kBFloat16);
    EXPECT_NE(said.find("kept in bf16, and buffers and exceptions keep their own types: a in fp32, c in fp64"),
              std::string::npos)
        << said;
    for (const char* name : {"d", "e", "f"}) buffers.push_back({name, torch::ones(1)});
    EXPECT_NE(said_of(buffers, torch::kBFloat16).find("d in fp32 and 2 more"), std::string::npos);
    EXPECT_EQ(said_of({{"a", torch::ones(1)}}, torch::kFloat), "") << "no buffer differs: libtorch's own words stay";
}

}  // namespace
