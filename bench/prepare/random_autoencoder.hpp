#pragma once
// bench/prepare/random_autoencoder.hpp - an encoder with the layers of SDXL's autoencoder, without attention, and random weights.

#include <cstdint>

#include <torch/torch.h>

namespace bench {

struct ResidualBlock : torch::nn::Module {
    torch::nn::GroupNorm norm1, norm2;
    torch::nn::Conv2d conv1, conv2, skip{nullptr};
    ResidualBlock(std::int64_t in, std::int64_t out)
        : norm1{register_module("norm1", torch::nn::GroupNorm(32, in))},
          norm2{register_module("norm2", torch::nn::GroupNorm(32, out))},
          conv1{register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)))},
          conv2{register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(out, out, 3).padding(1)))} {
        if (in != out) skip = register_module("skip", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1)));
    }
    torch::Tensor forward(const torch::Tensor& x) {
        const auto h = conv2(torch::silu(norm2(conv1(torch::silu(norm1(x))))));
        return (skip.is_empty() ? x : skip(x)) + h;
    }
};

/// The same weights in every process.
inline torch::nn::Sequential make_autoencoder() {
    torch::manual_seed(1);
    torch::nn::Sequential layers;
    layers->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 128, 3).padding(1)));
    std::int64_t in = 128;
    for (const std::int64_t out : {128, 256, 512, 512}) {
        layers->push_back(ResidualBlock(in, out));
        layers->push_back(ResidualBlock(out, out));
        if (layers->size() < 11)  // three of the four halve the edges
            layers->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(out, out, 3).stride(2).padding(1)));
        in = out;
    }
    layers->push_back(ResidualBlock(in, in));
    layers->push_back(ResidualBlock(in, in));
    layers->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, 8, 3).padding(1)));
    layers->eval();
    return layers;
}

}  // namespace bench
