// The engine over ranks: stages give the same bits, repeats give the same bits, shares cover everything once.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

namespace {

using strata::AdamW;
using strata::Bf16;
using strata::Cpu;
using strata::Errc;
using strata::Fp32;
using strata::Lion;
using strata::Nvme;
using strata::OffloadTarget;
using strata::Optimizer;
using strata::OptimizerState;
using strata::Parameters;
using strata::Precision;
using strata::ZeroStage;
using strata::comm::MpiComm;
using strata::zero::parameters_of;

struct Block : torch::nn::Module {
    explicit Block(int width) : linear{register_module("linear", torch::nn::Linear(width, width))} {}
    torch::Tensor forward(const torch::Tensor& x) { return x + torch::tanh(linear(x)); }
    torch::nn::Linear linear;
};

template <class... Policies>
using EngineOf = strata::zero::Engine<strata::Setup<Policies...>, MpiComm>;

/// Sizes that nothing divides. `Inner` is Block or Unit<Block>: with and without units.
template <class Inner>
struct Model : torch::nn::Module {
    Model() {
        in = register_module("in", torch::nn::Linear(5, 7));
        first = register_module("first", std::make_shared<Inner>(7));
        second = register_module("second", std::make_shared<Inner>(7));
        out = register_module("out", torch::nn::Linear(7, 3));
        unused = register_parameter("unused", torch::ones({2}));
        gain = register_parameter("gain", torch::ones({1}));
    }
    torch::Tensor loss(const torch::Tensor& x) {
        const auto y = out(second->forward(first->forward(in(x.to(gain.dtype()))) * gain));
        return (y.to(torch::kFloat) - x.sum(1, true).sin()).square().mean();
    }
    torch::nn::Linear in{nullptr}, out{nullptr};
    std::shared_ptr<Inner> first, second;
    torch::Tensor unused, gain;
};

/// This rank's rows of the global batch number `index`.
torch::Tensor rows_of(const MpiComm& comm, int index, std::int64_t rows = 4) {
    torch::manual_seed(static_cast<std::uint64_t>(100 + index));
    return torch::randn({rows * comm.world(), 5}).slice(0, rows * comm.rank(), rows * (comm.rank() + 1));
}

struct Trace {
    std::vector<double> losses;  // of this rank
    std::vector<double> norms;
    std::vector<float> weights;  // all of them, in the order of the state dict
    friend bool operator==(const Trace&, const Trace&) = default;
};

struct Case {
    int accumulation = 1;
    double max_grad_norm = 0.0;
    std::int64_t bucket_numel = 60;
    bool overlap = true;
    int buckets_in_flight = 4;
    std::filesystem::path nvme_path{};
};

/// A folder that all ranks share and rank 0 makes and removes.
struct SharedFolder {
    explicit SharedFolder(MpiComm& comm_) : comm{comm_} {
        const auto mine = std::filesystem::path{testing::TempDir()} / ("strata_engine_" + std::to_string(::getpid()));
        path = comm.all_gather_varied(mine.string()).front();
        if (comm.rank() == 0) std::filesystem::create_directories(path);
        comm.barrier();
    }
    ~SharedFolder() {
        comm.barrier();
        if (comm.rank() == 0) std::filesystem::remove_all(path);
    }
    SharedFolder(const SharedFolder&) = delete;
    SharedFolder& operator=(const SharedFolder&) = delete;
    MpiComm& comm;
    std::filesystem::path path;
};

template <class Inner, class... Policies>
Trace train(const Case& settings, int steps = 4) {
    MpiComm comm;
    torch::manual_seed(static_cast<std::uint64_t>(1 + comm.rank()));  // rank 0's weights must win
    const auto model = std::make_shared<Model<Inner>>();
    EngineOf<Policies...> engine{comm, parameters_of(*model),
                                                             {.bucket_numel = settings.bucket_numel,
                                                              .gradient_accumulation_steps = settings.accumulation,
                                                              .max_grad_norm = settings.max_grad_norm,
                                                              .overlap = settings.overlap,
                                                              .buckets_in_flight = settings.buckets_in_flight,
                                                              .nvme_path = settings.nvme_path}};
    Trace trace;
    for (int step = 0; step < steps; ++step) {
        for (int micro = 0; micro < settings.accumulation; ++micro) {
            const auto loss = model->loss(rows_of(comm, step * settings.accumulation + micro));
            engine.backward(loss);
            trace.losses.push_back(loss.template item<double>());
        }
        trace.norms.push_back(engine.step(1e-2).grad_norm);
    }
    engine.with_whole_model([&] {
        for (const auto& parameter : model->parameters()) {
            const auto values = parameter.detach().to(torch::kFloat).contiguous();
            trace.weights.insert(trace.weights.end(), values.template data_ptr<float>(),
                                 values.template data_ptr<float>() + values.numel());
        }
    });
    return trace;
}

template <class Inner>
inline constexpr bool is_unit_v = std::is_base_of_v<strata::zero::UnitBase, Inner>;

const std::vector<Case> cases{{},
                              {.accumulation = 2},
                              {.max_grad_norm = 0.1},
                              {.accumulation = 2, .max_grad_norm = 0.1, .bucket_numel = 1'000'000}};

template <class Inner, class... Policies>
void expect_equal_stages() {
    for (const Case& settings : cases) {
        const Trace zero = train<Inner, ZeroStage<0>, Policies...>(settings);
        const Trace one = train<Inner, ZeroStage<1>, Policies...>(settings);
        const Trace two = train<Inner, ZeroStage<2>, Policies...>(settings);
        EXPECT_TRUE(zero == one) << settings.accumulation << ' ' << settings.max_grad_norm;
        EXPECT_TRUE(zero == two) << settings.accumulation << ' ' << settings.max_grad_norm;
        if constexpr (is_unit_v<Inner>) {
            const Trace three = train<Inner, ZeroStage<3>, Policies...>(settings);
            EXPECT_TRUE(zero == three) << settings.accumulation << ' ' << settings.max_grad_norm;
        }
        EXPECT_GT(zero.norms.front(), 0.1) << "clipping did nothing";
        EXPECT_TRUE(zero == (train<Inner, ZeroStage<0>, Policies...>(settings))) << "a repeat differs";
    }
}

TEST(Engine, StagesGiveTheSameBitsWithoutUnits) { expect_equal_stages<Block, Precision<Fp32>>(); }
TEST(Engine, StagesGiveTheSameBitsWithUnits) { expect_equal_stages<strata::Unit<Block>, Precision<Fp32>>(); }
TEST(Engine, StagesGiveTheSameBitsWithLion) {
    expect_equal_stages<strata::Unit<Block>, Precision<Fp32>, Optimizer<Lion>>();
}
TEST(Engine, StagesGiveTheSameBitsInBf16) { expect_equal_stages<strata::Unit<Block>, Precision<Bf16>>(); }

TEST(Engine, StagesGiveTheSameBitsWithAdam) {
    expect_equal_stages<strata::Unit<Block>, Precision<Fp32>, Optimizer<strata::Adam>>();
}
TEST(Engine, StagesGiveTheSameBitsWithSgd) { expect_equal_stages<Block, Precision<Fp32>, Optimizer<strata::Sgd>>(); }
TEST(Engine, StagesGiveTheSameBitsWithAdagrad) {
    expect_equal_stages<Block, Precision<Fp32>, Optimizer<strata::Adagrad>>();
}
TEST(Engine, StagesGiveTheSameBitsWithLamb) {
    expect_equal_stages<Block, Precision<Fp32>, Optimizer<strata::Lamb>>();
    expect_equal_stages<strata::Unit<Block>, Precision<Bf16>, Optimizer<strata::Lamb>>();
}
TEST(Engine, StagesGiveTheSameBitsInPureBf16) {
    expect_equal_stages<strata::Unit<Block>, Precision<strata::PureBf16>>();
    expect_equal_stages<Block, Precision<strata::PureBf16>, Optimizer<strata::Lamb>>();
}

TEST(Engine, HowReductionsOverlapChangesNoBit) {
    for (const int accumulation : {1, 2}) {
        const Trace after = train<Block, ZeroStage<1>>({.accumulation = accumulation, .overlap = false});
        for (const int in_flight : {1, 2, 100}) {
            const Case settings{.accumulation = accumulation, .buckets_in_flight = in_flight};
            EXPECT_TRUE(after == (train<Block, ZeroStage<0>>(settings)));
            EXPECT_TRUE(after == (train<Block, ZeroStage<1>>(settings)));
            EXPECT_TRUE(after == (train<Block, ZeroStage<2>>(settings)));
        }
    }
}

template <class... Policies>
void expect_disk_changes_no_bit() {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const int accumulation : {1, 2}) {
        const Case settings{.accumulation = accumulation, .max_grad_norm = 0.1, .nvme_path = disk.path};
        const Trace memory = train<Block, ZeroStage<2>, Policies...>(settings);
        EXPECT_TRUE(memory == (train<Block, ZeroStage<1>, OffloadTarget<Nvme>, Policies...>(settings)));
        EXPECT_TRUE(memory == (train<Block, ZeroStage<2>, OffloadTarget<Nvme>, Policies...>(settings)));
        using Unit = strata::Unit<Block>;
        const Trace units = train<Unit, ZeroStage<2>, Policies...>(settings);
        EXPECT_TRUE(units == (train<Unit, ZeroStage<3>, OffloadTarget<Nvme>, Policies...>(settings)));
        EXPECT_TRUE(units == (train<Unit, ZeroStage<3>, OffloadTarget<Nvme, Parameters>, Policies...>(settings)));
        EXPECT_TRUE(units == (train<Unit, ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>, Policies...>(settings)));
        EXPECT_TRUE(units == (train<Unit, ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>, Policies...>(settings)));
    }
    comm.barrier();
    for (const auto& entry : std::filesystem::directory_iterator{disk.path}) {
        EXPECT_EQ(entry.path().filename(), ".strata-swap.lock") << "a run left something behind";
    }
    comm.barrier();
}

TEST(Engine, StateOnDiskChangesNoBit) {
    expect_disk_changes_no_bit<Precision<Fp32>>();
    expect_disk_changes_no_bit<Precision<Bf16>, Optimizer<Lion>>();
    expect_disk_changes_no_bit<Precision<strata::PureBf16>>();
    expect_disk_changes_no_bit<Precision<Bf16>, Optimizer<strata::Lamb>>();  // every share is one window here
}

TEST(Engine, ADiskThatFailsOnOneRankIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Model<Block> model;
    std::atomic<bool> broken = false;  // looked up on threads of the disk
    strata::offload::PipelineOptions nvme;
    nvme.io.faults.block = [&](strata::offload::IoDirection, std::uint64_t, std::size_t length) {
        return broken ? -EIO : static_cast<std::int64_t>(length);
    };
    EngineOf<ZeroStage<2>, OffloadTarget<Nvme>> engine{
        comm, parameters_of(model), {.bucket_numel = 20, .nvme_path = disk.path, .nvme = nvme}};
    const auto step = [&](int index) {
        engine.backward(model.loss(rows_of(comm, index)));
        engine.step(1e-3);
    };
    step(0);
    broken = comm.rank() == comm.world() - 1;
    // Windows that are still in memory need no read: the failed write is met by the next step at the latest.
    const auto met = [&] {
        try {
            step(1);
            step(2);
        } catch (const strata::Error& error) {
            return error.code();
        }
        return Errc{};
    };
    EXPECT_EQ(met(), Errc::io_failed);
    EXPECT_EQ(met(), Errc::io_failed) << "and from then on";
}

TEST(Engine, ADiskThatIsMissingIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Model<Block> model;
    using OnDisk = EngineOf<ZeroStage<1>, OffloadTarget<Nvme>>;
    const auto refusal = [&](const std::filesystem::path& path) {
        try {
            OnDisk engine{comm, parameters_of(model), {.nvme_path = path}};
        } catch (const strata::Error& error) {
            return error.code();
        }
        return Errc{};
    };
    EXPECT_EQ(refusal(""), Errc::bad_value);
    EXPECT_EQ(refusal(comm.rank() == 0 ? disk.path / "not there" : disk.path), Errc::not_found);
}

/// Computes in fp32 from fp16 parameters: libtorch on the CPU has few operations for fp16.
struct HalfModel : torch::nn::Module {
    HalfModel() {
        torch::manual_seed(1);
        in = register_parameter("in", torch::randn({5, 7}) * 0.3);
        out = register_parameter("out", torch::randn({7, 3}) * 0.3);
    }
    torch::Tensor loss(const torch::Tensor& x) {
        const auto y = x.matmul(in.to(torch::kFloat)).tanh().matmul(out.to(torch::kFloat));
        return (y - x.sum(1, true).sin()).square().mean();
    }
    torch::Tensor in, out;
};

template <int stage>
std::vector<double> half_trace(MpiComm& comm, double scale) {
    HalfModel model;
    EngineOf<ZeroStage<stage>, Precision<strata::Fp16>> engine{
        comm, parameters_of(model), {.bucket_numel = 10, .loss_scale = {.initial = scale}}};
    EXPECT_EQ(model.in.scalar_type(), torch::kHalf);
    std::vector<double> trace;
    for (int step = 0; step < 40; ++step) {
        const auto loss = model.loss(rows_of(comm, 0, 16));
        engine.backward(loss);
        trace.push_back(loss.template item<double>());
        trace.push_back(engine.step(1e-2).grad_norm);
    }
    return trace;
}

TEST(Engine, StagesGiveTheSameBitsInFp16AndTheLossFalls) {
    MpiComm comm;
    const auto zero = half_trace<0>(comm, 1024);
    EXPECT_EQ(zero, half_trace<1>(comm, 1024));
    EXPECT_EQ(zero, half_trace<2>(comm, 1024));
    EXPECT_LT(zero[zero.size() - 2], 0.9 * zero[0]);
    EXPECT_NEAR(zero[1], half_trace<2>(comm, 64)[1], 1e-3 * zero[1]) << "norms are those of the loss itself";
}

TEST(Engine, AnOverflowOnOneRankSkipsTheStepOnAll) {
    MpiComm comm;
    HalfModel model;
    EngineOf<ZeroStage<2>, Precision<strata::Fp16>> engine{
        comm, parameters_of(model), {.loss_scale = {.initial = 256, .hysteresis = 2}}};
    const auto step = [&](bool overflow) {
        const bool here = overflow && comm.rank() == comm.world() - 1;
        engine.backward(model.loss(rows_of(comm, 0)) * (here ? 1e6 : 1.0));
        return engine.step(1e-2);
    };
    EXPECT_FALSE(step(false).skipped);
    const auto before = model.in.detach().clone();
    EXPECT_TRUE(step(true).skipped);
    EXPECT_EQ(engine.scalars().at("loss_scale"), 256) << "the first overflow only uses up the hysteresis";
    const auto second = step(true);
    EXPECT_TRUE(second.skipped);
    EXPECT_EQ(second.step, 1);
    EXPECT_EQ(second.loss_scale, 256);
    EXPECT_EQ(engine.scalars().at("loss_scale"), 128);
    EXPECT_TRUE(torch::equal(before, model.in));
    const auto third = step(false);
    EXPECT_FALSE(third.skipped);
    EXPECT_EQ(third.step, 2);
    EXPECT_EQ(third.loss_scale, 128);
    EXPECT_FALSE(torch::equal(before, model.in));

    HalfModel other;
    EngineOf<ZeroStage<1>, Precision<strata::Fp16>> resumed{comm, parameters_of(other)};
    resumed.restore_scalars(engine.scalars());
    EXPECT_EQ(resumed.scalars(), engine.scalars());
}

TEST(Engine, OffloadToTheCpuChangesNoBitOnTheCpu) {
    EXPECT_TRUE((train<Block, ZeroStage<2>, Precision<Fp32>, strata::OffloadTarget<strata::Cpu>>({})) ==
                (train<Block, ZeroStage<2>, Precision<Fp32>>({})));
}

TEST(Engine, RanksEndWithTheSameWeights) {
    const Trace mine = train<strata::Unit<Block>, ZeroStage<2>, Precision<Bf16>>({});
    MpiComm comm;
    std::vector<float> all(mine.weights.size() * static_cast<std::size_t>(comm.world()));
    comm.all_gather(std::as_bytes(std::span{mine.weights}), std::as_writable_bytes(std::span{all}));
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], mine.weights[i % mine.weights.size()]);
}

TEST(Engine, TrainsAsOneProcessOnTheWholeBatchWould) {
    MpiComm comm;
    torch::manual_seed(1);
    Model<Block> alone;
    torch::optim::AdamW adamw{alone.parameters(), torch::optim::AdamWOptions(1e-2)};
    std::vector<double> norms;
    for (int step = 0; step < 4; ++step) {
        torch::manual_seed(static_cast<std::uint64_t>(100 + step));
        adamw.zero_grad();
        alone.loss(torch::randn({4 * comm.world(), 5})).backward();
        alone.unused.mutable_grad() = torch::zeros_like(alone.unused);  // the engine decays what has gradient zero
        norms.push_back(torch::nn::utils::clip_grad_norm_(alone.parameters(), 1e9));
        adamw.step();
    }
    const Trace together = train<Block, ZeroStage<2>, Precision<Fp32>>({});
    std::size_t at = 0;
    for (const auto& parameter : alone.parameters()) {
        const auto values = parameter.detach().contiguous();
        for (std::int64_t i = 0; i < values.numel(); ++i)
            EXPECT_NEAR(together.weights[at++], values.data_ptr<float>()[i], 2e-5);
    }
    for (std::size_t i = 0; i < norms.size(); ++i) EXPECT_NEAR(together.norms[i], norms[i], 1e-5 * norms[i]);
}

TEST(Engine, PiecesOfAllRanksCoverEveryElementOnce) {
    MpiComm comm;
    Model<strata::Unit<Block>> model;
    EngineOf<ZeroStage<2>> engine{comm, parameters_of(model), {.bucket_numel = 20}};
    for (const std::string kind : {"weight", "exp_avg", "exp_avg_sq"}) {
        std::vector<double> owners(static_cast<std::size_t>(engine.numel()));
        for (const auto& piece : engine.state()) {
            if (piece.kind != kind) continue;
            for (std::size_t i = 0; i < piece.values.size(); ++i)
                owners.at(static_cast<std::size_t>(piece.begin) + i) += 1.0;
        }
        comm.all_reduce_sum(owners);
        EXPECT_EQ(std::count(owners.begin(), owners.end(), 1.0), engine.numel()) << kind;
    }
}

/// All pieces of all ranks, by element: what a checkpoint holds.
template <class AnyEngine>
std::vector<double> gathered(MpiComm& comm, AnyEngine& engine, std::string_view kind) {
    std::vector<double> values(static_cast<std::size_t>(engine.numel()));
    for (const auto& piece : engine.state()) {
        if (piece.kind != kind) continue;
        std::copy(piece.values.begin(), piece.values.end(), values.begin() + piece.begin);
    }
    comm.all_reduce_sum(values);
    return values;
}

template <class From, class To>
void expect_state_moves() {
    MpiComm comm;
    const SharedFolder disk{comm};
    torch::manual_seed(1);
    Model<strata::Unit<Block>> first;
    From engine{comm, parameters_of(first), {.bucket_numel = 20, .nvme_path = disk.path}};
    for (int step = 0; step < 3; ++step) {
        engine.backward(first.loss(rows_of(comm, step)));
        engine.step(1e-2);
    }
    torch::manual_seed(2);
    Model<strata::Unit<Block>> second;
    To resumed{comm, parameters_of(second), {.bucket_numel = 50, .nvme_path = disk.path}};
    const auto pieces = resumed.state();
    for (const std::string kind : {"weight", "exp_avg", "exp_avg_sq"}) {
        const auto values = gathered(comm, engine, kind);
        for (const auto& piece : pieces) {
            if (piece.kind != kind) continue;
            for (std::size_t i = 0; i < piece.values.size(); ++i) {
                piece.values[i] = static_cast<float>(values[static_cast<std::size_t>(piece.begin) + i]);
            }
        }
    }
    resumed.set_step_count(engine.step_count());
    resumed.state_restored();
    for (int step = 3; step < 6; ++step) {
        const auto x = rows_of(comm, step);
        const auto loss = first.loss(x);
        const auto again = second.loss(x);
        EXPECT_EQ(loss.template item<double>(), again.template item<double>());
        engine.backward(loss);
        resumed.backward(again);
        engine.step(1e-2);
        resumed.step(1e-2);
    }
    EXPECT_EQ(gathered(comm, engine, "weight"), gathered(comm, resumed, "weight"));
}

TEST(Engine, StateMovesBetweenStages) {
    expect_state_moves<EngineOf<ZeroStage<2>, Precision<Fp32>>, EngineOf<ZeroStage<0>, Precision<Fp32>>>();
    expect_state_moves<EngineOf<ZeroStage<0>, Precision<Fp32>>, EngineOf<ZeroStage<1>, Precision<Fp32>>>();
    expect_state_moves<EngineOf<ZeroStage<1>, Precision<Bf16>>, EngineOf<ZeroStage<2>, Precision<Bf16>>>();
    expect_state_moves<EngineOf<ZeroStage<3>, Precision<Bf16>>, EngineOf<ZeroStage<0>, Precision<Bf16>>>();
    expect_state_moves<EngineOf<ZeroStage<1>, Precision<Fp32>>, EngineOf<ZeroStage<3>, Precision<Fp32>>>();
}

TEST(Engine, StateMovesBetweenMemoryAndDisk) {
    using Disk = OffloadTarget<Nvme>;
    expect_state_moves<EngineOf<ZeroStage<2>, Precision<Fp32>, Disk>, EngineOf<ZeroStage<0>, Precision<Fp32>>>();
    expect_state_moves<EngineOf<ZeroStage<0>, Precision<Bf16>>, EngineOf<ZeroStage<1>, Precision<Bf16>, Disk>>();
    using Both = OffloadTarget<Nvme, OptimizerState, Parameters>;
    expect_state_moves<EngineOf<ZeroStage<2>, Precision<Bf16>>, EngineOf<ZeroStage<3>, Precision<Bf16>, Both>>();
    expect_state_moves<EngineOf<ZeroStage<3>, Precision<Fp32>, Both>, EngineOf<ZeroStage<1>, Precision<Fp32>>>();
    expect_state_moves<EngineOf<ZeroStage<2>, Precision<Fp32>>,
                       EngineOf<ZeroStage<3>, Precision<Fp32>, OffloadTarget<Nvme, Parameters>>>();
}

TEST(Engine, StateInBf16ComesBackBitByBit) {
    using Pure = Precision<strata::PureBf16>;
    expect_state_moves<EngineOf<ZeroStage<2>, Pure>, EngineOf<ZeroStage<0>, Pure>>();
    expect_state_moves<EngineOf<ZeroStage<0>, Pure>, EngineOf<ZeroStage<1>, Pure, OffloadTarget<Nvme>>>();
}

template <class... Policies>
void expect_loss_falls() {
    MpiComm comm;
    torch::manual_seed(1);
    Model<strata::Unit<Block>> model;
    EngineOf<ZeroStage<2>, Policies...> engine{comm, parameters_of(model)};
    const auto x = rows_of(comm, 0, 16);
    const auto mean_loss = [&] {
        std::vector<double> loss{model.loss(x).item<double>() / comm.world()};
        comm.all_reduce_sum(loss);
        return loss[0];
    };
    const double before = mean_loss();
    for (int step = 0; step < 60; ++step) {
        engine.backward(model.loss(x));
        engine.step(3e-3);
    }
    EXPECT_LT(mean_loss(), 0.5 * before);
}

TEST(Engine, LossFalls) { expect_loss_falls<strata::OffloadTarget<strata::Cpu>>(); }
TEST(Engine, LossFallsInBf16) { expect_loss_falls<Precision<Bf16>>(); }
TEST(Engine, LossFallsInPureBf16) { expect_loss_falls<Precision<strata::PureBf16>>(); }

TEST(Engine, ParametersThatOnlySomeRanksUseAreReducedAllTheSame) {
    MpiComm comm;
    torch::manual_seed(1);
    Model<strata::Unit<Block>> model;
    EngineOf<ZeroStage<2>, Precision<Fp32>> engine{comm, parameters_of(model)};
    const auto before = model.first->linear->weight.detach().clone();
    const bool last = comm.rank() == comm.world() - 1;
    engine.backward(last ? model.loss(rows_of(comm, 0)) : model.in(rows_of(comm, 0)).square().mean());
    engine.step(1e-2);
    EXPECT_FALSE(torch::equal(before, model.first->linear->weight));
}

TEST(Engine, ANonFiniteGradientOnOneRankIsReportedByAll) {
    MpiComm comm;
    Model<Block> model;
    EngineOf<ZeroStage<2>> engine{comm, parameters_of(model)};
    const double factor = comm.rank() == comm.world() - 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
    engine.backward(model.loss(rows_of(comm, 0)) * factor);
    try {
        engine.step(1e-2);
        ADD_FAILURE() << "rank " << comm.rank() << " went on";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::non_finite);
        EXPECT_NE(std::string{error.what()}.find("step 1 "), std::string::npos) << error.what();
    }
}

TEST(Engine, DifferentModelsOnTheRanksAreRefusedByAll) {
    MpiComm comm;
    if (comm.world() == 1) GTEST_SKIP() << "one rank cannot differ from itself";
    const torch::nn::Linear model(3, comm.rank() == 0 ? 4 : 5);
    try {
        EngineOf<ZeroStage<2>> engine{comm, parameters_of(*model)};
        ADD_FAILURE() << "rank " << comm.rank() << " went on";
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::rank_mismatch);
        EXPECT_NE(std::string{error.what()}.find("rank 1 has \"parameter weight [5, 3]"), std::string::npos)
            << error.what();
    }
}

/// Losses and norms that DeepSpeed 0.16.2 printed for this model on two ranks (AdamW, clipping at 1), stages 0 to 3
/// alike.
template <int stage>
void expect_deepspeed_trace(const std::vector<double>& losses, const std::vector<double>& norms, double weight_sum) {
    MpiComm comm;
    torch::manual_seed(1234);
    torch::nn::Sequential model{torch::nn::Linear(10, 10), torch::nn::Tanh(), torch::nn::Linear(10, 10),
                                torch::nn::Tanh(), torch::nn::Linear(10, 10)};
    EngineOf<ZeroStage<stage>, Precision<Fp32>> engine{
        comm, parameters_of(*model), {.bucket_numel = 64, .max_grad_norm = 1.0}};
    torch::manual_seed(777);
    for (std::size_t step = 0; step < losses.size(); ++step) {
        const auto x = torch::randn({2 * comm.world(), 10}).slice(0, 2 * comm.rank(), 2 * comm.rank() + 2);
        const auto y = torch::randn({2 * comm.world(), 10}).slice(0, 2 * comm.rank(), 2 * comm.rank() + 2);
        const auto loss = torch::mse_loss(model->forward(x), y);
        std::vector<double> mean{loss.template item<double>() / comm.world()};
        comm.all_reduce_sum(mean);
        EXPECT_NEAR(mean[0], losses[step], 2e-6 * losses[step]) << "loss of step " << step;
        engine.backward(loss);
        EXPECT_NEAR(engine.step(1e-2).grad_norm, norms[step], 2e-6 * norms[step]) << "norm of step " << step;
    }
    double sum = 0;
    for (const auto& parameter : model->parameters())
        sum += parameter.detach().to(torch::kDouble).abs().sum().template item<double>();
    EXPECT_NEAR(sum, weight_sum, 2e-6 * weight_sum);
}

template <int stage>
void expect_deepspeed_traces() {
    MpiComm comm;
    if (comm.world() == 1) {
        expect_deepspeed_trace<stage>({1.68167496, 1.11728573, 1.01014495, 1.08780396},
                                      {1.10174847, .697810352, .587876379, .782102704}, 49.3471099);
    } else if (comm.world() == 2) {
        expect_deepspeed_trace<stage>({1.15057969, 1.29260862, 1.23715568, 1.17355704, 1.2362833},
                                      {.540195584, .647198617, .724531174, .514607012, .778817952}, 49.7514096);
    } else {
        GTEST_SKIP() << "traces were recorded on one and two ranks";
    }
}

TEST(Engine, ReplaysDeepSpeedsTraceAtStageZero) { expect_deepspeed_traces<0>(); }
TEST(Engine, ReplaysDeepSpeedsTraceAtStageOne) { expect_deepspeed_traces<1>(); }
TEST(Engine, ReplaysDeepSpeedsTraceAtStageTwo) { expect_deepspeed_traces<2>(); }

}  // namespace
