// The tables of docs/models/ are what the engine foresees for the published sizes: no number of them was typed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/models/diffusion_unet.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/zero/model_outline.hpp>
#include <strata/zero/parameters.hpp>

#include "../../../tools/memory/memory_table.hpp"

namespace {

using strata::zero::outline_of;
using strata::zero::Parameter;

std::int64_t numel_of(const std::vector<Parameter>& parameters) {
    std::int64_t numel = 0;
    for (const Parameter& parameter : parameters) numel += parameter.tensor.numel();
    return numel;
}

void expect_table(const std::string& page, const std::vector<Parameter>& parameters) {
    constexpr std::array worlds{1, 2, 4, 8, 32};
    const std::string table = strata::tools::memory_table(parameters, worlds, std::uint64_t{64} << 30);
    std::ifstream in{std::filesystem::path{STRATA_SOURCE_DIR} / "docs" / "models" / page};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    EXPECT_NE(text.find(table), std::string::npos) << page << " lacks the table\n" << table;
}

TEST(MemoryPages, FluxIsAsForeseen) {
    const auto parameters = outline_of([] { return strata::models::Flux{}; });
    EXPECT_EQ(numel_of(parameters), 11'901'408'320);
    expect_table("flux.md", parameters);
}
TEST(MemoryPages, SdxlIsAsForeseen) {
    const auto parameters = outline_of([] { return strata::models::SdxlUnet{}; });
    EXPECT_EQ(numel_of(parameters), 2'567'463'684);
    expect_table("sdxl.md", parameters);
}
TEST(MemoryPages, Sd15IsAsForeseen) {
    const auto parameters = outline_of([] { return strata::models::Sd15Unet{}; });
    EXPECT_EQ(numel_of(parameters), 859'520'964);
    expect_table("sd15.md", parameters);
}

/// An outline leaves nothing behind: what is made afterwards has its values.
TEST(MemoryPages, AnOutlineHasTheModelsParametersAndNoValues) {
    const auto outlined = outline_of([] { return strata::models::SmallFlux{}; });
    strata::models::SmallFlux model;
    const auto parameters = strata::zero::parameters_of(model);
    ASSERT_EQ(outlined.size(), parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        EXPECT_EQ(outlined[i].name, parameters[i].name);
        EXPECT_EQ(outlined[i].unit, parameters[i].unit) << parameters[i].name;
        EXPECT_EQ(outlined[i].tensor.sizes(), parameters[i].tensor.sizes()) << parameters[i].name;
    }
    EXPECT_GT(torch::nn::Linear(100, 100)->weight.abs().max().item<float>(), 0.05F);
    EXPECT_EQ(torch::ones({3}).sum().item<float>(), 3.0F);
}

}  // namespace
