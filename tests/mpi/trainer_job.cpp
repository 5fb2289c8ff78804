// A job of several ranks: mpirun -n N trainer_job CASE --output DIR. trainer_failures_test starts it and reads what it says.
//
//   forward  the last rank's model throws in step 3, while the others gather units of ZeroStage<3>
//   next     the last rank's source throws there
//   killed   the last rank is gone in step 3
//   refused  the last rank's source is refused in step 1
//   cuda     the last rank's GPU fails there: a message of CUDA's
//   no-gpu   the same message, where all compute on the CPU
//   words    what the last rank throws there has words of CUDA's in a path
//   nccl     the last rank's GPU fails, and the others see by NCCL that it is gone
//   faulty   the last rank's GPU goes bad in step 4: its memory, or with drain its power supply; a further word is what a breaker does
//   early    its memory does in step 1, before there is a checkpoint
//   late     its memory does in the last step, behind which a run leaves its weights
//   disks    says which folders are watched

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
        write("");
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
    ///
    ///   answer  of its driver from now on
    void go_bad(strata::Session& session, const std::string& answer) const {
        write("gpu0." + answer);
        while (session.health().monitor()->snapshot().breaker.failure_count == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }

private:
    void write(const std::string& first) const {
        const auto beside = script_.string() + ".new";
        std::ofstream{beside} << first << "\ncount 1\ngpu0.name NVIDIA H100\ngpu0.uuid GPU-aaaa\n"
                              << "gpu0.volatile_uncorrected 0\ngpu0.throttle 0\n";
        std::filesystem::rename(beside, script_);
    }
    std::filesystem::path script_;
};

/// A failure that parts the ranks, as NcclComm throws it: on the last rank why, on the others that it is gone.
[[noreturn]] void fail_in_nccl(bool last) {
    throw strata::Error{strata::Errc::rank_failed,
                        last ? "cudaStreamQuery failed on GPU 0 of rank 1: unspecified launch failure"
                             : "ncclAllGather failed on rank 0: remote process exited or there was a network error",
                        "look at the other ranks"};
}

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
        const std::int64_t goes_bad_at = what.starts_with("faulty")  ? 3
                                         : what.starts_with("early") ? 0
                                         : what.starts_with("late")  ? 7
                                                                     : -1;
        if (goes_bad_at >= 0 || what == "cuda" || what == "words" || what == "nccl") {
            gpu.emplace(session.output() / (".gpu" + std::to_string(session.rank())));
            session.watch_health(health, PlayedGpu::sources(), "GPU 0 (NVIDIA H100)");
        }
        if (what == "nccl") fail_in_nccl(last);
        const std::filesystem::path of_state = what == "disks" ? "/usr" : "";
        strata::Trainer<Net, strata::ZeroStage<3>> trainer{session,
                                                           Net{},
                                                           {.max_steps = 8,
                                                            .schedule = {.lr = 1e-2},
                                                            .engine = {.tiers = {.nvme_path = of_state}},
                                                            .collective_timeout = std::chrono::seconds{20},
                                                            .checkpoint_every = what == "forward" ? 0 : 1,
                                                            .exported = {.weights = what == "late-stop"},
                                                            .health = health}};
        if (what == "disks") {
            const strata::health::HealthMonitor& monitor = *session.health().monitor();
            while (monitor.snapshot().polls == 0) std::this_thread::sleep_for(std::chrono::milliseconds{10});
            for (const auto& disk : monitor.snapshot().host.space) session.say("watches " + disk.folder.string());
            return;
        }
        trainer.fit(strata::FunctionSource{
            [&](std::int64_t i) {
                const bool now = last && i == 2;
                if (now && what == "killed") std::raise(SIGKILL);
                if (last && i == 0 && what == "refused")
                    throw strata::Error{strata::Errc::store_refused, "no right to read rows", "ask for it"};
                if (now && what == "next") throw std::runtime_error{"no more rows"};
                if (now && (what == "cuda" || what == "no-gpu"))
                    throw std::runtime_error{"CUDA error: an illegal memory access was encountered"};
                if (now && what == "words")
                    throw strata::Error{strata::Errc::io_failed, "rank 1 cannot read '/runs/cuda error: 7/rows'",
                                        "look at that disk"};
                if (last && i == goes_bad_at)
                    gpu->go_bad(session, what.ends_with("drain") ? "throttle 128" : "volatile_uncorrected 12");
                // The same whenever it is asked for.
                const auto numbers =
                    at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(100 * session.rank() + i));
                return torch::rand({now && what == "forward" ? 1 : 2, 4}, numbers);
            },
            10, 2});
    });
}
