// The engine on a device whose memory the host may not touch gives the bits of the engine on the CPU.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/mpi_comm.hpp>
#include <strata/comm/self_comm.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/policy/ema.hpp>
#include <strata/policy/recompute.hpp>
#include <strata/policy/setup.hpp>
#include <strata/zero/engine.hpp>
#include <strata/zero/parameters.hpp>

#include "../support/far_device.hpp"
#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using strata::Cpu;
using strata::Ema;
using strata::Errc;
using strata::Lamb;
using strata::Nvme;
using strata::OffloadTarget;
using strata::Optimizer;
using strata::OptimizerState;
using strata::Parameters;
using strata::PureBf16;
using strata::Recompute;
using strata::comm::MpiComm;
using strata::comm::SelfComm;
using strata::zero::MemoryKind;
using strata::zero::parameters_of;
using strata::zero::Place;
using namespace strata_test;

template <class Comm, class... Policies>
using FarEngine = strata::zero::Engine<strata::Setup<Policies...>, Comm, far::Device>;
template <class... Policies>
using Far = FarEngine<MpiComm, Policies...>;

/// A unit and a half are frozen after one step and trained again after another.
const std::map<int, std::function<bool(std::string_view)>> freeze_and_train{
    {1, [](std::string_view name) { return !name.starts_with("first") && name != "second.linear.weight"; }},
    {3, [](std::string_view) { return true; }}};

/// Trains on the CPU and on the device, with and without accumulation, clipping and changes of what is trained.
template <class OnCpu, class... OnDevice>
void expect_the_bits_of(const MakeModel& model = make<UnitModel>()) {
    MpiComm comm;
    const SharedFolder folder{comm};
    for (const Case& settings :
         {Case{.model = model, .nvme_path = folder.path},
          Case{.model = model, .accumulation = 2, .max_grad_norm = 0.1, .nvme_path = folder.path},
          Case{.model = model, .groups = true, .nvme_path = folder.path},
          Case{.model = model, .nvme_path = folder.path, .trainable = freeze_and_train}}) {
        const Trace expected = train<OnCpu>(comm, settings);
        int number = 0;
        const auto expect_same = [&](const Trace& found) {
            ++number;
            EXPECT_EQ(expected.losses, found.losses) << "engine " << number;
            EXPECT_EQ(expected.norms, found.norms) << "engine " << number;
            EXPECT_TRUE(expected.weights == found.weights) << "engine " << number;
        };
        (expect_same(train<OnDevice>(comm, settings)), ...);
    }
}

TEST(EngineDevice, StagesGiveTheBitsOfTheCpu) {
    expect_the_bits_of<EngineOf<ZeroStage<0>>, Far<ZeroStage<0>>, Far<ZeroStage<1>>, Far<ZeroStage<2>>,
                       Far<ZeroStage<3>>>();
}
TEST(EngineDevice, StateOnTheHostGivesTheSameBits) {
    expect_the_bits_of<EngineOf<ZeroStage<0>>, Far<ZeroStage<2>, OffloadTarget<Cpu>>,
                       Far<ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>>,
                       Far<ZeroStage<3>, OffloadTarget<Cpu, Parameters>>>();
}
TEST(EngineDevice, StateOnDiskGivesTheSameBits) {
    expect_the_bits_of<EngineOf<ZeroStage<0>>, Far<ZeroStage<1>, OffloadTarget<Nvme>>,
                       Far<ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>>();
}
TEST(EngineDevice, MastersGiveTheSameBits) {
    using Half = Precision<Bf16>;
    expect_the_bits_of<EngineOf<ZeroStage<0>, Half>, Far<ZeroStage<0>, Half>, Far<ZeroStage<3>, Half>,
                       Far<ZeroStage<2>, Half, OffloadTarget<Cpu>>>();
}
TEST(EngineDevice, StochasticRoundingGivesTheSameBits) {
    using Pure = Precision<PureBf16>;
    expect_the_bits_of<EngineOf<ZeroStage<0>, Pure>, Far<ZeroStage<2>, Pure>,
                       Far<ZeroStage<3>, Pure, OffloadTarget<Cpu>>>();
}
TEST(EngineDevice, NormsOfWholeParametersGiveTheSameBits) {
    expect_the_bits_of<EngineOf<ZeroStage<0>, Optimizer<Lamb>>, Far<ZeroStage<0>, Optimizer<Lamb>>,
                       Far<ZeroStage<3>, Optimizer<Lamb>>>();
}
TEST(EngineDevice, RecomputedBlocksGiveTheSameBits) {
    expect_the_bits_of<EngineOf<ZeroStage<0>>, Far<ZeroStage<3>, Recompute<strata::Blocks>>>();
}

TEST(EngineDevice, OneRankNeedsNoMpi) {
    SelfComm comm;
    using OnCpu = strata::zero::Engine<strata::Setup<ZeroStage<2>>, SelfComm>;
    const Case settings{.model = make<UnitModel>(), .accumulation = 2};
    EXPECT_TRUE((train<OnCpu>(comm, settings) == train<FarEngine<SelfComm, ZeroStage<2>>>(comm, settings)));
}

/// Takes device memory, as NCCL does: buffers must be complete when it is called.
class FarComm {
public:
    static constexpr bool takes_device_memory = true;
    explicit FarComm(MpiComm& host) : host_{host} {}
    [[nodiscard]] int rank() const { return host_.rank(); }
    [[nodiscard]] int world() const { return host_.world(); }
    [[nodiscard]] MpiComm& host() const { return host_; }
    void barrier() { host_.barrier(); }
    std::vector<std::string> all_gather_varied(std::string_view mine) { return host_.all_gather_varied(mine); }
    void all_reduce_sum(std::span<double> values) { host_.all_reduce_sum(values); }
    [[noreturn]] void abort(int status) noexcept { host_.abort(status); }
    void label(std::string_view text) { host_.label(text); }

    void broadcast(std::span<std::byte> bytes, int root) { host_.broadcast(complete(bytes), root); }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
        host_.all_gather(complete(mine), far::on_host(all));
    }
    template <class In, class Out>
    void reduce_scatter(std::span<const In> all, std::span<Out> mine) {
        host_.reduce_scatter(complete(all), far::on_host(mine));
    }

private:
    template <class T>
    std::span<T> complete(std::span<T> memory) {
        const std::int64_t finishes = far::counts().finishes;
        EXPECT_GT(finishes, std::exchange(finishes_, finishes)) << "the stream was not waited for before a collective";
        return far::on_host(memory);
    }
    MpiComm& host_;
    std::int64_t finishes_ = far::counts().finishes;
};

TEST(EngineDevice, ACommunicatorForDeviceMemoryGetsIt) {
    MpiComm mpi;
    FarComm comm{mpi};
    const SharedFolder folder{mpi};
    for (const int accumulation : {1, 2}) {
        const Case settings{.model = make<UnitModel>(), .accumulation = accumulation, .nvme_path = folder.path};
        const Trace expected = train<EngineOf<ZeroStage<0>>>(mpi, settings);
        EXPECT_TRUE((expected == train<FarEngine<FarComm, ZeroStage<1>>>(comm, settings)));
        EXPECT_TRUE((expected == train<FarEngine<FarComm, ZeroStage<3>>>(comm, settings)));
        EXPECT_TRUE(
            (expected ==
             train<FarEngine<FarComm, ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>>>(comm, settings)));
    }
}

/// Trains two steps, goes on in another engine with what a checkpoint holds, and looks at the average.
template <class From, class To>
std::vector<float> average_after_moving(MpiComm& comm) {
    torch::manual_seed(1);
    const Case settings;
    const auto first = settings.model();
    first->to(device_for<From>());
    From from{comm, parameters_of(*first), options_of<From>(settings)};
    Trace trace;
    for (int step = 0; step < 2; ++step) train_step(from, *first, comm, settings, step, trace);
    const auto second = settings.model();
    second->to(device_for<To>());
    To to{comm, parameters_of(*second), options_of<To>(settings)};
    move_state(comm, from, to);
    for (int step = 2; step < 4; ++step) train_step(to, *second, comm, settings, step, trace);
    const std::vector<float> before = weights_of(to, *second);
    to.swap_average();
    std::vector<float> values = weights_of(to, *second);
    EXPECT_NE(before, values);
    to.swap_average();
    EXPECT_EQ(before, weights_of(to, *second));
    values.insert(values.end(), before.begin(), before.end());
    return values;
}

TEST(EngineDevice, CheckpointsAndAveragesMoveBetweenDevices) {
    MpiComm comm;
    using OnCpu = EngineOf<ZeroStage<3>, Ema<Cpu>>;
    const auto expected = average_after_moving<OnCpu, OnCpu>(comm);
    using Sharded = Far<ZeroStage<3>, Ema<Cpu>>;
    using Replicated = Far<ZeroStage<0>, Ema<strata::Device>>;
    EXPECT_EQ(expected, (average_after_moving<OnCpu, Sharded>(comm)));
    EXPECT_EQ(expected, (average_after_moving<Sharded, OnCpu>(comm)));
    EXPECT_EQ(expected, (average_after_moving<Sharded, Replicated>(comm)));
    EXPECT_EQ(expected,
              (average_after_moving<Replicated, Far<ZeroStage<2>, OffloadTarget<Cpu>, Ema<strata::Device>>>(comm)));
}

TEST(EngineDevice, BytesAreCountedWhereTheyAre) {
    MpiComm comm;
    const auto model = std::make_shared<UnitModel>();
    model->to(far::device());
    using Engine = Far<ZeroStage<2>, Precision<Bf16>, OffloadTarget<Cpu>>;
    const std::int64_t before = far::bytes_in_use();
    {
        Engine engine{comm, parameters_of(*model)};
        const auto& memory = engine.memory();
        EXPECT_GT(memory.of(MemoryKind::parameters, Place::device).now, 0);
        EXPECT_GT(memory.of(MemoryKind::state, Place::host).now, 0);
        EXPECT_EQ(memory.of(MemoryKind::state, Place::device).now, 0);
        EXPECT_EQ(memory.of(MemoryKind::parameters, Place::host).now, 0);
        engine.backward(model->loss(rows_of(comm, 0).to(far::device())));
        engine.step(1e-2);
        EXPECT_EQ(memory.of(MemoryKind::buffers, Place::device).now, 0) << "what was copied for the update is gone";
    }
    EXPECT_LE(far::bytes_in_use(), before);
}

TEST(EngineDevice, WorkOfTheChannelWaitsForTheDevice) {
    MpiComm comm;
    const auto before = far::counts();
    train<Far<ZeroStage<3>>>(comm, {.model = make<UnitModel>()});
    const auto after = far::counts();
    EXPECT_EQ(after.waits - before.waits, after.fences - before.fences);
    EXPECT_EQ(comm.world() > 1, after.fences > before.fences) << "alone nothing waits";
}

TEST(EngineDevice, AModelOnTheHostIsMovedBucketByBucket) {
    MpiComm comm;
    const auto moved = [&](auto engine_type, bool by_hand) {
        using Engine = typename decltype(engine_type)::type;
        torch::manual_seed(1);
        UnitModel model;
        model.first->linear->weight.requires_grad_(false);  // frozen ones of a unit and outside of units
        model.gain.requires_grad_(false);
        if (by_hand) model.to(far::device());
        Engine engine{comm, parameters_of(model), {.bucket_numel = 60}};
        for (const auto& parameter : model.parameters()) EXPECT_EQ(parameter.device(), far::device());
        engine.backward(model.loss(rows_of(comm, 0).to(far::device())));
        engine.step(1e-2);
        return weights_of(engine, model);
    };
    using std::type_identity;
    EXPECT_EQ(moved(type_identity<Far<ZeroStage<1>>>{}, false), moved(type_identity<Far<ZeroStage<1>>>{}, true));
    EXPECT_EQ(moved(type_identity<Far<ZeroStage<3>>>{}, false), moved(type_identity<Far<ZeroStage<3>>>{}, true));
}

TEST(EngineDevice, AModelOnAnotherDeviceIsRefused) {
    MpiComm comm;
    UnitModel model;
    model.to(far::device());
    const auto error = error_of([&] { EngineOf<ZeroStage<1>>{comm, parameters_of(model)}; });
    EXPECT_EQ(error.code(), Errc::bad_parameter);
    EXPECT_NE(std::string{error.what()}.find("this engine trains on cpu"), std::string::npos) << error.what();
}

/// More elements than memory, so that nothing large is there before the engine asks.
struct Huge : torch::nn::Module {
    Huge() { register_parameter("weight", torch::zeros({1}).expand({std::int64_t{1} << 28})); }
};

TEST(EngineDevice, MoreThanTheDeviceHasIsRefusedWithAFix) {
    MpiComm comm;
    Huge model;
    const auto error = error_of([&] { Far<ZeroStage<0>>{comm, parameters_of(model)}; });
    EXPECT_EQ(error.code(), Errc::not_enough_memory) << error.what();
    EXPECT_NE(std::string{error.what()}.find("OffloadTarget<Cpu>"), std::string::npos) << error.what();
}

}  // namespace
