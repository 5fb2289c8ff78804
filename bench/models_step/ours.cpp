// bench/models_step/ours.cpp - is a step of real blocks faster here than in PyTorch eager, and does it take less memory?
//
//   bench/run.sh models_step [--rounds N] [--steps N] [--cases flux-fp32,sdxl-bf16]
//
// Ours and the peer's take turns: in every round each builds its model, steps, and drops it, because two of Flux in
// fp32 do not fit into 24 GiB at once. Losses of the first steps are compared before a time is printed. run.sh measures peak
// memory before, in processes of their own.

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <malloc.h>

#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/models/wide_products.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/tensor_memory.hpp>
#include <strata/zero/engine.hpp>

#include "../measure.hpp"
#include "blocks.hpp"

namespace {

using namespace strata;

constexpr double lr = 1e-5;
constexpr int first_steps = 3;  ///< of which losses are compared, and peaks taken

/// Seconds of a step's parts, and the loss that it began with.
struct Step {
    double forward = 0;
    double backward = 0;
    double update = 0;
    double loss = 0;
    double cpu_passes = 0;  ///< processor time of forward and backward, all threads
    double cpu_whole = 0;   ///< that of the step
    [[nodiscard]] double passes() const { return forward + backward; }
    [[nodiscard]] double whole() const { return forward + backward + update; }
};
using Training = std::function<Step()>;

/// Processor time of this process.
double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Model, class Format>
Training training() {
    using Engine = zero::Engine<Setup<ZeroStage<2>, Precision<Format>>, comm::SelfComm>;
    struct Parts {
        explicit Parts(at::ScalarType type) : model{type}, engine{comm, zero::parameters_of(model), {}} {}
        comm::SelfComm comm;
        Model model;
        Engine engine;
    };
    const auto parts = std::make_shared<Parts>(std::is_same_v<Format, Fp32> ? at::kFloat : at::kBFloat16);
    return [parts] {
        Step step;
        at::Tensor loss;
        const double begin = cpu_seconds();
        step.forward = bench::seconds_of([&] { loss = parts->model.loss(); });
        step.backward = bench::seconds_of([&] { parts->engine.backward(loss); });
        step.cpu_passes = cpu_seconds() - begin;
        step.update = bench::seconds_of([&] { parts->engine.step(lr); });
        step.cpu_whole = cpu_seconds() - begin;
        step.loss = loss.template item<double>();
        return step;
    };
}

struct Case {
    std::string key;
    std::string name;
    bool is_bf16;
    std::function<Training()> build;
    std::vector<Step> first{}, peer_first{};
    std::vector<Step> steps{}, peer_steps{};
};

std::vector<Case> all_cases() {
    const std::string flux = "Flux, 1 double and 2 single blocks, 256 + 128 tokens";
    const std::string sdxl = "SDXL, down block of 640 channels, 32 x 32 positions";
    return {{"flux-fp32", flux + ", fp32", false, training<bench::Flux, Fp32>},
            {"flux-bf16", flux + ", bf16", true, training<bench::Flux, PureBf16>},
            {"sdxl-fp32", sdxl + ", fp32", false, training<bench::Sdxl, Fp32>},
            {"sdxl-bf16", sdxl + ", bf16", true, training<bench::Sdxl, PureBf16>}};
}

/// Steps of the peer; CASE builds it and "-" drops it.
Training peer_training(bench::PeerProcess& peer, const std::string& key) {
    peer.say(key);
    const std::shared_ptr<void> end{nullptr, [&peer](void*) { peer.say("-"); }};
    return [&peer, end] {
        peer.say("1");
        std::istringstream line{peer.hear()};
        Step step;
        if (!(line >> step.forward >> step.backward >> step.update >> step.loss >> step.cpu_passes >> step.cpu_whole)) {
            std::fprintf(stderr, "the peer has died\n");
            std::exit(1);
        }
        return step;
    };
}

/// A round of one side.
void run(const std::function<Training()>& build, int count, std::vector<Step>& first, std::vector<Step>& steps) {
    {
        const Training training = build();
        if (first.empty()) {
            for (int i = 0; i < first_steps; ++i) first.push_back(training());
        } else {
            training();  // warms up
        }
        for (int i = 0; i < count; ++i) steps.push_back(training());
    }
    malloc_trim(0);
}

/// Whether losses agree. In bf16 that of the first step alone: updates are rounded by chance here, while the peer rounds to
/// the nearest number and so loses most of them.
bool verified(const Case& c) {
    bool right = true;
    for (std::size_t i = 0; i < c.first.size(); ++i) {
        const double apart = std::abs(c.first[i].loss - c.peer_first[i].loss) / std::abs(c.peer_first[i].loss);
        // libtorch's plain loops, which the peer has on such a CPU, sum in bf16.
        const double of_bf16 = strata::models::bf16_products_are_slow() ? 0.06 : 0.01;
        const double bound = c.is_bf16 ? of_bf16 : 1e-4;
        const bool fits = apart < bound || (c.is_bf16 && i > 0);  // false for NaN
        std::fprintf(stderr, "%s, step %zu: loss %.6f, peer's %.6f%s\n", c.key.c_str(), i, c.first[i].loss,
                     c.peer_first[i].loss, fits ? "" : ": they differ");
        right = right && fits;
    }
    return right;
}

std::vector<double> values(const std::vector<Step>& steps, const std::function<double(const Step&)>& what) {
    std::vector<double> all;
    for (const Step& step : steps) all.push_back(what(step));
    return all;
}

void print(const Case& c, const std::map<std::string, std::array<double, 2>>& peaks, const std::string& version) {
    const auto ours = [&](const auto& what) { return bench::median(values(c.steps, what)); };
    std::printf(
        "{\"bench\":\"models_step\",\"case\":\"%s\",\"ours\":%.3f,\"unit\":\"s/step\",\"forward\":%.3f,"
        "\"backward\":%.3f,\"update\":%.3f",
        c.name.c_str(), ours(&Step::whole), ours(&Step::forward), ours(&Step::backward), ours(&Step::update));
    if (!c.peer_steps.empty()) {
        const auto theirs = [&](const auto& what) { return bench::median(values(c.peer_steps, what)); };
        const auto ratio = [&](const auto& what) {
            return bench::median_ratio(values(c.peer_steps, what), values(c.steps, what));
        };
        std::printf(
            ",\"peer\":%.3f,\"peer_name\":\"torch %s eager\",\"peer_forward\":%.3f,\"peer_backward\":%.3f,"
            "\"peer_update\":%.3f,\"ratio_passes\":%.3f,\"bar_passes\":%.1f,\"ratio\":%.3f,\"bar\":1.2,"
            "\"cpu_ratio_passes\":%.3f,\"cpu_ratio\":%.3f",
            theirs(&Step::whole), version.c_str(), theirs(&Step::forward), theirs(&Step::backward),
            theirs(&Step::update), ratio(&Step::passes), c.is_bf16 ? 1.2 : 1.0, ratio(&Step::whole),
            ratio(&Step::cpu_passes), ratio(&Step::cpu_whole));
    }
    if (const auto peak = peaks.find(c.key); peak != peaks.end())
        std::printf(",\"peak_mib\":%.0f,\"peer_peak_mib\":%.0f", peak->second[0], peak->second[1]);
    std::printf("}\n");
    std::fflush(stdout);
}

/// Peak of this process's resident memory, libraries included.
double peak_mib() {
    std::ifstream status{"/proc/self/status"};
    for (std::string word; status >> word;) {
        double kib = 0;
        if (word == "VmHWM:" && status >> kib) return kib / 1024;
    }
    return 0;
}

struct Settings {
    int rounds = 3;
    int steps = 2;
    std::vector<Case> cases;
    std::string peak_of;
    std::map<std::string, std::array<double, 2>> peaks;  // KEY OURS PEER
};

Settings settings_of(int argc, char** argv) {
    Settings settings;
    std::string wanted;
    bool understood = true;
    for (int i = 1; i < argc; i += 2) {
        const std::string flag = argv[i];
        const std::string value = i + 1 < argc ? argv[i + 1] : "";
        understood = understood && !value.empty();
        if (flag == "--rounds") {
            settings.rounds = std::atoi(value.c_str());
        } else if (flag == "--steps") {
            settings.steps = std::atoi(value.c_str());
        } else if (flag == "--cases") {
            wanted = value;
        } else if (flag == "--peak-of") {
            wanted = settings.peak_of = value;
        } else if (flag == "--peaks") {
            std::istringstream words{value};
            std::array<double, 2> both{};
            for (std::string key; words >> key >> both[0] >> both[1];) settings.peaks[key] = both;
        } else {
            understood = false;
        }
    }
    for (Case& c : all_cases())
        if (wanted.empty() || ("," + wanted + ",").find("," + c.key + ",") != std::string::npos)
            settings.cases.push_back(std::move(c));
    if (!understood || settings.rounds < 1 || settings.steps < 1 || settings.cases.empty()) {
        std::fprintf(stderr,
                     "usage: bench/run.sh models_step [--rounds N] [--steps N] [--cases KEY,KEY]; keys are "
                     "flux-fp32, flux-bf16, sdxl-fp32 and sdxl-bf16\n");
        std::exit(2);
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    strata::train::keep_tensor_memory();  // as every Session does
    Settings settings = settings_of(argc, argv);
    if (!settings.peak_of.empty()) {
        const Training training = settings.cases.front().build();
        for (int i = 0; i < first_steps; ++i) training();
        std::printf("%.0f\n", peak_mib());
        return 0;
    }
    bench::PeerProcess peer{bench::peer_command()};  // before other threads are there
    for (int round = 0; round < settings.rounds; ++round)
        for (Case& c : settings.cases) {
            const auto ours = [&] { run(c.build, settings.steps, c.first, c.steps); };
            const auto theirs = [&] {
                run([&] { return peer_training(peer, c.key); }, settings.steps, c.peer_first, c.peer_steps);
            };
            if (round % 2 == 0) ours();
            if (peer.there()) theirs();
            if (round % 2 != 0) ours();
            std::fprintf(stderr, "round %d: %s, %.3f s, peer %.3f s\n", round + 1, c.key.c_str(),
                         c.steps.back().whole(), c.peer_steps.empty() ? 0.0 : c.peer_steps.back().whole());
        }
    for (const Case& c : settings.cases)
        if (peer.there() && !verified(c)) return 1;
    for (const Case& c : settings.cases) print(c, settings.peaks, peer.version());
    return 0;
}
