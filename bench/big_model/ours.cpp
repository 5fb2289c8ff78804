// bench/big_model/ours.cpp - does a model train whose state is four times the memory of this machine's small half?
//
//   bench/run.sh big_model [--swap FOLDER] [--layers N] [--width D] [--heads H] [--vocabulary V] [--tokens T]
//                          [--samples B] [--steps N] [--threads N] [--limit-gib G]
//
// A GPT of 1.64 billion parameters (GPT-2 XL with a head of its own) in bf16 with AdamW takes full-rank steps in one
// process: parameter shards, master weights and moments are files, what is in memory is a gradient of 2 bytes a
// parameter and a few windows. Takes some minutes and 23 GB of disk. First a small model is trained by the same code
// and by ZeroStage<2> in memory: losses must be equal bit by bit. The exit status is 1 when they are not, when the loss
// of the repeated batch does not fall, or when resident memory was ever above the limit.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>

#include "../models/gpt.hpp"

namespace {

using namespace strata;

using OnDisk = Setup<Precision<Bf16>, ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>, Recompute<Blocks>>;
using InMemory = Setup<Precision<Bf16>, ZeroStage<2>>;

struct Settings {
    bench::GptShape shape{
        .width = 1600, .heads = 25, .layers = 48, .vocabulary = 50257, .context = 128, .dtype = torch::kBFloat16};
    std::int64_t samples = 1;
    int steps = 4;
    int threads = 2;
    double limit_gib = 6;
    double lr = 1e-4;
    std::filesystem::path swap = ".";
};

/// Of a line like "VmRSS:   123 kB" or "read_bytes: 123".
double value_in(const char* file, const std::string& name) {
    std::ifstream lines{file};
    for (std::string word; lines >> word;) {
        double value = 0;
        if (word == name && lines >> value) return value;
    }
    return 0;
}
double resident_gib() { return value_in("/proc/self/status", "VmRSS:") / (1 << 20); }
double peak_gib() { return value_in("/proc/self/status", "VmHWM:") / (1 << 20); }

/// Prints what a phase took, when it ends.
class Phase {
public:
    Phase(std::string name, bool prints) : name_{std::move(name)}, prints_{prints} {}
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;
    ~Phase() { end(); }
    void end() {
        if (!prints_) return;
        prints_ = false;
        const double s = std::chrono::duration<double>(Clock::now() - start_).count();
        const double read = (value_in("/proc/self/io", "read_bytes:") - read_) / 1e9;
        const double written = (value_in("/proc/self/io", "write_bytes:") - written_) / 1e9;
        std::printf("%-22s %8.1f s   resident %5.2f GiB, at most %5.2f   read %6.2f GB, written %6.2f GB, %5.2f GB/s\n",
                    name_.c_str(), s, resident_gib(), peak_gib(), read, written, (read + written) / s);
        std::fflush(stdout);
    }

private:
    using Clock = std::chrono::steady_clock;
    std::string name_;
    bool prints_;
    Clock::time_point start_ = Clock::now();
    double read_ = value_in("/proc/self/io", "read_bytes:");
    double written_ = value_in("/proc/self/io", "write_bytes:");
};

/// Mean cross entropy in fp32; (B, T + 1) tokens.
torch::Tensor loss_of(bench::Gpt& model, const torch::Tensor& ids) {
    const torch::Tensor logits = model.forward(ids.slice(1, 0, -1)).to(torch::kFloat);
    return torch::cross_entropy_loss(logits.view({-1, logits.size(2)}), ids.slice(1, 1).reshape(-1));
}

struct Trained {
    std::vector<float> losses;
    std::vector<double> norms;
    std::vector<double> seconds;  // of each step
    double on_disk = 0;           // bytes
    double metered = 0;           // bytes in memory, at most
};

/// Steps on one batch.
template <class Composed>
Trained train(const Settings& settings, bool prints) {
    using Engine = zero::Engine<Composed, comm::SelfComm>;
    Trained trained;
    comm::SelfComm comm;
    Phase construction{"model construction", prints};
    bench::Gpt model{settings.shape};
    construction.end();

    Phase start{"engine start", prints};
    typename Engine::Options options;
    options.tiers.nvme_path = settings.swap;
    options.max_grad_norm = 1.0;
    Engine engine{comm, zero::parameters_of(model), options};
    start.end();

    const torch::Tensor ids = bench::random_tokens(settings.shape, settings.samples, 1);
    for (int i = 1; i <= settings.steps; ++i) {
        const std::string step = "step " + std::to_string(i) + ", ";
        const auto begin = std::chrono::steady_clock::now();
        Phase forward{step + "forward", prints};
        torch::Tensor loss = loss_of(model, ids);
        trained.losses.push_back(loss.item<float>());
        forward.end();
        Phase backward{step + "backward", prints};
        engine.backward(loss);
        loss.reset();
        backward.end();
        Phase update{step + "update", prints};
        trained.norms.push_back(engine.step(settings.lr).grad_norm);
        update.end();
        trained.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        if (prints) std::printf("  loss %.6f, gradient norm %.4f\n", trained.losses.back(), trained.norms.back());
    }
    trained.on_disk = static_cast<double>(engine.memory().total(zero::Place::disk).peak);
    trained.metered = static_cast<double>(engine.memory().total(zero::Place::device).peak +
                                          engine.memory().total(zero::Place::host).peak);
    return trained;
}

/// The same program with few blocks: files against memory.
bool verified(Settings settings) {
    settings.shape = {
        .width = 192, .heads = 3, .layers = 4, .vocabulary = 1000, .context = 64, .dtype = torch::kBFloat16};
    settings.steps = 6;
    settings.lr = 1e-3;
    const Trained files = train<OnDisk>(settings, false);
    const Trained memory = train<InMemory>(settings, false);
    const bool equal = files.losses == memory.losses && files.norms == memory.norms;
    std::printf("%.1f million parameters, %d steps: losses on disk and in memory %s (%.6f to %.6f)\n",
                static_cast<double>(settings.shape.numel()) / 1e6, settings.steps,
                equal ? "have the same bits" : "DIFFER", files.losses.front(), files.losses.back());
    return equal && files.losses.back() < files.losses.front();
}

Settings settings_of(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        const char* const value = argv[i + 1];
        if (flag == "--swap") settings.swap = value;
        if (flag == "--layers") settings.shape.layers = std::atoll(value);
        if (flag == "--width") settings.shape.width = std::atoll(value);
        if (flag == "--heads") settings.shape.heads = std::atoll(value);
        if (flag == "--vocabulary") settings.shape.vocabulary = std::atoll(value);
        if (flag == "--tokens") settings.shape.context = std::atoll(value);
        if (flag == "--samples") settings.samples = std::atoll(value);
        if (flag == "--steps") settings.steps = std::atoi(value);
        if (flag == "--threads") settings.threads = std::atoi(value);
        if (flag == "--limit-gib") settings.limit_gib = std::atof(value);
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const Settings settings = settings_of(argc, argv);
    at::set_num_threads(settings.threads);
    bool right = verified(settings);

    const bench::GptShape& shape = settings.shape;
    std::printf(
        "%.3f billion parameters: %lld blocks of width %lld, %lld words; %lld x %lld tokens a step, %d threads\n",
        static_cast<double>(shape.numel()) / 1e9, static_cast<long long>(shape.layers),
        static_cast<long long>(shape.width), static_cast<long long>(shape.vocabulary),
        static_cast<long long>(settings.samples), static_cast<long long>(shape.context), settings.threads);
    const Trained big = train<OnDisk>(settings, true);
    const double peak = peak_gib();
    const bool finite = std::ranges::all_of(big.losses, [](float loss) { return std::isfinite(loss); });
    right = right && finite && big.losses.back() < big.losses.front() && peak < settings.limit_gib;

    std::vector<double> seconds{big.seconds.begin() + (big.seconds.size() > 1 ? 1 : 0), big.seconds.end()};
    std::ranges::sort(seconds);
    const double step = seconds[seconds.size() / 2];
    std::printf(
        "{\"bench\":\"big_model\",\"case\":\"%.3f billion parameters, bf16, AdamW\",\"ours\":%.2f,\"unit\":\"s/step\","
        "\"tokens_a_second\":%.2f,\"peak_resident_gib\":%.3f,\"limit\":%.1f,\"limit_name\":\"GiB resident\","
        "\"metered_peak_gib\":%.3f,\"on_disk_gb\":%.2f,\"first_loss\":%.5f,\"last_loss\":%.5f}\n",
        static_cast<double>(shape.numel()) / 1e9, step, static_cast<double>(settings.samples * shape.context) / step,
        peak, settings.limit_gib, big.metered / (1 << 30), big.on_disk / 1e9, big.losses.front(), big.losses.back());
    if (!right) std::printf("WRONG: see above\n");
    return right ? 0 : 1;
}
