#pragma once
// bench/step_time/cases.hpp - the trainings that step_time measures, one step on two ranks at a time.

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

#include "../models/gpt.hpp"
#include "../peer_process.hpp"
#include "by_hand.hpp"

namespace bench {

using namespace strata;

inline constexpr std::int64_t samples = 4;  // of 256 tokens, a rank
inline constexpr double lr = 1e-3;

/// One step on all ranks.
struct Sample {
    double seconds = 0;  ///< of the slower rank
    std::array<double, 2> loss{};
    double cpu_seconds = 0;  ///< of both together, all threads
    double peak_mib = 0;     ///< the larger one's, since it started
};
using Step = std::function<Sample()>;

/// A training, and what was measured of it.
struct Case {
    std::string key;
    std::string name;
    bool communicates = true;
    bool is_peer = false;
    std::function<Step()> build;  // collective

    std::vector<std::array<double, 2>> losses{};
    std::vector<Sample> steps{};
    std::vector<Sample> reference{};  // its step before or after
};

/// Processor time of this process.
inline double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Peak of this process's resident memory, libraries included.
inline double peak_mib() {
    std::ifstream status{"/proc/self/status"};
    for (std::string word; status >> word;) {
        double kib = 0;
        if (word == "VmHWM:" && status >> kib) return kib / 1024;
    }
    return 0;
}

/// A model, and what trains it: an Engine or by_hand::Loop.
template <class Loop>
class Training {
public:
    template <class Make>
    Training(comm::MpiComm& world, const Make& make)
        : world_{world},
          model_{std::make_unique<Gpt>(GptShape{})},
          loop_{make(*model_)},
          ids_{random_tokens({}, samples, 1000 + static_cast<std::uint64_t>(world.rank()))} {}

    Sample step() {
        using Clock = std::chrono::steady_clock;
        world_.barrier();
        const auto start = Clock::now();
        const double cpu_start = cpu_seconds();
        const torch::Tensor loss = model_->loss(ids_);
        loop_->backward(loss);
        loop_->step(lr);
        const std::array mine{std::chrono::duration<double>(Clock::now() - start).count(), cpu_seconds() - cpu_start,
                              loss.item<double>(), peak_mib()};
        std::array<double, 8> all{};
        world_.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
        return {std::max(all[0], all[4]), {all[2], all[6]}, all[1] + all[5], std::max(all[3], all[7])};
    }

private:
    comm::MpiComm& world_;
    std::unique_ptr<Gpt> model_;
    std::unique_ptr<Loop> loop_;  // ends before the model
    torch::Tensor ids_;
};

template <class Loop, class Make>
Step training(comm::MpiComm& world, const Make& make) {
    return [training = std::make_shared<Training<Loop>>(world, make)] { return training->step(); };
}

/// For state on disk.
struct Disk {
    std::filesystem::path path;
    std::size_t budget_bytes = 0;  ///< of a rank's buffers; 0: the engine's choice
};

/// Engine<Setup<Ps...>> over `comm`.
template <class Comm, class... Ps>
Step engine(comm::MpiComm& world, Comm& comm, const Disk& disk) {
    using Engine = zero::Engine<Setup<Ps...>, Comm>;
    return training<Engine>(world, [&](Gpt& model) {
        typename Engine::Options options;
        options.tiers.nvme_path = disk.path;
        options.tiers.state.budget_bytes = disk.budget_bytes;
        return std::make_unique<Engine>(comm, zero::parameters_of(model), options);
    });
}

/// What is measured, and the reference.
class Cases {
public:
    ///   wanted  keys of cases; none: all
    ///   peer    on rank 0; elsewhere it is not looked at
    Cases(comm::MpiComm& world, const std::vector<std::string>& wanted, Disk disk, PeerProcess& peer, bool has_peer)
        : world_{world}, wanted_{wanted}, disk_{std::move(disk)}, peer_{peer} {
        add({"bare", "no communication, no engine", false, false, [this] {
                 return training<by_hand::Loop>(
                     world_, [](Gpt& model) { return std::make_unique<by_hand::Loop>(model.parameters()); });
             }});
        add_stage<ZeroStage<0>>("stage0", "ZeroStage<0>");
        add_stage<ZeroStage<1>>("stage1", "ZeroStage<1>");
        add_stage<ZeroStage<2>>("stage2", "ZeroStage<2>");
        add_stage<ZeroStage<2>, OffloadTarget<Nvme>>("stage2nvme", "ZeroStage<2>, OffloadTarget<Nvme>");
        add_stage<ZeroStage<3>>("stage3", "ZeroStage<3>");
        add_stage<ZeroStage<3>, OffloadTarget<Nvme>>("stage3nvme", "ZeroStage<3>, OffloadTarget<Nvme>");
        if (!has_peer) return;
        add_peer("alone", "torch, no communication", false);
        add_peer("ddp", "torch DDP", true);
        add_peer("zero", "torch DDP and ZeroRedundancyOptimizer", true);
    }
    std::vector<Case>& all() { return cases_; }
    Step reference() { return engine<comm::SelfComm, ZeroStage<0>>(world_, alone_, {}); }

private:
    void add(Case found) {
        if (wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), found.key) != wanted_.end())
            cases_.push_back(std::move(found));
    }
    template <class... Ps>
    void add_stage(const char* key, const char* name) {
        add({key, name, true, false, [this] { return engine<comm::MpiComm, Ps...>(world_, world_, disk_); }});
    }
    void add_peer(const char* key, const char* name, bool communicates) {
        add({key, name, communicates, true, [this, key = std::string{key}] {
                 if (world_.rank() == 0) peer_.say(key);
                 // The deleter lets the peer free its model.
                 const std::shared_ptr<void> end{nullptr, [this](void*) {
                                                     if (world_.rank() == 0) peer_.say("-");
                                                 }};
                 return [this, end] { return peer_step(); };
             }});
    }
    Sample peer_step() {
        std::array<double, 5> said{};
        if (world_.rank() == 0) {
            peer_.say("1");
            std::istringstream line{peer_.hear()};
            for (double& value : said) line >> value;
            if (!line) {
                std::fprintf(stderr, "the peer has died\n");
                world_.abort(1);
            }
        }
        world_.broadcast(std::as_writable_bytes(std::span{said}), 0);
        return {said[0], {said[2], said[3]}, said[1], said[4]};
    }

    comm::MpiComm& world_;
    comm::SelfComm alone_;
    std::vector<std::string> wanted_;
    Disk disk_;
    PeerProcess& peer_;
    std::vector<Case> cases_;
};

}  // namespace bench
