// A job of several ranks: mpirun -n N trainer_job CASE --output DIR. trainer_failures_test starts it and reads what it says.
//
//   forward  the last rank's model throws in step 3, while the others gather units of ZeroStage<3>
//   next     the last rank's source throws there
//   killed   the last rank is gone in step 3
//   refused  the last rank's source is refused in step 1
//   cuda     the last rank's GPU fails there: a message of CUDA's
//   faulty   the memory of the last rank's GPU goes bad in step 4; a further word is what a breaker does

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <strata/health/nvml.hpp>
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

/// A GPU that a script plays (tests/support/fake_nvml.cpp), and goes bad when it is told.
class PlayedGpu {
public:
    explicit PlayedGpu(const std::filesystem::path& script) : script_{script} {
        ::setenv("STRATA_FAKE_NVML", script.c_str(), 1);
        write(0);
    }
    ~PlayedGpu() {
        std::error_code none;
        std::filesystem::remove(script_, none);
    }
    [[nodiscard]] static strata::health::HealthSources sources() {
        const auto opened = strata::health::open_gpu(
            0, [](const std::string&) { return std::optional<std::string>{}; }, STRATA_FAKE_NVML_LIBRARY);
        return strata::health::sources_of(opened, {});
    }
    /// Returns when the monitor has seen it.
    void go_bad(strata::Session& session) const {
        write(12);
        while (session.health().monitor()->snapshot().breaker.failure_count == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }

private:
    void write(int errors) const {
        const auto beside = script_.string() + ".new";
        std::ofstream{beside} << "count 1\ngpu0.name NVIDIA H100\ngpu0.uuid GPU-aaaa\ngpu0.volatile_uncorrected "
                              << errors << "\n";
        std::filesystem::rename(beside, script_);
    }
    std::filesystem::path script_;
};

strata::health::BreakerPolicy policy_of(std::string_view what) {
    for (const auto& one : strata::health::breaker_policy_names)
        if (what.ends_with(one.name)) return one.value;
    return strata::health::BreakerPolicy::stop;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    return strata::run(argc - 1, argv + 1, [&](strata::Session& session) {
        const bool last = session.rank() == session.world() - 1;
        const strata::health::HealthOptions health{.breaker = policy_of(what), .poll_interval_seconds = 0.1};
        std::optional<PlayedGpu> gpu;
        if (what.starts_with("faulty")) {
            const auto script = session.output() / ".gpu";
            if (last) gpu.emplace(script);
            session.watch_health(health, last ? PlayedGpu::sources() : strata::health::HealthSources{},
                                 last ? "GPU 0 (NVIDIA H100)" : "");
        }
        strata::Trainer<Net, strata::ZeroStage<3>> trainer{session,
                                                           Net{},
                                                           {.max_steps = 8,
                                                            .schedule = {.lr = 1e-2},
                                                            .collective_timeout = std::chrono::seconds{20},
                                                            .checkpoint_every = what == "forward" ? 0 : 1,
                                                            .health = health}};
        trainer.fit(strata::FunctionSource{
            [&](std::int64_t i) {
                const bool now = last && i == 2;
                if (now && what == "killed") std::raise(SIGKILL);
                if (last && i == 0 && what == "refused")
                    throw strata::Error{strata::Errc::store_refused, "no right to read rows", "ask for it"};
                if (now && what == "next") throw std::runtime_error{"no more rows"};
                if (now && what == "cuda")
                    throw std::runtime_error{"CUDA error: an illegal memory access was encountered"};
                if (gpu && i == 3) gpu->go_bad(session);
                // The same whenever it is asked for.
                const auto numbers =
                    at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 * session.rank() + i));
                return torch::rand({now && what == "forward" ? 1 : 2, 4}, numbers);
            },
            10, 2});
    });
}
