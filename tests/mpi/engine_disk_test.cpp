// State and parameters on disk: no bit changes, and a disk that fails on one rank is one error on all.

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/offload/swap_file.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/unit.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Cpu;
using strata::Errc;
using strata::Nvme;
using strata::OffloadTarget;
using strata::Optimizer;
using strata::OptimizerState;
using strata::Parameters;
using strata::PureBf16;
using strata::Unit;
using strata::comm::MpiComm;
using strata::offload::IoDirection;
using strata::zero::parameters_of;
using namespace strata_test;
namespace fs = std::filesystem;

using Units = OffloadTarget<Nvme, Parameters>;

void expect_nothing_left(MpiComm& comm, const fs::path& disk) {
    comm.barrier();
    for (const auto& entry : fs::directory_iterator{disk}) {
        EXPECT_EQ(entry.path().filename(), ".strata-swap.lock") << "a run left something behind";
    }
    comm.barrier();
}

/// Trains with every engine, with one micro-batch and with two.
template <class Memory, class... OnDisk>
void expect_equal(MpiComm& comm, Case settings) {
    for (const int accumulation : {1, 2}) {
        settings.accumulation = accumulation;
        const Trace memory = train<Memory>(comm, settings);
        int number = 0;
        const auto expect_memory = [&](const Trace& other) {
            EXPECT_TRUE(memory == other) << "accumulation " << accumulation << ", engine " << ++number;
        };
        (expect_memory(train<OnDisk>(comm, settings)), ...);
    }
    expect_nothing_left(comm, settings.nvme_path);
}

TEST(EngineDisk, ChangesNoBit) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const Case settings{.max_grad_norm = 0.1, .nvme_path = disk.path};
    expect_equal<EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<1>, StateOnDisk>, EngineOf<ZeroStage<2>, StateOnDisk>,
                 EngineOf<ZeroStage<3>, StateOnDisk>, EngineOf<ZeroStage<3>, Units>, EngineOf<ZeroStage<3>, AllOnDisk>>(
        comm, settings);
}

TEST(EngineDisk, ChangesNoBitInOtherPrecisions) {
    MpiComm comm;
    const SharedFolder disk{comm};
    const Case settings{.max_grad_norm = 0.1, .nvme_path = disk.path};
    using Half = Precision<Bf16>;
    expect_equal<EngineOf<ZeroStage<2>, Half>, EngineOf<ZeroStage<2>, Half, StateOnDisk>,
                 EngineOf<ZeroStage<3>, Half, AllOnDisk>,
                 EngineOf<ZeroStage<3>, Half, OffloadTarget<Cpu, OptimizerState>, Units>>(comm, settings);
    using Pure = Precision<PureBf16>;
    expect_equal<EngineOf<ZeroStage<3>, Pure>, EngineOf<ZeroStage<3>, Pure, AllOnDisk>>(comm, settings);
    using Rule = Optimizer<strata::Lamb>;  // every share is one window here, so that its norms have the same bits too
    expect_equal<EngineOf<ZeroStage<3>, Rule>, EngineOf<ZeroStage<3>, Rule, AllOnDisk>>(comm, settings);
}

/// Units that take more than one window of state on up to three ranks.
constexpr int large = 160;
constexpr std::size_t window = std::size_t{64} << 10;  // the smallest there is
static_assert(large * (large + 1) / 3 * 2 * sizeof(float) > window);
using LargeModel = RowModel<large, 3>;
Case large_case(const fs::path& disk) {
    return {.model = make<LargeModel>(),
            .bucket_numel = 1'000'000,
            .groups = true,
            .nvme_path = disk,
            .nvme = {.budget_bytes = 4 * window}};
}

TEST(EngineDisk, SeveralWindowsAShareChangeNoBit) {
    MpiComm comm;
    const SharedFolder disk{comm};
    expect_equal<EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<1>, StateOnDisk>, EngineOf<ZeroStage<2>, StateOnDisk>,
                 EngineOf<ZeroStage<3>, StateOnDisk>, EngineOf<ZeroStage<3>, AllOnDisk>>(comm, large_case(disk.path));
    expect_equal<EngineOf<ZeroStage<2>, Precision<Bf16>>, EngineOf<ZeroStage<3>, Precision<Bf16>, AllOnDisk>>(
        comm, large_case(disk.path));
}

TEST(EngineDisk, TheFirstWindowsAreReadBeforeTheStep) {
    MpiComm comm;
    const SharedFolder disk{comm};
    std::atomic<int> reads = 0;
    Case settings = large_case(disk.path);
    settings.nvme.io.faults.block = [&](IoDirection direction, std::uint64_t, std::size_t length) {
        if (direction == IoDirection::read) ++reads;
        return static_cast<std::int64_t>(length);
    };
    LargeModel model;
    using OnDisk = EngineOf<ZeroStage<3>, StateOnDisk>;
    OnDisk engine{comm, parameters_of(model), options_of<OnDisk>(settings)};
    Trace trace;
    train_step(engine, model, comm, settings, 0, trace);
    for (int step = 1; step < 3; ++step) {
        engine.read_state([](std::string_view, std::int64_t, std::span<const float>) {});  // the last step has written
        const auto loss = model.loss(rows_of(comm, step));
        const int before = reads;
        engine.backward(loss);
        // A disk's thread may take up the order later, but it has it: nothing else reads here.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
        while (reads == before && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
        EXPECT_GT(reads, before);
        engine.step(1e-3);
    }
}

TEST(EngineDisk, ShortReadsAndWritesAreContinued) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Case settings = large_case(disk.path);
    const Trace memory = train<EngineOf<ZeroStage<3>>>(comm, settings);
    const auto one_page = [](IoDirection, std::uint64_t, std::size_t) {
        return static_cast<std::int64_t>(strata::offload::io_alignment);
    };
    settings.nvme.io.faults.block = settings.nvme_units.io.faults.block = one_page;
    EXPECT_TRUE(memory == (train<EngineOf<ZeroStage<3>, AllOnDisk>>(comm, settings)));
}

// ---- faults ---------------------------------------------------------------------------------------------------------

/// Six small units of which two are in memory at a time, so that every pass reads all of them.
struct SixUnits : ToyModel {
    SixUnits() {
        in = register_module("in", torch::nn::Linear(5, 7));
        for (int i = 0; i < 6; ++i)
            row.push_back(register_module("unit" + std::to_string(i), std::make_shared<Unit<Block>>(7)));
    }
    torch::Tensor loss(const torch::Tensor& x) override {
        torch::Tensor h = in(x);
        for (const auto& unit : row) h = unit->forward(h);
        return loss_of(h, x);
    }
    torch::nn::Linear in{nullptr};
    std::vector<std::shared_ptr<Unit<Block>>> row;
};

/// An engine with everything on disk whose last rank can be told to fail.
struct Faulty {
    using OnDisk = EngineOf<ZeroStage<3>, AllOnDisk>;
    explicit Faulty(MpiComm& comm_, const fs::path& path) : comm{comm_}, disk{path} {
        settings.nvme_path = path;
        settings.nvme_units.budget_bytes = 2 * strata::offload::SwapFile::bytes_of(7 * 8 * sizeof(float));
        settings.nvme.budget_bytes = 2 * strata::offload::SwapFile::bytes_of(2 * 7 * 8 * sizeof(float));
        settings.nvme_units.io.faults.block = [this](IoDirection direction, std::uint64_t, std::size_t length) {
            return fails_in(units, direction) ? -EIO : static_cast<std::int64_t>(length);
        };
        settings.nvme.io.faults.block = [this](IoDirection direction, std::uint64_t, std::size_t length) {
            return fails_in(state, direction) ? -EIO : static_cast<std::int64_t>(length);
        };
    }
    enum class Fault { none, read, write, always };
    static bool fails_in(const std::atomic<Fault>& fault, IoDirection direction) {
        return fault == Fault::always || fault == (direction == IoDirection::read ? Fault::read : Fault::write);
    }
    void start() { engine = std::make_unique<OnDisk>(comm, parameters_of(model), options_of<OnDisk>(settings)); }
    void step(int index) {
        engine->backward(model.loss(rows_of(comm, index)));
        engine->step(1e-3);
    }
    [[nodiscard]] bool last() const { return comm.rank() == comm.world() - 1; }
    /// The error is there within two steps: what is still in memory needs no disk.
    strata::Error met() {
        return error_of([&] {
            step(1);
            step(2);
        });
    }
    /// The file that this rank keeps its parameters in.
    [[nodiscard]] fs::path file_of_parameters() const {
        for (const auto& entry : fs::recursive_directory_iterator{disk}) {
            const std::string name = entry.path().filename().string();
            if (name.find("parameters") != std::string::npos &&
                name.find("0000" + std::to_string(comm.rank())) != std::string::npos) {
                return entry.path();
            }
        }
        return {};
    }

    MpiComm& comm;
    fs::path disk;
    std::atomic<Fault> units = Fault::none;  // looked up on threads of the disk
    std::atomic<Fault> state = Fault::none;
    Case settings;
    SixUnits model;
    std::unique_ptr<OnDisk> engine;  // ends before what its disk looks up
};
using Fault = Faulty::Fault;

TEST(EngineDisk, ADiskThatFailsOnOneRankIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const Fault fault : {Fault::read, Fault::write}) {
        for (const bool in_units : {true, false}) {
            Faulty run{comm, disk.path};
            run.start();
            run.step(0);
            if (run.last()) (in_units ? run.units : run.state) = fault;
            EXPECT_EQ(run.met().code(), Errc::io_failed) << in_units << (fault == Fault::read ? " read" : " write");
            EXPECT_EQ(run.met().code(), Errc::io_failed) << "and from then on";
            if (fault == Fault::read && in_units && !run.last()) {
                const std::string rank = "rank " + std::to_string(comm.world() - 1);
                EXPECT_NE(run.met().problem().find(rank + " could not read"), std::string::npos) << run.met().what();
            }
        }
    }
}

TEST(EngineDisk, ADiskThatFailsDuringBackwardIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Faulty run{comm, disk.path};
    run.start();
    run.step(0);
    const auto loss = run.model.loss(rows_of(comm, 1));
    if (run.last()) run.units = Fault::read;
    EXPECT_EQ(error_of([&] { run.engine->backward(loss); }).code(), Errc::io_failed);
    EXPECT_EQ(run.met().code(), Errc::io_failed);
}

TEST(EngineDisk, ADiskThatFailsAtTheStartIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const bool in_units : {true, false}) {
        Faulty run{comm, disk.path};
        if (run.last()) (in_units ? run.units : run.state) = Fault::always;
        EXPECT_EQ(error_of([&] { run.start(); }).code(), Errc::io_failed) << in_units;
    }
    expect_nothing_left(comm, disk.path);
}

TEST(EngineDisk, AFullDiskIsFoundAtTheStart) {
    MpiComm comm;
    const SharedFolder disk{comm};
    for (const bool in_units : {true, false}) {
        Faulty run{comm, disk.path};
        (in_units ? run.settings.nvme_units : run.settings.nvme).file.preallocate = [&](int descriptor,
                                                                                        std::uint64_t bytes) {
            return run.last() ? ENOSPC : ::posix_fallocate(descriptor, 0, static_cast<::off_t>(bytes));
        };
        const auto error = error_of([&] { run.start(); });
        EXPECT_EQ(error.code(), Errc::no_space) << in_units;
        EXPECT_NE(error.problem().find(in_units ? "parameters" : "optimizer"), std::string::npos) << error.what();
    }
    expect_nothing_left(comm, disk.path);
}

TEST(EngineDisk, AFileThatWasCutIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Faulty run{comm, disk.path};
    run.start();
    run.step(0);
    comm.barrier();
    if (run.last()) fs::resize_file(run.file_of_parameters(), 4096);
    comm.barrier();
    const auto error = run.met();
    EXPECT_EQ(error.code(), run.last() ? Errc::stale_swap : Errc::io_failed) << error.what();
}

TEST(EngineDisk, ADiskThatIsMissingIsReportedByAll) {
    MpiComm comm;
    const SharedFolder disk{comm};
    Model<Block> model;
    using OnDisk = EngineOf<ZeroStage<1>, StateOnDisk>;
    const auto refusal = [&](const fs::path& path) {
        return error_of([&] { OnDisk{comm, parameters_of(model), {.tiers = {.nvme_path = path}}}; }).code();
    };
    EXPECT_EQ(refusal(""), Errc::bad_value);
    EXPECT_EQ(refusal(comm.rank() == 0 ? disk.path / "not there" : disk.path), Errc::bad_reference);
    EXPECT_TRUE(is_bad_input(Errc::bad_reference) && is_bad_input(Errc::bad_value));
}

}  // namespace
