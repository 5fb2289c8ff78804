// bench/step_time/ours.cpp - what does a training step cost on two ranks, against the same step without communication?
//
//   bench/run.sh step_time [--steps N] [--rounds N] [--cases stage0,stage2,ddp] [--nvme-path FOLDER]
//
// Every case is built beside the reference (the same engine at stage 0 on each rank alone, both ranks at once), and the
// two take turns step by step: the machine's speed drifts by tens of percent, neighbouring steps share it. A time is
// that of the slower rank. Ratios are medians over the pairs of all rounds; another case is first in every round. A
// case's first steps are run without the reference: they give its peak memory and the losses, which must agree between
// all cases before a time is printed.

#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
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

namespace {

using namespace strata;

constexpr std::int64_t samples = 4;  // of 256 tokens, a rank
constexpr double lr = 1e-3;
constexpr int verified_steps = 4;
constexpr double tolerance = 1e-4;

/// One step on all ranks.
struct Sample {
    double seconds = 0;  ///< of the slower rank
    std::array<double, 2> loss{};
    double peak_mib = 0;  ///< the larger one's
};
using Step = std::function<Sample()>;

struct Case {
    std::string key;
    std::string name;
    bool communicates = true;
    bool is_peer = false;
    std::function<Step()> build;  // collective

    std::vector<std::array<double, 2>> losses{};
    double peak_mib = 0;
    std::vector<double> seconds{};
    std::vector<double> reference{};  // seconds of the reference's step before or after
};

struct Settings {
    int steps = 4;
    int rounds = 3;
    std::string cases;
    std::filesystem::path nvme_path;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_ratio(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] /= b[i];
    return median(std::move(a));
}

/// Makes the kernel count the peak of resident memory from here on.
void reset_peak() {
    ::malloc_trim(0);
    std::ofstream{"/proc/self/clear_refs"} << "5";
}
double peak_mib() {
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
          model_{std::make_unique<bench::Gpt>(bench::GptShape{})},
          loop_{make(*model_)},
          ids_{bench::random_tokens({}, samples, 1000 + static_cast<std::uint64_t>(world.rank()))} {}

    Sample step() {
        using Clock = std::chrono::steady_clock;
        world_.barrier();
        const auto start = Clock::now();
        const torch::Tensor loss = model_->loss(ids_);
        loop_->backward(loss);
        loop_->step(lr);
        const std::array mine{std::chrono::duration<double>(Clock::now() - start).count(), loss.item<double>(),
                              peak_mib()};
        std::array<double, 6> all{};
        world_.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
        return {std::max(all[0], all[3]), {all[1], all[4]}, std::max(all[2], all[5])};
    }

private:
    comm::MpiComm& world_;
    std::unique_ptr<bench::Gpt> model_;
    std::unique_ptr<Loop> loop_;  // ends before the model
    torch::Tensor ids_;
};

template <class Loop, class Make>
Step training(comm::MpiComm& world, const Make& make) {
    return [training = std::make_shared<Training<Loop>>(world, make)] { return training->step(); };
}

/// Engine<Setup<Ps...>> over `comm`.
template <class Comm, class... Ps>
Step engine(comm::MpiComm& world, Comm& comm, const std::filesystem::path& nvme_path) {
    using Engine = zero::Engine<Setup<Ps...>, Comm>;
    return training<Engine>(world, [&](bench::Gpt& model) {
        typename Engine::Options options;
        options.nvme_path = nvme_path;
        return std::make_unique<Engine>(comm, zero::parameters_of(model), options);
    });
}

/// The cases that this version of strata has: a composition that a rule refuses is left out.
class Cases {
public:
    Cases(comm::MpiComm& world, const Settings& settings, bench::PeerProcess& peer, bool has_peer)
        : world_{world}, settings_{settings}, peer_{peer} {
        add({"bare", "no communication, no engine", false, false, [this] {
                 return training<by_hand::Loop>(
                     world_, [](bench::Gpt& model) { return std::make_unique<by_hand::Loop>(model.parameters()); });
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
        const std::string wanted = "," + settings_.cases + ",";
        if (settings_.cases.empty() || wanted.find("," + found.key + ",") != std::string::npos)
            cases_.push_back(std::move(found));
    }
    template <class... Ps>
    void add_stage(const char* key, const char* name) {
        if constexpr (std::same_as<broken_rule_t<Ps...>, rule::None>) {
            add({key, name, true, false,
                 [this] { return engine<comm::MpiComm, Ps...>(world_, world_, settings_.nvme_path); }});
        }
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
        std::array<double, 4> said{};
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
        return {said[0], {said[1], said[2]}, said[3]};
    }

    comm::MpiComm& world_;
    comm::SelfComm alone_;
    const Settings& settings_;
    bench::PeerProcess& peer_;
    std::vector<Case> cases_;
};

void run(Case& c, Cases& cases, const Settings& settings, bool first_time) {
    reset_peak();
    const Step step = c.build();
    for (int i = 0; i < (first_time ? verified_steps : 1); ++i) {
        const Sample sample = step();
        if (!first_time) continue;
        c.losses.push_back(sample.loss);
        c.peak_mib = sample.peak_mib;
    }
    const Step reference = cases.reference();
    reference();
    for (int i = 0; i < settings.steps; ++i) {
        const bool before = i % 2 == 0;
        if (before) c.reference.push_back(reference().seconds);
        c.seconds.push_back(step().seconds);
        if (!before) c.reference.push_back(reference().seconds);
    }
}

/// Largest difference between the losses of two cases.
double difference(const Case& a, const Case& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.losses.size(); ++i) {
        for (std::size_t rank = 0; rank < 2; ++rank)
            largest = std::max(largest, std::abs(a.losses[i][rank] - b.losses[i][rank]));
    }
    return std::isfinite(a.losses.back()[0] + b.losses.back()[0]) ? largest : INFINITY;
}

/// Cases that communicate must agree, those that do not must, and the two kinds must not.
bool verified(const std::vector<Case>& cases) {
    bool right = true;
    for (std::size_t i = 1; i < cases.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const double d = difference(cases[i], cases[j]);
            if ((d <= tolerance) == (cases[i].communicates == cases[j].communicates)) continue;
            std::printf("losses of \"%s\" and \"%s\" differ by %.2g\n", cases[i].name.c_str(), cases[j].name.c_str(),
                        d);
            right = false;
        }
    }
    for (const Case& c : cases) {
        std::printf("%-40s losses of rank 0:", c.name.c_str());
        for (const auto& loss : c.losses) std::printf(" %.6f", loss[0]);
        std::printf("\n");
    }
    return right;
}

void print(const std::vector<Case>& cases, const std::string& peer_version) {
    const Case* peer = nullptr;  // the faster of the two that communicate
    const auto relative = [](const Case& c) { return median_ratio(c.seconds, c.reference); };
    for (const Case& c : cases) {
        if (c.is_peer && c.communicates && (peer == nullptr || relative(c) < relative(*peer))) peer = &c;
    }
    for (const Case& c : cases) {
        std::printf("{\"bench\":\"step_time\",\"case\":\"%s\",\"%s\":%.4f,\"unit\":\"s/step\",", c.name.c_str(),
                    c.is_peer ? "peer" : "ours", median(c.seconds));
        if (c.is_peer) std::printf("\"peer_name\":\"torch %s, gloo\",", peer_version.c_str());
        if (!c.is_peer && peer != nullptr)
            std::printf("\"peer\":%.4f,\"peer_name\":\"%s, torch %s, gloo\",\"ratio\":%.2f,", median(peer->seconds),
                        peer->name.c_str(), peer_version.c_str(), relative(*peer) / relative(c));
        std::printf(
            "\"limit\":%.4f,\"limit_name\":\"the same step without communication\",\"of_limit\":%.3f,"
            "\"over_limit_percent\":%.1f,\"peak_mib_a_rank\":%.0f}\n",
            median(c.reference), 1 / relative(c), 100 * (relative(c) - 1), c.peak_mib);
    }
}

/// Only rank 0 has a peer, which starts its second rank itself.
std::vector<std::string> peer_command() {
    const char* const python = std::getenv("BENCH_PEER_PYTHON");
    const char* const script = std::getenv("BENCH_PEER_SCRIPT");
    const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (python == nullptr || script == nullptr || rank == nullptr || std::strcmp(rank, "0") != 0) return {};
    return {python, script, std::to_string(samples), std::to_string(lr)};
}

Settings settings_of(int argc, char** argv) {
    Settings settings;
    settings.nvme_path = std::filesystem::temp_directory_path();
    for (int i = 1; i < argc; i += 2) {
        const std::string flag = argv[i];
        const char* const value = i + 1 < argc ? argv[i + 1] : "";
        if (flag == "--steps") {
            settings.steps = std::atoi(value);
        } else if (flag == "--rounds") {
            settings.rounds = std::atoi(value);
        } else if (flag == "--cases") {
            settings.cases = value;
        } else if (flag == "--nvme-path") {
            settings.nvme_path = value;
        } else {
            settings.rounds = 0;
        }
    }
    if (settings.steps < 1 || settings.rounds < 1) {
        std::fprintf(stderr, "usage: step_time [--steps N] [--rounds N] [--cases KEY,KEY] [--nvme-path FOLDER]\n");
        std::exit(2);
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const Settings settings = settings_of(argc, argv);
    bench::PeerProcess peer{peer_command()};  // before MPI starts threads
    comm::MpiComm world;
    bool has_peer = peer.there();
    world.broadcast(std::as_writable_bytes(std::span{&has_peer, 1}), 0);
    if (world.world() != 2) {
        std::fprintf(stderr, "step_time is about 2 ranks: bench/run.sh step_time\n");
        world.abort(2);
    }
    at::set_num_threads(1);
    Cases cases{world, settings, peer, has_peer};
    for (int round = 0; round < settings.rounds; ++round) {
        for (std::size_t i = 0; i < cases.all().size(); ++i) {
            Case& c = cases.all()[(i + static_cast<std::size_t>(round)) % cases.all().size()];
            run(c, cases, settings, round == 0);
            if (world.rank() == 0)
                std::fprintf(stderr, "round %d: %s, %.3f s, %.3f of no communication\n", round + 1, c.name.c_str(),
                             c.seconds.back(), c.seconds.back() / c.reference.back());
        }
    }
    if (world.rank() == 0) {
        std::printf("%lld parameters, %lld x 256 tokens a rank, 2 ranks, one thread a rank, transport: %s\n",
                    static_cast<long long>(bench::GptShape{}.numel()), static_cast<long long>(samples),
                    world.transport().c_str());
        const bool right = verified(cases.all());
        std::fflush(stdout);
        if (!right) world.abort(1);
        print(cases.all(), peer.version());
    }
    return 0;
}
