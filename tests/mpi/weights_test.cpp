// A model that is made unit by unit, and from files, has the bits of one that is made at once; and files have the bits of a model.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/zero/in_units.hpp>

#include "toy_engines.hpp"
#include "toy_model.hpp"

namespace {

using namespace strata_test;
using strata::Errc;
using strata::comm::MpiComm;
using strata::weights::WeightFiles;

/// The same model, made unit by unit.
Case in_units(Case settings) {
    settings.model = [make = settings.model] { return strata::in_units(make); };
    return settings;
}
/// The same model with other values, and then those of files.
Case from_files(Case settings, const WeightFiles& files, bool in_units) {
    settings.model = [make = settings.model, files, in_units] {
        torch::manual_seed(77);
        const auto model = in_units ? strata::in_units(make) : make();
        strata::weights::load_weights(*model, files);
        return model;
    };
    return settings;
}

/// Parameters and buffers of a model under their names.
std::vector<strata::weights::SavedTensor> saved_tensors_of(torch::nn::Module& model) {
    std::vector<strata::weights::SavedTensor> tensors;
    for (const auto& item : model.named_parameters()) tensors.push_back({item.key(), item.value()});
    for (const auto& item : model.named_buffers()) tensors.push_back({item.key(), item.value()});
    return tensors;
}
template <class Engine>
void save(MpiComm& comm, Engine& engine, torch::nn::Module& model, const std::filesystem::path& path,
          const strata::weights::SaveOptions& options = {}) {
    strata::weights::save_weights(
        comm, path, saved_tensors_of(model), [&](const at::Tensor& tensor) { engine.hold_unit_of(tensor); }, options);
    engine.drop_units();
}

/// Freezes a block and a bias of the other one.
std::shared_ptr<ToyModel> partly_frozen(std::shared_ptr<ToyModel> model) {
    for (const auto& item : model->named_parameters())
        if (item.key().starts_with("first.") || item.key() == "second.linear.bias")
            item.value().set_requires_grad(false);
    return model;
}

template <class Engine>
class OfEngine : public testing::Test {
protected:
    /// Settings for any of the engines.
    Case settings() {
        Case found;
        found.nvme_path = folder_.path;
        return found;
    }
    /// A file with the values that rank 0 trains from.
    WeightFiles written() {
        const auto path = folder_.path / "whole" / "model.safetensors";
        torch::manual_seed(1);
        const auto model = std::make_shared<UnitModel>();
        strata::weights::save_weights(comm_, path, saved_tensors_of(*model), [](const at::Tensor&) {});
        return WeightFiles{path};
    }
    MpiComm comm_;
    SharedFolder<MpiComm> folder_{comm_};
};
using Engines = testing::Types<EngineOf<ZeroStage<0>>, EngineOf<ZeroStage<2>>, EngineOf<ZeroStage<3>>,
                               EngineOf<ZeroStage<3>, Precision<Bf16>>, EngineOf<ZeroStage<3>, AllOnDisk>,
                               EngineOf<ZeroStage<3>, strata::Ema<strata::Cpu>>>;
TYPED_TEST_SUITE_P(OfEngine);

TYPED_TEST_P(OfEngine, AModelMadeUnitByUnitTrainsLikeOneMadeAtOnce) {
    const Case at_once = this->settings();
    EXPECT_EQ(train<TypeParam>(this->comm_, in_units(at_once)), train<TypeParam>(this->comm_, at_once));
}

TYPED_TEST_P(OfEngine, AndSoDoesOneThatIsFrozenInPart) {
    Case at_once = this->settings();
    at_once.model = [] { return partly_frozen(std::make_shared<UnitModel>()); };
    Case by_unit = this->settings();
    by_unit.model = [] { return partly_frozen(strata::in_units([] { return std::make_shared<UnitModel>(); })); };
    for (Case* const settings : {&at_once, &by_unit}) settings->trainable[2] = [](std::string_view) { return true; };
    EXPECT_EQ(train<TypeParam>(this->comm_, by_unit), train<TypeParam>(this->comm_, at_once));
}

TYPED_TEST_P(OfEngine, ValuesOfFilesAreThoseOfTheModelThatWroteThem) {
    const WeightFiles files = this->written();
    const Case whole = this->settings();
    const Trace expected = train<TypeParam>(this->comm_, whole);
    EXPECT_EQ(train<TypeParam>(this->comm_, from_files(whole, files, false)), expected);
    EXPECT_EQ(train<TypeParam>(this->comm_, from_files(whole, files, true)), expected);
}

TYPED_TEST_P(OfEngine, FrozenPartsAreReadFromFilesToo) {
    const WeightFiles files = this->written();
    Case whole = this->settings();
    whole.model = [] { return partly_frozen(std::make_shared<UnitModel>()); };
    Case by_unit = whole;
    by_unit.model = [files] {
        torch::manual_seed(77);
        auto model = partly_frozen(strata::in_units([] { return std::make_shared<UnitModel>(); }));
        strata::weights::load_weights(*model, files);
        return model;
    };
    EXPECT_EQ(train<TypeParam>(this->comm_, by_unit), train<TypeParam>(this->comm_, whole));
}

TYPED_TEST_P(OfEngine, AFileHasTheBitsOfTheModelInOnePieceOrMany) {
    torch::manual_seed(5);
    const auto model = std::make_shared<UnitModel>();
    TypeParam engine{this->comm_, strata::zero::parameters_of(*model), options_of<TypeParam>(this->settings())};
    Trace trace;
    for (int step = 0; step < 2; ++step) train_step(engine, *model, this->comm_, this->settings(), step, trace);
    std::vector<std::pair<std::string, at::Tensor>> values;
    engine.with_whole_model([&] {
        for (const auto& saved : saved_tensors_of(*model))
            values.emplace_back(saved.name, saved.tensor.detach().to(at::kFloat).clone());
    });
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{200}}) {
        const auto path = this->folder_.path / std::to_string(size) / "model.safetensors";
        save(this->comm_, engine, *model, path, {.dtype = strata::storage::Dtype::f32, .max_shard_size = size});
        const WeightFiles files{path.parent_path()};
        EXPECT_EQ(files.metadata().at("format"), "pt");
        EXPECT_EQ(files.files().size() > 1, size > 0);
        ASSERT_EQ(files.tensors().size(), values.size());
        for (const auto& [name, expected] : values) {
            ASSERT_NE(files.find(name), nullptr) << name;
            EXPECT_EQ(files.find(name)->entry->dtype, strata::storage::Dtype::f32);
            const at::Tensor found = at::empty(expected.sizes());
            strata::weights::read_values(*files.find(name), 0, found.view(-1));
            EXPECT_TRUE(at::equal(found, expected)) << name;
        }
    }
}

TYPED_TEST_P(OfEngine, ADamagedFileIsAnErrorOnAllRanks) {
    const WeightFiles files = this->written();
    this->comm_.barrier();
    if (this->comm_.rank() == 0)
        std::filesystem::resize_file(files.files().front(), 700);  // the header and a few tensors
    this->comm_.barrier();
    torch::manual_seed(1);
    const auto model = strata::in_units([] { return std::make_shared<UnitModel>(); });
    strata::weights::LoadOptions options;  // what has memory would be read at once
    options.may_be_left = [](std::string_view) { return true; };
    const auto units_only = [&] {
        std::vector<strata::weights::LoadTarget> targets;
        for (auto& target : strata::weights::load_targets_of(*model))
            if (target.link && target.link->deferred) targets.push_back(target);
        strata::weights::load_into(targets, files, options);
        TypeParam{this->comm_, strata::zero::parameters_of(*model), options_of<TypeParam>(this->settings())};
    };
    EXPECT_EQ(error_of(units_only).code(), Errc::corrupt_safetensors);
}

REGISTER_TYPED_TEST_SUITE_P(OfEngine, AModelMadeUnitByUnitTrainsLikeOneMadeAtOnce, AndSoDoesOneThatIsFrozenInPart,
                            ValuesOfFilesAreThoseOfTheModelThatWroteThem, FrozenPartsAreReadFromFilesToo,
                            AFileHasTheBitsOfTheModelInOnePieceOrMany, ADamagedFileIsAnErrorOnAllRanks);
INSTANTIATE_TYPED_TEST_SUITE_P(Weights, OfEngine, Engines);

using Stage3 = EngineOf<ZeroStage<3>>;

/// What other tests of weights need.
class Weights : public testing::Test {
protected:
    MpiComm comm_;
    SharedFolder<MpiComm> folder_{comm_};
};

TEST_F(Weights, FromFilesNoRankHasAUnitWhole) {
    using Row = RowModel<64, 3>;
    torch::manual_seed(1);
    const auto path = folder_.path / "model.safetensors";
    strata::weights::save_weights(comm_, path, saved_tensors_of(*std::make_shared<Row>()), [](const at::Tensor&) {});
    const auto model = strata::in_units([] { return std::make_shared<Row>(); });
    strata::weights::load_weights(*model, WeightFiles{path});
    Stage3 engine{comm_, strata::zero::parameters_of(*model), {}};
    if (comm_.world() == 1) return;
    using strata::zero::MemoryKind;
    using strata::zero::Place;
    constexpr std::int64_t unit = 64 * 65;
    const std::int64_t share = (unit + comm_.world() - 1) / comm_.world();
    EXPECT_EQ(engine.memory().of(MemoryKind::gathered, Place::device).peak, 0);
    // Its share in fp32 and as the shard; the layer outside of units in fp32, which is smaller.
    // Its share in fp32, as the shard has it, and of the state; a bucket of the layer outside of units is smaller.
    EXPECT_LE(engine.memory().of(MemoryKind::buffers, Place::device).peak, 3 * share * 4);
    EXPECT_GE(engine.memory().of(MemoryKind::buffers, Place::device).peak, 2 * share * 4);
}

TEST_F(Weights, ModelsOfOtherFilesAreDifferentModels) {
    if (comm_.world() == 1) return;
    torch::manual_seed(1);
    const auto whole = std::make_shared<UnitModel>();
    const auto path = folder_.path / "model.safetensors";
    strata::weights::save_weights(comm_, path, saved_tensors_of(*whole), [](const at::Tensor&) {});
    const auto model = strata::in_units([] { return std::make_shared<UnitModel>(); });
    if (comm_.rank() == 1) strata::weights::load_weights(*model, WeightFiles{path});
    const auto error = error_of([&] { Stage3{comm_, strata::zero::parameters_of(*model), {}}; });
    EXPECT_EQ(error.code(), Errc::rank_mismatch);
}

/// A block with numbers that do not come from libtorch's generator.
struct Counting : torch::nn::Module {
    explicit Counting(int width)
        : weight{register_parameter("weight", torch::full({width}, static_cast<float>(++made)))} {}
    torch::Tensor forward(const torch::Tensor& x) { return x * weight; }
    torch::Tensor weight;
    static inline int made = 0;
};
struct CountingModel : torch::nn::Module {
    std::shared_ptr<strata::Unit<Counting>> unit = register_module("unit", std::make_shared<strata::Unit<Counting>>(8));
};

TEST_F(Weights, ABlockThatIsMadeOtherwiseTheSecondTimeIsAnErrorOnAllRanks) {
    const auto model = strata::in_units([] { return std::make_shared<CountingModel>(); });
    const auto error = error_of([&] { Stage3{comm_, strata::zero::parameters_of(*model), {}}; });
    EXPECT_EQ(error.code(), Errc::bad_parameter);
    EXPECT_NE(std::string{error.what()}.find("other values when its block is constructed for a second time"),
              std::string::npos)
        << error.what();
}

TEST_F(Weights, AFileOfStage3OnAllRanksGoesOnAtStage0OnOne) {
    using Alone = strata::zero::Engine<strata::Setup<ZeroStage<0>>, strata::comm::SelfComm>;
    torch::manual_seed(3);
    const auto model = strata::in_units([] { return std::make_shared<UnitModel>(); });
    Stage3 engine{comm_, strata::zero::parameters_of(*model), {}};
    Trace trace;
    for (int step = 0; step < 2; ++step) train_step(engine, *model, comm_, Case{}, step, trace);
    const auto path = folder_.path / "model.safetensors";
    save(comm_, engine, *model, path);

    const auto copy = std::make_shared<UnitModel>();
    engine.with_whole_model([&] {
        const torch::NoGradGuard no_grad;
        auto to = copy->named_parameters();
        for (const auto& item : model->named_parameters()) to[item.key()].copy_(item.value());
    });
    const auto loaded = strata::in_units([] { return std::make_shared<UnitModel>(); });
    strata::weights::load_weights(*loaded, WeightFiles{path});
    const auto go_on = [](const std::shared_ptr<UnitModel>& next) {
        strata::comm::SelfComm alone;
        Alone next_engine{alone, strata::zero::parameters_of(*next), {}};
        Trace found;
        for (int step = 2; step < 5; ++step) train_step(next_engine, *next, alone, Case{}, step, found);
        found.weights = weights_of(next_engine, *next);
        return found;
    };
    const Trace expected = go_on(copy);
    EXPECT_EQ(go_on(loaded), expected);
    EXPECT_EQ(expected.losses.size(), 3U);
}

}  // namespace
