#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/weights/file_values.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/save_weights.hpp>
#include <strata/zero/in_units.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::storage::Dtype;
using strata::weights::WeightFiles;
using strata_test::TemporaryFolder;
using strata_test::thrown_by;

struct Block : torch::nn::Module {
    explicit Block(std::int64_t width, double scale = 1.0)
        : linear{register_module("linear", torch::nn::Linear(width, width))} {
        const torch::NoGradGuard no_grad;
        linear->weight.mul_(scale);
        counts = register_buffer("counts", torch::zeros({2}, torch::kLong));
    }
    torch::Tensor forward(const torch::Tensor& x) { return linear(x); }
    torch::nn::Linear linear;
    torch::Tensor counts;
};
using UnitBlock = strata::Unit<Block>;

struct Model : torch::nn::Module {
    explicit Model(std::int64_t width = 4) {
        first = register_module("first", std::make_shared<UnitBlock>(width));
        table = register_parameter("table", torch::randn({3, width}));
        second = register_module("second", std::make_shared<UnitBlock>(width, 0.5));
    }
    std::shared_ptr<UnitBlock> first, second;
    torch::Tensor table;
};

std::vector<at::Tensor> values_of(torch::nn::Module& model) {
    std::vector<at::Tensor> values;
    for (const at::Tensor& tensor : model.parameters()) values.push_back(tensor.detach().clone());
    for (const at::Tensor& tensor : model.buffers()) values.push_back(tensor.detach().clone());
    return values;
}
testing::AssertionResult are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " tensors";
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!at::equal(a[i], b[i])) return testing::AssertionFailure() << "tensor " << i << " differs";
    return testing::AssertionSuccess();
}
/// Parameters in another type; Module::to() would take integer buffers along.
void convert(torch::nn::Module& model, at::ScalarType type) {
    for (at::Tensor tensor : model.parameters()) tensor.set_data(tensor.detach().to(type));
}
bool has_memory(const at::Tensor& tensor) { return tensor.storage().nbytes() > 0; }

/// Writes all tensors of a model.
std::vector<std::filesystem::path> save(torch::nn::Module& model, const std::filesystem::path& path,
                                        const strata::weights::SaveOptions& options = {}) {
    std::vector<strata::weights::SavedTensor> tensors;
    for (const auto& item : model.named_parameters()) tensors.push_back({item.key(), item.value()});
    for (const auto& item : model.named_buffers()) tensors.push_back({item.key(), item.value()});
    strata::comm::SelfComm alone;
    return strata::weights::save_weights(
        alone, path, tensors, [](const at::Tensor&) {}, options);
}

TEST(LoadWeights, AModelGetsWhatAnotherOneWrote) {
    const TemporaryFolder folder;
    Model written;
    written.first->counts.fill_(7);
    save(written, folder.path() / "model.safetensors");
    Model model;
    const auto loaded = strata::weights::load_weights(model, WeightFiles{folder.path()});
    EXPECT_TRUE(are_equal(values_of(model), values_of(written)));
    EXPECT_EQ(loaded.tensors, 7U);
    EXPECT_TRUE(loaded.missing.empty());
}

TEST(LoadWeights, TypesAreConvertedAndRounded) {
    const TemporaryFolder folder;
    torch::manual_seed(1);
    Model written;
    const auto values = written.table.detach();
    for (const auto& [dtype, type] : {std::pair{Dtype::bf16, at::kBFloat16}, std::pair{Dtype::f16, at::kHalf}}) {
        save(written, folder.path() / "model.safetensors", {.dtype = dtype});
        EXPECT_EQ(WeightFiles{folder.path()}.find("table")->entry->dtype, dtype);
        EXPECT_EQ(WeightFiles{folder.path()}.find("first.counts")->entry->dtype, Dtype::i64);
        Model model;
        strata::weights::load_weights(model, WeightFiles{folder.path()});
        EXPECT_TRUE(at::equal(model.table.detach(), values.to(type).to(at::kFloat)));
    }
    save(written, folder.path() / "model.safetensors");
    Model half;
    convert(half, at::kBFloat16);
    strata::weights::load_weights(half, WeightFiles{folder.path()});
    EXPECT_TRUE(at::equal(half.table.detach(), values.to(at::kBFloat16)));
    Model twice;
    convert(twice, at::kDouble);
    save(twice, folder.path() / "model.safetensors");
    Model single;
    strata::weights::load_weights(single, WeightFiles{folder.path()});
    EXPECT_TRUE(at::equal(single.table.detach(), twice.table.detach().to(at::kFloat)));
}

TEST(LoadWeights, LongTensorsAreConvertedPieceByPiece) {
    const TemporaryFolder folder;
    struct Table : torch::nn::Module {
        torch::Tensor values = register_buffer("values", torch::randn({3, 300'000}));  // more than two pieces of 1 MiB
    };
    Table written;
    save(written, folder.path() / "model.safetensors");
    Table model;
    model.to(torch::kBFloat16);
    strata::weights::load_weights(model, WeightFiles{folder.path()});
    EXPECT_TRUE(at::equal(model.values, written.values.to(at::kBFloat16)));
    const at::Tensor range = at::empty({5}, at::kDouble);
    strata::weights::read_values(*WeightFiles{folder.path()}.find("values"), 299'998, range);
    EXPECT_TRUE(at::equal(range, written.values.view(-1).narrow(0, 299'998, 5).to(at::kDouble)));
}

TEST(LoadWeights, WhatIsNotContiguousIsFilledInOrder) {
    const TemporaryFolder folder;
    struct Turned : torch::nn::Module {
        torch::Tensor values = register_parameter("values", torch::randn({3, 5}).t());
    };
    Turned written;
    save(written, folder.path() / "model.safetensors");
    Turned model;
    ASSERT_FALSE(model.values.is_contiguous());
    strata::weights::load_weights(model, WeightFiles{folder.path()});
    EXPECT_TRUE(at::equal(model.values, written.values));
}

TEST(LoadWeights, NothingIsWrittenWhereSomethingDoesNotFit) {
    const TemporaryFolder folder;
    Model written{5};
    save(written, folder.path() / "model.safetensors");
    Model model;
    const auto before = values_of(model);
    const auto error = thrown_by([&] { strata::weights::load_weights(model, WeightFiles{folder.path()}); });
    EXPECT_EQ(error.code, Errc::weights_do_not_fit);
    EXPECT_TRUE(error.says("'first.linear.bias' has the shape (5), the model's (4); 'first.linear.weight'"))
        << error.message;
    EXPECT_TRUE(are_equal(values_of(model), before));
}

TEST(LoadWeights, AModelMadeInUnitsHasNoMemoryForThem) {
    const auto model = strata::in_units([] { return std::make_shared<Model>(); });
    EXPECT_FALSE(has_memory(model->first->linear->weight));
    EXPECT_FALSE(has_memory(model->second->linear->bias));
    EXPECT_TRUE(has_memory(model->table));
    EXPECT_TRUE(has_memory(model->first->counts));
    EXPECT_EQ(model->second->linear->weight.sizes(), (std::vector<std::int64_t>{4, 4}));
    EXPECT_TRUE(model->second->linear->weight.requires_grad());
}

/// Private memory of this process that is there, in bytes.
std::int64_t resident() {
    std::ifstream status{"/proc/self/status"};
    std::int64_t kib = 0;
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("RssAnon:")) std::istringstream{line.substr(8)} >> kib;
    return kib * 1024;
}

TEST(LoadWeights, MemoryOfUnitsGoesBackToTheSystem) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#else
    struct Row : torch::nn::Module {
        Row() {
            for (int i = 0; i < 32; ++i)
                units.push_back(register_module("unit" + std::to_string(i), std::make_shared<UnitBlock>(1024)));
        }
        std::vector<std::shared_ptr<UnitBlock>> units;
    };
    constexpr std::int64_t of_a_unit = std::int64_t{4} * 1024 * 1024;
    const auto warm = strata::in_units([] { return std::make_shared<UnitBlock>(1024); });
    const std::int64_t before = resident();
    const auto row = strata::in_units([] { return std::make_shared<Row>(); });
    EXPECT_LT(resident() - before, 3 * of_a_unit);  // and the heap does not keep 32 of them
#endif
}

TEST(LoadWeights, AModelMadeInUnitsHasTheBitsOfOneMadeAtOnce) {
    torch::manual_seed(9);
    Model at_once;
    const at::Tensor next = torch::randn({4});
    torch::manual_seed(9);
    Model in_units = strata::in_units([] { return Model{}; });
    EXPECT_TRUE(at::equal(torch::randn({4}), next)) << "the random numbers behind it are others";
    strata::make_whole(in_units);
    EXPECT_TRUE(are_equal(values_of(in_units), values_of(at_once)));
    EXPECT_TRUE(in_units.first->linear->weight.requires_grad() && in_units.first->linear->weight.is_leaf());
    EXPECT_TRUE(at::equal(in_units.first->forward(torch::ones({1, 4})), at_once.first->forward(torch::ones({1, 4}))));
}

TEST(LoadWeights, MakingUnitsAgainDrawsNoRandomNumbers) {
    torch::manual_seed(9);
    auto model = strata::in_units([] { return std::make_shared<Model>(); });
    const at::Tensor generator = at::detail::getDefaultCPUGenerator().get_state();
    strata::make_whole(*model);
    EXPECT_TRUE(at::equal(at::detail::getDefaultCPUGenerator().get_state(), generator));
}

TEST(LoadWeights, UnitsAreFilledFromFilesWhenTheyGetMemory) {
    const TemporaryFolder folder;
    Model written;
    save(written, folder.path() / "model.safetensors");
    auto model = strata::in_units([] { return std::make_shared<Model>(); });
    EXPECT_EQ(strata::weights::load_weights(*model, WeightFiles{folder.path()}).tensors, 7U);
    EXPECT_FALSE(has_memory(model->first->linear->weight));
    strata::make_whole(*model);
    EXPECT_TRUE(are_equal(values_of(*model), values_of(written)));
}

TEST(LoadWeights, WhatFilesMayLackKeepsTheValueItWouldHave) {
    const TemporaryFolder folder;
    Model written;
    save(written, folder.path() / "model.safetensors",
         {.wanted = [](std::string_view name) { return name != "second.linear.bias"; }});
    torch::manual_seed(4);
    Model at_once;
    torch::manual_seed(4);
    auto model = strata::in_units([] { return std::make_shared<Model>(); });
    const strata::weights::LoadOptions options{
        .may_be_missing = [](std::string_view name) { return name.ends_with("bias"); }};
    EXPECT_EQ(strata::weights::load_weights(*model, WeightFiles{folder.path()}, options).missing,
              std::vector<std::string>{"second.linear.bias"});
    strata::make_whole(*model);
    EXPECT_TRUE(at::equal(model->second->linear->bias, at_once.second->linear->bias));
    EXPECT_TRUE(at::equal(model->second->linear->weight, written.second->linear->weight));
}

TEST(LoadWeights, AUnitInAUnitIsMadeWithTheOuterOne) {
    struct Outer : torch::nn::Module {
        Outer() {
            inner = register_module("inner", std::make_shared<UnitBlock>(3));
            const torch::NoGradGuard no_grad;
            inner->linear->bias.zero_();  // of the outer one's own making
        }
        torch::Tensor forward(const torch::Tensor& x) { return inner->forward(x); }
        std::shared_ptr<UnitBlock> inner;
    };
    torch::manual_seed(2);
    strata::Unit<Outer> at_once;
    torch::manual_seed(2);
    auto model = strata::in_units([] { return std::make_shared<strata::Unit<Outer>>(); });
    EXPECT_FALSE(has_memory(model->inner->linear->weight));
    strata::make_whole(*model);
    EXPECT_TRUE(are_equal(values_of(*model), values_of(at_once)));
}

TEST(LoadWeights, UnitsThatCannotBeMadeAgainKeepTheirMemory) {
    struct Shares : torch::nn::Module {
        explicit Shares(torch::nn::Linear given) : linear{register_module("linear", std::move(given))} {}
        torch::Tensor forward(const torch::Tensor& x) { return linear(x); }
        torch::nn::Linear linear;
    };
    const auto model = strata::in_units([] { return std::make_shared<strata::Unit<Shares>>(torch::nn::Linear(3, 3)); });
    EXPECT_TRUE(has_memory(model->linear->weight));
    EXPECT_TRUE(has_memory(std::make_shared<UnitBlock>(3)->linear->weight)) << "outside of in_units()";
}

TEST(LoadWeights, ValuesAreGivenInTheConstructorOfABlock) {
    struct Late : Model {
        Late() {
            const torch::NoGradGuard no_grad;
            second->linear->weight.zero_();
        }
    };
    const auto error = thrown_by([] { (void)strata::in_units([] { return std::make_shared<Late>(); }); });
    EXPECT_EQ(error.code, Errc::bad_parameter);
    EXPECT_TRUE(error.says("in the constructor of their block")) << error.message;
    EXPECT_TRUE(has_memory(std::make_shared<UnitBlock>(3)->linear->weight)) << "after it threw";
}

TEST(LoadWeights, ParametersThatUnitsShareAreNamed) {
    struct Tied : Model {
        Tied() { second->linear->weight = second->linear->register_parameter("other", first->linear->weight); }
    };
    const auto error = thrown_by([] { (void)strata::in_units([] { return std::make_shared<Tied>(); }); });
    EXPECT_EQ(error.code, Errc::bad_parameter);
    EXPECT_TRUE(error.says("first.linear.weight is shared")) << error.message;
}

TEST(LoadWeights, WeightsAreWrittenAsAskedOrNotAtAll) {
    const TemporaryFolder folder;
    Model model;
    EXPECT_EQ(thrown_by([&] { save(model, folder.path() / "model.bin"); }).code, Errc::bad_value);
    EXPECT_EQ(thrown_by([&] { save(model, folder.path() / "m.safetensors", {.dtype = Dtype::i64}); }).code,
              Errc::bad_value);
    {
        const torch::NoGradGuard no_grad;
        model.table.fill_(1e5);
    }
    const auto error = thrown_by([&] { save(model, folder.path() / "m.safetensors", {.dtype = Dtype::f16}); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("table has values beyond 65504")) << error.message;
    EXPECT_EQ(folder.count_files(), 0);
}

TEST(LoadWeights, AnEarlierCallsFilesGoWhenTheNewOnesAreThere) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "model.safetensors";
    Model model;
    const auto shards = save(model, path, {.max_shard_size = 100});
    ASSERT_GT(shards.size(), 2U);
    EXPECT_EQ(shards.back().filename(), "model.safetensors.index.json");
    EXPECT_TRUE(are_equal(values_of(model), [&] {
        Model read;
        strata::weights::load_weights(read, WeightFiles{folder.path()});
        return values_of(read);
    }()));
    EXPECT_EQ(save(model, path), std::vector{path});
    EXPECT_EQ(folder.count_files(), 1);
    save(model, path, {.max_shard_size = 150, .prefix = "model."});
    EXPECT_FALSE(std::filesystem::exists(path));
    Model read;
    strata::weights::load_weights(read, WeightFiles{folder.path()}, {.prefix = "model."});
    EXPECT_TRUE(are_equal(values_of(read), values_of(model)));
}

}  // namespace
