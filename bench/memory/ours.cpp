// bench/memory/ours.cpp - does an engine hold what the formulas say, and does the process hold what the engine says?
//
//   bench/run.sh memory [--ranks "1 2 4"] [--cases "stage0 ..."] [--swap FOLDER]
//
// One case on the ranks of one MPI job: a few steps of a GPT whose units have one size, bf16 with AdamW. What the meter
// counted at most on each rank stands beside 16P, 4P + 12P/N, 2P + 14P/N or 16P/N bytes, less what is on disk, and the
// buffers that follow from the options; and beside the growth of the process's resident memory. Reductions are slowed
// down, so that every buffer that may be there at once is. The exit status is 1 when peak and formula are 2 % apart, or
// the process holds less than the meter says, or 24 MiB more.

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/offload/swap_file.hpp>
#include <strata/offload/windows.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/layout.hpp>

#include "../models/gpt.hpp"

namespace {

using namespace strata;

constexpr double tolerance = 0.02;
constexpr double others = 24 << 20;  // bytes that activations and libraries may take
constexpr int steps = 3;             // units are gathered ahead from the second one on
constexpr std::int64_t weight_bytes = 2;
constexpr std::int64_t gradient_bytes = 2;
constexpr std::int64_t state_bytes = 12;  // master and two moments

/// A rank's MPI, over a link on which a bucket's reduction takes longer than the backward pass of some units.
class SlowReductions : public comm::MpiComm {
public:
    template <class In, class Out>
    void reduce_scatter(std::span<const In> all, std::span<Out> mine) {
        if (world() > 1) std::this_thread::sleep_for(std::chrono::milliseconds{25});
        comm::MpiComm::reduce_scatter(all, mine);
    }
};

/// Token table and head have 12 D + 13 words of width D, and so exactly the size of a block.
constexpr bench::GptShape shape_of(std::int64_t width, std::int64_t layers) {
    return {.width = width,
            .heads = 4,
            .layers = layers,
            .vocabulary = 12 * width + 13,
            .context = 16,
            .dtype = torch::kBFloat16};
}

/// Bytes on one rank: what the formula says, and the buffers beside it.
struct Expected {
    std::string formula;
    double bytes = 0;  // in memory
    double on_disk = 0;
    std::int64_t start = 0;      // of the bucket that is taken over last: above all its values in fp32
    std::int64_t gradients = 0;  // buckets that are filled or wait for their reduction
    std::int64_t gathered = 0;   // units that are whole
    std::int64_t windows = 0;    // of files
    /// The start is over when the first gradient arrives.
    [[nodiscard]] std::int64_t buffers() const noexcept { return std::max(start, gradients + gathered) + windows; }
};

template <class Setup, class Options>
Expected expected(const std::vector<zero::Parameter>& parameters, const Options& options, int world) {
    constexpr int stage = Setup::sharding::stage;
    constexpr bool state_on_disk = std::same_as<typename Setup::offload::tier, Nvme>;
    constexpr bool units_on_disk = std::same_as<typename Setup::parameter_offload::tier, Nvme>;
    const bool sharded = stage == 3 && (world > 1 || units_on_disk);

    std::vector<zero::ParameterExtent> extents;
    std::int64_t P = 0;
    for (const zero::Parameter& p : parameters) {
        extents.push_back({p.tensor.numel(), p.unit});
        P += p.tensor.numel();
    }
    std::vector<std::int64_t> shares;
    std::int64_t largest = 0;
    std::int64_t last = 0;
    for (const zero::Bucket& bucket : zero::make_buckets(extents, options.bucket_numel)) {
        shares.push_back(zero::share_numel(bucket.numel, world));
        last = shares.back() * world;
        largest = std::max(largest, last);
    }

    Expected e;
    const double N = world;
    const double weights = static_cast<double>(weight_bytes * P) / (stage == 3 ? N : 1);
    const double gradients = static_cast<double>(gradient_bytes * P) / (stage >= 2 ? N : 1);
    const double state = static_cast<double>(state_bytes * P) / (stage >= 1 ? N : 1);
    e.formula = stage == 0 ? "16P" : stage == 1 ? "4P+12P/N" : stage == 2 ? "2P+14P/N" : "16P/N";
    e.on_disk = (units_on_disk ? weights : 0) + (state_on_disk ? state : 0);
    e.bytes = weights + gradients + state - e.on_disk;
    if (units_on_disk || state_on_disk) e.formula += units_on_disk ? (state_on_disk ? "-14P/N" : "-2P/N") : "-12P/N";

    // The bucket that gradients arrive in, and those before it: alone, a reduction is a copy that is done at once;
    // between the units of stage 3 it runs while the next unit's backward does.
    const int in_flight = world == 1 ? 0 : sharded ? 1 : options.buckets_in_flight;
    if (stage >= 2) e.gradients = (in_flight + 1) * largest * gradient_bytes;
    // The unit that computes, and ahead of it as many bytes as the largest has, which the options may change. Alone,
    // nothing is gathered ahead.
    if (sharded) e.gathered = (world == 1 ? 1 : 2) * largest * weight_bytes;
    if (state_on_disk) {
        const auto window = offload::window_bytes(options.tiers.state.budget_bytes, 0, 0);
        std::size_t buffer = 0;
        const auto runs = offload::cut_windows(shares, static_cast<std::int64_t>(window) / state_bytes);
        for (const offload::WindowRun& run : runs) {
            const std::size_t array = static_cast<std::size_t>(run.numel) * sizeof(float);
            buffer = std::max(buffer, offload::SwapFile::bytes_of(offload::payload_of({array, array, array})));
        }
        e.windows += static_cast<std::int64_t>(
            offload::plan_buffers(buffer, runs.size(), options.tiers.state.budget_bytes, 0).total());
    }
    if (units_on_disk) {
        const auto buffer = offload::SwapFile::bytes_of(static_cast<std::size_t>(largest / world * weight_bytes));
        e.windows += static_cast<std::int64_t>(
            offload::plan_buffers(buffer, shares.size(), options.tiers.units.budget_bytes, 0).total());
    }
    // Values of all ranks, then a copy of the own share for the store, which has no memory for the bucket's state yet.
    const std::int64_t values = 4 * last;
    const std::int64_t copy = stage == 0 || world == 1 ? 0 : 4 * last / world;
    const std::int64_t missing = state_on_disk ? 0 : state_bytes * last / (stage == 0 ? 1 : world);
    e.start = std::max(
        {values + (sharded ? weight_bytes * last : 0) - missing, values + copy - missing, copy > 0 ? copy : values});
    return e;
}

/// Resident memory of this process, now or at most since reset_peak().
double resident(const std::string& line) {
    std::ifstream status{"/proc/self/status"};
    for (std::string word; status >> word;) {
        double kib = 0;
        if (word == line && status >> kib) return kib * 1024;
    }
    return 0;
}
void reset_peak() { std::ofstream{"/proc/self/clear_refs"} << "5"; }

/// What one rank found.
struct Found {
    double peak = 0;     // of the meter, in memory
    double on_disk = 0;  // of the meter
    double start = 0;    // resident memory at most while model and engine are made, less what there was before
    double grown = 0;    // the same while it trains
    double norm = 0;     // of the last gradient: shows that all cases train the same model
};

struct Settings {
    std::string key = "stage0";
    std::filesystem::path swap = std::filesystem::temp_directory_path();
    std::int64_t width = 256;
    std::int64_t layers = 46;
};

/// Trains a model of this shape and fills `e` with what is to be expected.
template <class Setup>
Found train(SlowReductions& comm, const bench::GptShape& shape, const std::filesystem::path& swap, Expected& e) {
    using Engine = zero::Engine<Setup, SlowReductions>;
    ::malloc_trim(0);
    reset_peak();
    const double before = resident("VmRSS:");
    bench::Gpt model{shape};
    typename Engine::Options options;
    options.tiers.nvme_path = swap;
    options.tiers.state.budget_bytes = std::size_t{16} << 20;
    options.tiers.units.budget_bytes = std::size_t{8} << 20;
    e = expected<Setup>(zero::parameters_of(model), options, comm.world());
    Found found;
    Engine engine{comm, zero::parameters_of(model), options};
    found.start = resident("VmHWM:") - before;
    reset_peak();
    const torch::Tensor ids = bench::random_tokens(shape, 1, 7 + static_cast<std::uint64_t>(comm.rank()));
    for (int i = 0; i < steps; ++i) {
        engine.backward(model.loss(ids));
        found.norm = engine.step(1e-3).grad_norm;
    }
    found.peak = static_cast<double>(engine.memory().total(zero::Place::device).peak +
                                     engine.memory().total(zero::Place::host).peak);
    found.on_disk = static_cast<double>(engine.memory().total(zero::Place::disk).peak);
    found.grown = resident("VmHWM:") - before;
    return found;
}

bool apart(double a, double b) { return std::abs(a - b) > tolerance * b; }

/// A row of the table and a line of JSON. False when a rank is off.
bool report(const std::string& key, std::int64_t numel, const Expected& e, const std::vector<Found>& ranks) {
    const double wanted = e.bytes + static_cast<double>(e.buffers());
    const auto off = [&](const Found& found) { return std::abs(found.peak - wanted); };
    const Found& worst = *std::ranges::max_element(ranks, {}, off);
    bool right = true;
    Found most;
    for (const Found& found : ranks) {
        right = right && !apart(found.peak, wanted) && !apart(found.on_disk, e.on_disk);
        right =
            right && found.grown > (1 - tolerance) * found.peak && found.grown < (1 + tolerance) * found.peak + others;
        most.start = std::max(most.start, found.start);
        most.grown = std::max(most.grown, found.grown);
    }
    const double percent = 100 * (worst.peak / wanted - 1);
    const auto mb = [](auto bytes) { return static_cast<double>(bytes) / 1e6; };
    std::printf(
        "| %s | %zu | %s | %.1f | %.1f (%.1f, %.1f, %.1f, %.1f) | %.1f | %+.2f %% | %.1f | %.1f | %.1f | %.1f |%s\n",
        key.c_str(), ranks.size(), e.formula.c_str(), mb(e.bytes), mb(e.buffers()), mb(e.start), mb(e.gradients),
        mb(e.gathered), mb(e.windows), mb(worst.peak), percent, mb(e.on_disk), mb(worst.on_disk), mb(most.grown),
        mb(most.start), right ? "" : " WRONG");
    std::printf(
        "{\"bench\":\"memory\",\"case\":\"%s, %zu ranks\",\"ours\":%.0f,\"unit\":\"bytes\",\"parameters\":%lld,"
        "\"formula\":\"%s\",\"formula_bytes\":%.0f,\"stated_buffers\":%lld,\"deviation_percent\":%.2f,"
        "\"disk\":%.0f,\"disk_formula_bytes\":%.0f,\"resident_growth\":%.0f,\"resident_growth_at_start\":%.0f,"
        "\"grad_norm\":%.15g}\n",
        key.c_str(), ranks.size(), worst.peak, static_cast<long long>(numel), e.formula.c_str(), e.bytes,
        static_cast<long long>(e.buffers()), percent, worst.on_disk, e.on_disk, most.grown, most.start, ranks[0].norm);
    return right;
}

template <class... Ps>
bool run(SlowReductions& comm, const Settings& settings) {
    using Composed = Setup<Precision<Bf16>, Ps...>;
    Expected e;
    train<Composed>(comm, shape_of(32, 2), settings.swap, e);  // what libraries allocate once
    const bench::GptShape shape = shape_of(settings.width, settings.layers);
    const Found mine = train<Composed>(comm, shape, settings.swap, e);
    std::vector<Found> all(static_cast<std::size_t>(comm.world()));
    comm.all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
    return comm.rank() != 0 || report(settings.key, shape.numel(), e, all);
}

bool run_case(SlowReductions& comm, const Settings& settings) {
    const std::string& key = settings.key;
    if (key == "stage0") return run<ZeroStage<0>>(comm, settings);
    if (key == "stage1") return run<ZeroStage<1>>(comm, settings);
    if (key == "stage2") return run<ZeroStage<2>>(comm, settings);
    if (key == "stage2nvme") return run<ZeroStage<2>, OffloadTarget<Nvme>>(comm, settings);
    if (key == "stage3") return run<ZeroStage<3>>(comm, settings);
    if (key == "stage3nvme") return run<ZeroStage<3>, OffloadTarget<Nvme>>(comm, settings);
    if (key == "stage3units") return run<ZeroStage<3>, OffloadTarget<Nvme, Parameters>>(comm, settings);
    if (key == "stage3both") return run<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>(comm, settings);
    std::fprintf(stderr, "there is no case %s\n", key.c_str());
    return false;
}

Settings settings_of(int argc, char** argv) {
    Settings settings;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--case") settings.key = argv[i + 1];
        if (flag == "--swap") settings.swap = argv[i + 1];
        if (flag == "--width") settings.width = std::atoll(argv[i + 1]);
        if (flag == "--layers") settings.layers = std::atoll(argv[i + 1]);
    }
    return settings;
}

}  // namespace

int main(int argc, char** argv) {
    const Settings settings = settings_of(argc, argv);
    bool right = false;
    {
        SlowReductions comm;
        at::set_num_threads(1);
        right = run_case(comm, settings);
    }
    return right ? 0 : 1;
}
