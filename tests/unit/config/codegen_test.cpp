#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include <strata/config/codegen.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::thrown_by;

std::string header_of(const Intent& intent) { return generated_header(intent, {"mine", "ds_config.json"}); }
bool has_line(const std::string& header, const std::string& line) {
    return header.find("\n" + line + "\n") != std::string::npos;
}

TEST(Codegen, ACompositionIsATypeWithItsNamespaces) {
    Intent intent;
    EXPECT_TRUE(has_line(header_of(intent), "using Setup = strata::Setup<>;"));
    intent.composition = {.stage = 3,
                          .state = KeptOn{TierName::cpu, TierName::nvme, 30},
                          .parameters = KeptOn::all_on(TierName::nvme),
                          .precision = FormatName::pure_bf16,
                          .recompute = 2};
    EXPECT_TRUE(
        has_line(header_of(intent),
                 "using Setup = strata::Setup<strata::ZeroStage<3>, strata::OffloadTarget<strata::Split<strata::Cpu, "
                 "strata::Nvme, 30>>, "
                 "strata::OffloadTarget<strata::Nvme, strata::Parameters>, strata::Precision<strata::PureBf16>, "
                 "strata::Recompute<strata::EveryOther<2>>>;"))
        << header_of(intent);
}

TEST(Codegen, NumbersAreStatementsInTheirOwnTypes) {
    Intent intent;
    intent.set("schedule.lr", std::int64_t{1}, "/somewhere/ds_config.json:4:5");
    intent.set("schedule.shape", std::string{"cosine_with_restarts"});
    intent.set("seed", std::int64_t{18});
    intent.set("reserve_checkpoint_room", false);
    intent.set("collective_timeout", std::int64_t{90});
    intent.set("engine.tiers.nvme_path", std::string{"/disk \"one\"\\\n7"});
    intent.set("engine.on_non_finite", std::string{"skip"});
    intent.set("engine.update.beta1", 0.1);
    const std::string header = header_of(intent);
    EXPECT_TRUE(has_line(header, "inline constexpr auto schedule_lr = 1.0;  // ds_config.json:4:5")) << header;
    EXPECT_TRUE(
        has_line(header, "inline constexpr auto schedule_shape = strata::ScheduleShape::cosine_with_restarts;"));
    EXPECT_TRUE(has_line(header, "inline constexpr auto seed = 18;"));
    EXPECT_TRUE(has_line(header, "inline constexpr auto reserve_checkpoint_room = false;"));
    EXPECT_TRUE(has_line(header, "inline constexpr auto collective_timeout = std::chrono::seconds{90};"));
    EXPECT_TRUE(has_line(header, "inline constexpr auto engine_tiers_nvme_path = \"/disk \\\"one\\\"\\\\\\0127\";"))
        << header;
    EXPECT_TRUE(has_line(header, "inline constexpr auto engine_on_non_finite = strata::zero::OnNonFinite::skip;"));
    EXPECT_TRUE(has_line(header, "inline constexpr auto engine_update_beta1 = 0.1;"));
    EXPECT_TRUE(has_line(header, "    options.engine.update.beta1 = given::engine_update_beta1;"));
}

TEST(Codegen, ASchedulesTopMayBeTheLearningRate) {
    Intent intent;
    intent.rate = strata::optim::WarmupLr{.min_lr = 0, .max_lr = 2e-4, .warmup_steps = 7};
    EXPECT_NE(
        header_of(intent).find("strata::optim::WarmupLr{.min_lr = 0.0, .max_lr = 2e-04, .warmup_steps = 7, .curve = "
                               "strata::optim::WarmupCurve::log}"),
        std::string::npos)
        << header_of(intent);
    intent.rate_follows_lr = true;
    EXPECT_NE(header_of(intent).find(".max_lr = options.schedule.lr,"), std::string::npos);
}

TEST(Codegen, WhatIsLeftToTheProgramIsAComment) {
    Intent intent;
    intent.automatic.push_back({"optimizer.params.lr\n#error \\", "schedule.lr\\"});
    const std::string header = header_of(intent);
    EXPECT_TRUE(
        has_line(header, "    // optimizer.params.lr\\n#error \\ is \"auto\": the program decides schedule.lr\\."))
        << header;
}

TEST(Codegen, NumbersOutOfRangeAreRefusedTogether) {
    Intent intent;
    intent.set("engine.max_grad_norm", -1.0, "ds.json:1:2");
    intent.set("checkpoints_kept", std::int64_t{0}, "ds.json:3:4");
    const auto error = thrown_by([&] { static_cast<void>(header_of(intent)); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("ds.json:1:2") && error.says("ds.json:3:4")) << error.message;
}

TEST(Codegen, NamesOfFilesBecomeIdentifiers) {
    EXPECT_EQ(identifier_of("configs/ds-config.zero2.json"), "ds_config_zero2");
    EXPECT_EQ(identifier_of("2nodes.json"), "config_2nodes");
    EXPECT_EQ(identifier_of("über.json"), "config_ber");
    EXPECT_EQ(identifier_of("a__b.json"), "a_b");
    EXPECT_EQ(identifier_of("_Big.json"), "config_Big");
    for (const char* word : {"default", "class", "std", "strata", "xor", "alignas", "xor_eq"})
        EXPECT_EQ(identifier_of(std::string{word} + ".json"), std::string{"config_"} + word);
    EXPECT_EQ(identifier_of("defaults.json"), "defaults");
    EXPECT_EQ(identifier_of(""), "config_");
}

}  // namespace
