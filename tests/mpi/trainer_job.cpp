// A job of several ranks: mpirun -n N trainer_job CASE --output DIR. trainer_failures_test starts it and reads what it says.
//
//   forward  the last rank's model throws in step 3, while the others gather units of ZeroStage<3>
//   next     the last rank's source throws there
//   killed   the last rank is gone in step 3
//   refused  the last rank's source is refused in step 1

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>

#include <torch/torch.h>

#include <strata/strata.hpp>

namespace {

struct Net : torch::nn::Module {
    using Batch = torch::Tensor;
    struct Block : torch::nn::Module {
        torch::nn::Linear linear{4, 4};
        Block() { register_module("linear", linear); }
        torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(linear(x)); }
    };
    using Units = strata::UnitList<Block>;
    std::shared_ptr<strata::Unit<Block>> first = std::make_shared<strata::Unit<Block>>(),
                                         second = std::make_shared<strata::Unit<Block>>();
    Net() {
        register_module("first", first);
        register_module("second", second);
    }
    torch::Tensor loss(const Batch& x) {
        const auto h = first->forward(x);
        if (x.size(0) == 1) throw std::runtime_error{"one row is no batch"};
        return second->forward(h).square().mean();
    }
};

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    return strata::run(argc - 1, argv + 1, [&](strata::Session& session) {
        strata::Trainer<Net, strata::ZeroStage<3>> trainer{session,
                                                           Net{},
                                                           {.max_steps = 8,
                                                            .schedule = {.lr = 1e-2},
                                                            .collective_timeout = std::chrono::seconds{20},
                                                            .checkpoint_every = what == "forward" ? 0 : 1}};
        const bool last = session.rank() == session.world() - 1;
        trainer.fit(strata::FunctionSource{
            [&](std::int64_t i) {
                const bool now = last && i == 2;
                if (now && what == "killed") std::raise(SIGKILL);
                if (last && i == 0 && what == "refused")
                    throw strata::Error{strata::Errc::store_refused, "no right to read rows", "ask for it"};
                if (now && what == "next") throw std::runtime_error{"no more rows"};
                return torch::rand({now && what == "forward" ? 1 : 2, 4});
            },
            10, 2});
    });
}
