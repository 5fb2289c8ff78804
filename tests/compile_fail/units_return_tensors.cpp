// tests/compile_fail/units_return_tensors.cpp - a unit whose forward returns what strata cannot look into gets ST0106.

#include <memory>
#include <vector>

#include <strata/zero/unit.hpp>

struct Streams {
    at::Tensor image, text;
};
#ifndef STRATA_BAD
template <class Self, class Call>
requires std::same_as<std::remove_const_t<Self>, Streams>
void visit_tensors(Self& streams, Call&& call) {
    call(streams.image);
    call(streams.text);
}
#endif

// What a torch::nn::Module has of it, without the 11 seconds of torch/torch.h.
struct Block : std::enable_shared_from_this<Block> {
    Streams forward(const Streams& streams) { return streams; }
    std::vector<at::Tensor> parameters() const { return {}; }
};

int main() {
    strata::Unit<Block> unit;
    unit.forward(Streams{});
}
