// Files of LyCORIS' arguments: read, or refused with everything in them that strata does not do alike.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/adapter_settings.hpp>
#include <strata/config/lycoris_config.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using Names = std::vector<std::string>;

LycorisConfig read(std::string_view json) {
    Problems problems;
    LycorisConfig config = read_lycoris(parse_json(json, "lycoris.json", JsonDialect::relaxed), problems);
    problems.finish();
    return config;
}
auto refused(std::string_view json) {
    return strata_test::thrown_by([&] { (void)read(json); });
}

TEST(LycorisConfig, TheUsualLokrIsRead) {
    const LycorisConfig config = read(R"({"algo": "lokr", "multiplier": 1.0, "linear_dim": 10000, "linear_alpha": 1,
        "factor": 16, "bypass_mode": true, "apply_preset": {"target_module": ["Attention", "FeedForward"],
        "module_algo_map": {"Attention": {"factor": 16}, "FeedForward": {"factor": 16, "algo": "lokr"}}}})");
    EXPECT_EQ(config.algo, LycorisAlgo::lokr);
    EXPECT_EQ(config.rank, 10000);
    EXPECT_EQ(config.factor, 16);
    EXPECT_FALSE(config.full_matrix);
    EXPECT_EQ(config.modules, (Names{"Attention", "FeedForward"}));
    ASSERT_EQ(config.exceptions.size(), 2U);
    EXPECT_EQ(config.exceptions[1].of, "FeedForward");
    EXPECT_EQ(config.exceptions[1].factor, 16);
    EXPECT_FALSE(config.exceptions[1].rank);
}

TEST(LycorisConfig, DefaultsAreThoseOfLycoris) {
    const LycorisConfig config = read("{\"algo\": \"lora\"}");
    EXPECT_EQ(config.algo, LycorisAlgo::locon);
    EXPECT_EQ(config.rank, 4);
    EXPECT_EQ(config.alpha, 1);
    EXPECT_EQ(config.names, (Names{"*"})) << "every layer";
    EXPECT_EQ(read("{}").algo, LycorisAlgo::lokr);
    EXPECT_EQ(read("{}").factor, -1);
}

TEST(LycorisConfig, LayersMayBeNamed) {
    const LycorisConfig config = read(R"({"algo": "lokr", "factor": 4, "full_matrix": true, "apply_preset": {
        "target_name": ["mid_block.*"], "exclude_name": ["*.proj_out"], "use_fnmatch": true,
        "name_algo_map": {"transformer_blocks.*.attn*": {"factor": 4, "dim": 4, "alpha": 1}}}})");
    EXPECT_EQ(config.names, (Names{"transformer_blocks.*.attn*", "mid_block.*"})) << "in the order of keys";
    EXPECT_EQ(config.excluded, (Names{"*.proj_out"}));
    ASSERT_EQ(config.exceptions.size(), 1U);
    EXPECT_FALSE(config.exceptions[0].is_class);
    EXPECT_EQ(config.exceptions[0].rank, 4);
    EXPECT_EQ(config.exceptions[0].alpha, 1);
    EXPECT_TRUE(refused(R"({"apply_preset": {"target_name": ["blocks\\.[0-9]+"]}})").says("regular expression"));
}

TEST(LycorisConfig, ClassesMayHaveArgumentsOfTheirOwn) {
    const LycorisConfig config = read(R"({"algo": "lokr", "multiplier": 1.0, "linear_dim": 10000, "linear_alpha": 1,
        "factor": 16, "apply_preset": {"target_module": ["Attention"], "module_algo_map": {
        "FeedForward": {"factor": 8, "full_matrix": true}, "Attention": {"factor": 16, "use_scalar": false}}}})");
    EXPECT_EQ(config.modules, (Names{"Attention", "FeedForward"})) << "what the map has is a target, too";
    const auto own = lycoris_exceptions(config, ModelFamily::flux);
    ASSERT_EQ(own.size(), 2U);
    EXPECT_EQ(own[0].layers.size(), 8U) << "the attention";
    EXPECT_EQ(own[0].arguments.factor, 16);
    EXPECT_EQ(own[1].layers, (Names{"ff.net.0.proj", "ff.net.2", "ff_context.net.0.proj", "ff_context.net.2"}));
    EXPECT_EQ(own[1].arguments.factor, 8);
    EXPECT_TRUE(own[1].arguments.full_matrix);
    EXPECT_EQ(own[1].arguments.rank, 10000) << "what is not said is as the rest has it";
    EXPECT_EQ(config.factor, 16);
    EXPECT_FALSE(config.full_matrix);
}

TEST(LycorisConfig, NamesGoBeforeClassesAndClassesInsideOthersFirst) {
    const LycorisConfig config = read(R"({"algo": "lokr", "apply_preset": {
        "target_module": ["BasicTransformerBlock"],
        "module_algo_map": {"BasicTransformerBlock": {"dim": 1}, "Attention": {"dim": 2}},
        "name_algo_map": {"mid_block.*.to_q": {"dim": 3}, "*.to_q": {"dim": 4}, "*.attn1.*": {"dim": 5}}}})");
    std::vector<std::int64_t> ranks;
    for (const LycorisLayers& own : lycoris_exceptions(config, ModelFamily::sdxl)) ranks.push_back(own.arguments.rank);
    EXPECT_EQ(ranks, (std::vector<std::int64_t>{3, 4, 5, 2, 1}));
    EXPECT_EQ(config.names, (Names{"*.attn1.*", "*.to_q", "mid_block.*.to_q"}));
    const auto error = strata_test::thrown_by([] {
        (void)lycoris_exceptions(read(R"({"apply_preset": {"module_algo_map": {"ResnetBlock2D": {"factor": 4}}}})"),
                                 ModelFamily::flux);
    });
    EXPECT_TRUE(error.says("ResnetBlock2D") && error.says("FluxTransformerBlock")) << error.message;
}

TEST(LycorisConfig, ArgumentsOfClassesAreLookedAtWhereTheyStand) {
    const auto of = [](const std::string& arguments) {
        return refused(R"({"algo": "lokr", "apply_preset": {"module_algo_map": {"Attention": )" + arguments + "}}}");
    };
    EXPECT_TRUE(of(R"({"factor": 0})").says("module_algo_map.Attention.factor"));
    EXPECT_TRUE(of(R"({"dim": 0})").says("module_algo_map.Attention.dim"));
    EXPECT_TRUE(of(R"({"alpha": -1})").says("module_algo_map.Attention.alpha"));
    EXPECT_TRUE(of(R"({"use_tucker": true})").says("differs from layer to layer"));
    EXPECT_TRUE(of(R"({"weight_decompose": true})").says("this is lokr"));
    EXPECT_NO_THROW((void)read(R"({"algo": "locon", "apply_preset": {"module_algo_map": {
        "Attention": {"algo": "lora", "dim": 8, "alpha": 4, "dora_wd": true}}}})"));
}

TEST(LycorisConfig, AllThatIsNotAlikeIsToldAtOnceWithItsPlace) {
    const auto error =
        refused("{\"algo\": \"boft\",\n\"use_scalar\": true, \"rank_dropout\": 0.1,\n\"multiplier\": 0.5}");
    for (const char* says :
         {"4 problems", "lycoris.json:1:10: key 'algo' is 'boft'", "lycoris.json:2:15: key 'use_scalar'",
          "key 'rank_dropout'", "lycoris.json:3:15: key 'multiplier'"})
        EXPECT_TRUE(error.says(says)) << says << "\n" << error.message;
    EXPECT_TRUE(refused(R"({"algo": "lokr", "facter": 8})").says("did you mean 'factor'"));
    EXPECT_TRUE(refused(R"({"apply_preset": "attn-mlp"})").says("a preset of LyCORIS' own"));
    EXPECT_TRUE(
        refused(R"({"apply_preset": {"module_algo_map": {"Attention": {"algo": "loha"}}}})").says("same 'algo'"));
    EXPECT_TRUE(refused(R"({"linear_dim": 8, "conv_dim": 4})").says("conv_dim"));
    EXPECT_NO_THROW((void)read(R"({"linear_dim": 8, "conv_dim": 8, "use_scalar": false, "rank_dropout": 0})"));
}

TEST(LycorisConfig, ConvolutionsThatAreLeftAloneNeedTargetsWithoutAny) {
    const auto with = [](const std::string& targets) {
        return R"({"algo": "locon", "apply_preset": {"enable_conv": false)" + targets + "}}";
    };
    EXPECT_TRUE(refused(with("")).says("without targets every layer is adapted"));
    EXPECT_TRUE(refused(with(R"(, "target_module": ["Attention", "ResnetBlock2D"])"))
                    .says("the layers of ResnetBlock2D are convolutions"));
    EXPECT_NO_THROW((void)read(with(R"(, "target_module": ["Attention", "FeedForward"])")));
    EXPECT_NO_THROW((void)read(with(R"(, "target_name": ["*.attn1.*"])")));
    EXPECT_NO_THROW((void)read(R"({"algo": "locon", "apply_preset": {"enable_conv": true}})"));
}

TEST(LycorisConfig, NormsOfDoraAreThoseOfRows) {
    EXPECT_TRUE(refused(R"({"algo": "locon", "weight_decompose": true, "wd_on_out": false})").says("'wd_on_out'"));
    EXPECT_NO_THROW((void)read(R"({"algo": "locon", "weight_decompose": true, "wd_on_out": true})"));
    EXPECT_NO_THROW((void)read(R"({"algo": "locon", "wd_on_out": false})")) << "there are no norms";
    EXPECT_TRUE(refused(R"({"algo": "locon", "apply_preset": {"module_algo_map": {"Attention": {"dora_wd": true,
        "wd_on_out": false}}}})")
                    .says("module_algo_map.Attention.wd_on_out"));
}

TEST(LycorisConfig, ModulesAreLayersOfTheFamily) {
    EXPECT_EQ(lycoris_layers("Attention", ModelFamily::sdxl), (Names{"to_q", "to_k", "to_v", "to_out.0"}));
    EXPECT_EQ(lycoris_layers("FeedForward", ModelFamily::flux).size(), 4U);
    EXPECT_EQ(lycoris_layers("ResnetBlock2D", ModelFamily::sd15), (Names{"*.resnets.*"}));
    const auto error = strata_test::thrown_by([] { (void)lycoris_layers("ResnetBlock2D", ModelFamily::flux); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("FluxTransformerBlock")) << error.message;
}

}  // namespace
