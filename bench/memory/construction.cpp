// bench/memory/construction.cpp - how much does a process hold while a model is made and an engine takes it over?
//
//   bench/run.sh memory [--ranks "1 2 4"]; called as strata_bench_construction --case in_units --folder FOLDER
//
// A row of 24 equal units, ZeroStage<3> in bf16 with AdamW, parameters and optimizer state on disk, so that next to nothing is kept in memory: made at once, made by strata::in_units(), and made by it with values from a
// safetensors file. What the process held at most (VmHWM) stands beside what the engine's meter counts when it is there. A unit is its
// parameters in fp32, as its block makes them. The exit status is 1 when a model that is made in units, or from files, takes more than
// the shards and one unit, in fp32 and beside it in bf16, and 24 MiB for what libraries allocate.

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/in_units.hpp>

namespace {

using namespace strata;

constexpr std::int64_t width = 1024;
constexpr int units = 24;
constexpr double unit_bytes = 4.0 * (4 * width * width + 4 * width);
constexpr double others = 24 << 20;

struct Block : torch::nn::Module {
    explicit Block(std::int64_t D) {
        for (const char* const name : {"query", "key", "value", "out"})
            parts.push_back(register_module(name, torch::nn::Linear(D, D)));
    }
    torch::Tensor forward(torch::Tensor x) {
        for (auto& part : parts) x = x + part->forward(x);
        return x;
    }
    std::vector<torch::nn::Linear> parts;
};
struct Model : torch::nn::Module {
    explicit Model(int count) {
        for (int i = 0; i < count; ++i)
            blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<Unit<Block>>(width)));
    }
    std::vector<std::shared_ptr<Unit<Block>>> blocks;
};

double resident(const std::string& line) {
    std::ifstream status{"/proc/self/status"};
    for (std::string word; status >> word;) {
        double kib = 0;
        if (word == line && status >> kib) return kib * 1024;
    }
    return 0;
}

struct Found {
    double kept = 0;  // what the engine counts
    double most = 0;  // resident memory at most, less what there was before
};

/// Makes a model and an engine for it.
Found make(comm::MpiComm& comm, const std::string& key, const std::filesystem::path& file, int count) {
    ::malloc_trim(0);
    std::ofstream{"/proc/self/clear_refs"} << "5";
    const double before = resident("VmRSS:");
    const auto make_model = [count] { return std::make_shared<Model>(count); };
    const auto model = key == "at_once" ? make_model() : in_units(make_model);
    if (key == "from_files") weights::load_weights(*model, weights::WeightFiles{file});
    using Engine = zero::Engine<Setup<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>, Precision<Bf16>>,
                                comm::MpiComm>;
    Engine::Options options;
    options.tiers.nvme_path = file.parent_path();
    options.tiers.state.budget_bytes = std::size_t{32} << 20;  // of buffers on their way to disk
    options.tiers.units.budget_bytes = std::size_t{32} << 20;
    const Engine engine{comm, zero::parameters_of(*model), options};
    return {static_cast<double>(engine.memory().total(zero::Place::device).now +
                                engine.memory().total(zero::Place::host).now),
            resident("VmHWM:") - before};
}

/// A file of `count` units, written by rank 0.
void write(comm::MpiComm& comm, const std::filesystem::path& file, int count) {
    const auto model = std::make_shared<Model>(comm.rank() == 0 ? count : 1);
    std::vector<weights::SavedTensor> tensors;
    for (const auto& item : model->named_parameters()) tensors.push_back({item.key(), item.value()});
    comm::SelfComm alone;
    if (comm.rank() == 0) weights::save_weights(alone, file, tensors, [](const at::Tensor&) {});
    comm.barrier();
}

bool report(const std::string& key, const std::vector<Found>& ranks) {
    const auto beyond = [](const Found& found) { return found.most - found.kept; };
    const Found& worst = *std::ranges::max_element(ranks, {}, beyond);
    const bool right = key == "at_once" || beyond(worst) <= 1.5 * unit_bytes + others;
    std::printf("| %s | %zu | %.1f | %.1f | %.1f | %.1f |%s\n", key.c_str(), ranks.size(), worst.kept / 1e6,
                unit_bytes / 1e6, worst.most / 1e6, beyond(worst) / unit_bytes, right ? "" : " WRONG");
    std::printf(
        "{\"bench\":\"memory\",\"case\":\"construction %s, %zu ranks\",\"ours\":%.0f,\"unit\":\"bytes\",\"kept\":%.0f,\"model_unit_bytes\":%.0f}\n",
        key.c_str(), ranks.size(), worst.most, worst.kept, unit_bytes);
    return right;
}

}  // namespace

int main(int argc, char** argv) {
    std::string key = "in_units";
    std::filesystem::path folder = std::filesystem::temp_directory_path();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string{argv[i]} == "--case") key = argv[i + 1];
        if (std::string{argv[i]} == "--folder") folder = argv[i + 1];
    }
    bool right = false;
    {
        comm::MpiComm comm;
        at::set_num_threads(1);
        const std::filesystem::path small = folder / "small.safetensors";
        const std::filesystem::path file = folder / "model.safetensors";
        if (key == "from_files") {
            write(comm, small, 1);
            write(comm, file, units);
        }
        static_cast<void>(make(comm, key, small, 1));  // what libraries allocate once
        const Found mine = make(comm, key, file, units);
        std::vector<Found> all(static_cast<std::size_t>(comm.world()));
        comm.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
        right = comm.rank() != 0 || report(key, all);
    }
    return right ? 0 : 1;
}
