#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/weights/weight_match.hpp>

#include "../../support/made_weights.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::storage::Dtype;
using strata::weights::LoadOptions;
using strata::weights::match_weights;
using strata::weights::WantedWeight;
using strata::weights::WeightFiles;
using strata_test::Shapes;
using strata_test::TemporaryFolder;

/// A file of these tensors.
struct Written {
    explicit Written(const Shapes& shapes) {
        strata_test::write_weights(folder.path() / "model.safetensors", shapes);
        files.emplace(folder.path());
    }
    TemporaryFolder folder;
    std::optional<WeightFiles> files;
};

const std::vector<WantedWeight> model{{{"in.weight"}, Dtype::f32, {4, 3}}, {{"in.bias"}, Dtype::bf16, {4}}};

std::string refusal(const std::vector<WantedWeight>& wanted, const Written& written, const LoadOptions& options = {}) {
    try {
        (void)match_weights(wanted, *written.files, options);
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), Errc::weights_do_not_fit);
        return error.what();
    }
    return "nothing was thrown";
}
testing::AssertionResult says(const std::string& text, const std::string& words) {
    if (text.find(words) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "\"" << words << "\" is not in: " << text;
}

TEST(WeightMatch, EveryTensorFindsItsOwn) {
    const Written written{{{"in.weight", {4, 3}}, {"in.bias", {4}}}};
    const auto found = match_weights(model, *written.files);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0]->entry->name, "in.weight");
    EXPECT_EQ(found[1]->entry->name, "in.bias");
}

TEST(WeightMatch, AllThatDiffersIsInOneError) {
    const Written written{{{"in.weight", {3, 4}}, {"extra", {1}}, {"more", {2}}}};
    const std::string text = refusal({{{"in.weight"}, Dtype::f32, {4, 3}},
                                      {{"in.bias"}, Dtype::f32, {4}},
                                      {{"out.bias"}, Dtype::f32, {4}},
                                      {{"extra"}, Dtype::i64, {1}}},
                                     written);
    EXPECT_TRUE(says(text, "2 missing: in.bias, out.bias"));
    EXPECT_TRUE(says(text, "1 unexpected: more"));
    EXPECT_TRUE(says(text, "'in.weight' has the shape (3, 4), the model's (4, 3)"));
    EXPECT_TRUE(says(text, "'extra' is of type F32, the model's of I64"));
    EXPECT_TRUE(says(text, "model.safetensors") || says(text, written.folder.path().string()));
}

TEST(WeightMatch, APrefixThatWasForgottenIsGuessed) {
    const Written written{
        {{"model.diffusion_model.in.weight", {4, 3}}, {"model.diffusion_model.in.bias", {4}}, {"vae.a", {1}}}};
    EXPECT_TRUE(says(refusal(model, written), "did you mean the prefix 'model.diffusion_model.'?"));
    EXPECT_EQ(match_weights(model, *written.files, {.prefix = "model.diffusion_model."}).size(), 2U);
    EXPECT_TRUE(
        says(refusal(model, written, {.prefix = "model."}), "did you mean the prefix 'model.diffusion_model.'?"));
}

TEST(WeightMatch, APrefixThatTheFilesLackIsGuessed) {
    const Written written{{{"weight", {4, 3}}, {"bias", {4}}}};
    EXPECT_TRUE(says(refusal(model, written), "put {\"\", \"in.\"} into LoadOptions::renames"));
    EXPECT_EQ(match_weights(model, *written.files, {.renames = {{"", "in."}}})[1]->entry->name, "bias");
}

TEST(WeightMatch, NothingIsGuessedWhereNamesHaveNothingInCommon) {
    const Written written{{{"a.b", {4, 3}}, {"c.d", {4}}}};
    EXPECT_FALSE(says(refusal(model, written), "did you mean"));
}

/// All names of the first code of Flux.1 and of Stable Diffusion differ: one of them says so.
TEST(WeightMatch, NamesOfTheFirstCodeAreToldByOne) {
    for (const char* const name :
         {"double_blocks.0.img_attn.qkv.weight", "model.diffusion_model.input_blocks.0.0.weight"}) {
        const Written written{{{name, {4, 3}}, {"a.b", {4}}, {"vae.c", {4}}}};
        const std::string text = refusal(model, written);
        EXPECT_TRUE(says(text, "have the names of the model's first code, " + std::string{name} + " and 2 more"));
        EXPECT_TRUE(says(text, "from_single_file()"));
        EXPECT_FALSE(says(text, "in.weight"));
    }
}

TEST(WeightMatch, TheFirstRenameThatFitsIsTaken) {
    const Written written{{{"first.weight", {4, 3}}, {"last.b", {4}}}};
    const LoadOptions options{.renames = {{"first.", "in."}, {"in.", "wrong."}, {"last.b", "in.bias"}}};
    EXPECT_EQ(match_weights(model, *written.files, options)[0]->entry->name, "first.weight");
}

TEST(WeightMatch, TwoNamesThatBecomeOneAreRefused) {
    const Written written{{{"in.weight", {4, 3}}, {"old.weight", {4, 3}}, {"in.bias", {4}}}};
    EXPECT_TRUE(says(refusal(model, written, {.renames = {{"old.", "in."}}}),
                     "'in.weight' and 'old.weight' would both be 'in.weight'"));
}

TEST(WeightMatch, WhatMayBeMissingOrLeftIsSaidByName) {
    const Written written{{{"in.weight", {4, 3}}, {"position_ids", {4}}}};
    const LoadOptions options{.may_be_missing = [](std::string_view name) { return name == "in.bias"; },
                              .may_be_left = [](std::string_view name) { return name == "position_ids"; }};
    const auto found = match_weights(model, *written.files, options);
    EXPECT_TRUE(found[0]);
    EXPECT_FALSE(found[1]);
    EXPECT_TRUE(
        says(refusal(model, written, {.may_be_missing = options.may_be_missing}), "1 unexpected: position_ids"));
    EXPECT_TRUE(says(refusal(model, written, {.may_be_left = options.may_be_left}), "1 missing: in.bias"));
}

TEST(WeightMatch, TiedWeightsAreFoundUnderEitherName) {
    const std::vector<WantedWeight> tied{{{"table", "head"}, Dtype::f32, {4}}};
    for (const char* const name : {"table", "head"}) {
        const Written written{{{name, {4}}}};
        EXPECT_EQ(match_weights(tied, *written.files)[0]->entry->name, name);
    }
    const Written both{{{"table", {4}}, {"head", {4}}}};
    EXPECT_TRUE(match_weights(tied, *both.files)[0]);
    const Written neither{{{"other", {4}}}};
    EXPECT_TRUE(says(refusal(tied, neither), "1 missing: table"));
}

TEST(WeightMatch, NumbersAreReadAsTheirOwnKind) {
    using strata::weights::is_read_as;
    for (const Dtype from : {Dtype::f64, Dtype::f32, Dtype::bf16, Dtype::f16}) {
        for (const Dtype to : {Dtype::f64, Dtype::f32, Dtype::bf16, Dtype::f16}) EXPECT_TRUE(is_read_as(from, to));
        EXPECT_FALSE(is_read_as(from, Dtype::i64));
        EXPECT_FALSE(is_read_as(Dtype::i64, from));
    }
    EXPECT_TRUE(is_read_as(Dtype::i32, Dtype::i64));
    EXPECT_FALSE(is_read_as(Dtype::i64, Dtype::i32));
    EXPECT_TRUE(is_read_as(Dtype::u8, Dtype::i16));
    EXPECT_FALSE(is_read_as(Dtype::u8, Dtype::i8));
    EXPECT_TRUE(is_read_as(Dtype::boolean, Dtype::boolean));
    EXPECT_FALSE(is_read_as(Dtype::boolean, Dtype::u8));
    EXPECT_FALSE(is_read_as(Dtype::f8_e4m3, Dtype::f8_e4m3));
}

}  // namespace
