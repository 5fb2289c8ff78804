// bench/compile_cost/compositions.cpp - one composition, and with ONE_MORE_... others that differ from it in one policy each.

#include <cstdint>
#include <memory>

#include <torch/torch.h>

#include <strata/strata.hpp>

namespace {

using namespace strata;

struct Points {
    torch::Tensor x_BF;
    torch::Tensor y_B1;
};
struct Block : torch::nn::Module {
    torch::nn::Linear linear{8, 8};
    Block() { register_module("linear", linear); }
    torch::Tensor forward(const torch::Tensor& x_BF) { return linear->forward(x_BF).tanh(); }
};
struct Net : torch::nn::Module {
    using Batch = Points;
    std::shared_ptr<Unit<Block>> block = std::make_shared<Unit<Block>>();
    torch::nn::Linear head{8, 1};
    Net() {
        register_module("block", block);
        register_module("head", head);
    }
    torch::Tensor loss(const Batch& batch) {
        return (head->forward(block->forward(batch.x_BF)) - batch.y_B1).square().mean();
    }
};
struct Source {
    Points next() { return {torch::randn({4, 8}), torch::randn({4, 1})}; }
    void seek(std::int64_t) {}
    [[nodiscard]] std::int64_t samples_per_micro_batch() const { return 4; }
    [[nodiscard]] std::int64_t micro_batches_per_epoch() const { return 100; }
};

template <class... Policies>
double trained(Session& session) {
    Trainer<Net, Policies...> trainer{session, Net{}, {.max_steps = 10, .schedule = {.lr = 1e-2}}};
    return trainer.fit(Source{}).loss;
}

}  // namespace

/// What a program calls.
double all_of_them(Session& session) {
    double sum = trained<ZeroStage<2>, OffloadTarget<Cpu>>(session);
#ifdef ONE_MORE_STAGE
    sum += trained<ZeroStage<1>, OffloadTarget<Cpu>>(session);
#endif
#ifdef ONE_MORE_TIER
    sum += trained<ZeroStage<2>, OffloadTarget<Nvme>>(session);
#endif
#ifdef ONE_MORE_RULE
    sum += trained<ZeroStage<2>, OffloadTarget<Cpu>, Optimizer<Lion>>(session);
#endif
#ifdef ONE_MORE_PRECISION
    sum += trained<ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>>(session);
#endif
#ifdef ONE_MORE_AVERAGE
    sum += trained<ZeroStage<2>, OffloadTarget<Cpu>, Ema<>>(session);
#endif
    return sum;
}
