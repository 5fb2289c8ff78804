// A shell's file of settings, read without a shell: what a shell would have made of it.

#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <strata/config/env_file.hpp>
#include <strata/config/simpletuner.hpp>

namespace {

using namespace strata::config;

std::optional<std::string> home_only(const std::string& name) {
    return name == "HOME" ? std::optional<std::string>{"/home/me"} : std::nullopt;
}
EnvFile read(std::string_view text) { return read_env_file(text, home_only); }
std::string value_of(const EnvFile& file, std::string_view name) {
    for (const EnvAssignment& one : file.assignments)
        if (one.name == name) return one.value;
    return "(not set)";
}

TEST(EnvFile, QuotesAreTakenOffAndExpansionsMade) {
    const EnvFile file = read(
        "export A='one $B'\nB=\"two ${A} $HOME\"  # a comment\nC=three;D=four\nE=\"a \\\"b\\\"\"\n"
        "F=long\\\ner\nG=8e-7 #@param {type:\"number\"}\nexport H\nI=\n");
    EXPECT_TRUE(file.problems.empty());
    EXPECT_EQ(value_of(file, "A"), "one $B");
    EXPECT_EQ(value_of(file, "B"), "two one $B /home/me");
    EXPECT_EQ(value_of(file, "C"), "three");
    EXPECT_EQ(value_of(file, "D"), "four");
    EXPECT_EQ(value_of(file, "E"), "a \"b\"");
    EXPECT_EQ(value_of(file, "F"), "longer");
    EXPECT_EQ(value_of(file, "G"), "8e-7");
    EXPECT_EQ(value_of(file, "H"), "(not set)");
    EXPECT_EQ(value_of(file, "I"), "");
}

TEST(EnvFile, ValuesKnowTheirPlaceAndTheLastOneCounts) {
    const EnvFile file = read("# comment\nexport LR=1\n\nexport LR=2\n");
    ASSERT_EQ(file.assignments.size(), 1U);
    EXPECT_EQ(file.assignments[0].value, "2");
    EXPECT_EQ(file.assignments[0].line, 4U);
    EXPECT_EQ(file.assignments[0].column, 11U);
}

TEST(EnvFile, AppendsWithABlankBetween) {
    EXPECT_EQ(value_of(read("X=\"--a=1\"\nX+=\" --b\"\nX+=--c\n"), "X"), "--a=1 --b --c");
    EXPECT_EQ(value_of(read("X=\"\"\nX=\"${X} --b\"\n"), "X"), " --b");
}

TEST(EnvFile, SumsAreComputedAsAShellDoes) {
    const EnvFile file = read("N=30000\nA=$((N / 10))\nB=$(( (N + 4) * 2 - 7 % 4 ))\nC=$((M / 10))\n");
    EXPECT_EQ(value_of(file, "A"), "3000");
    EXPECT_EQ(value_of(file, "B"), "60005");
    EXPECT_EQ(value_of(file, "C"), "0") << "a name that nobody has set is 0";
    ASSERT_EQ(file.problems.size(), 1U);
    EXPECT_FALSE(file.problems[0].is_error);
    EXPECT_EQ(file.problems[0].line, 4U);
    for (const char* bad : {"A=$((1/0))", "A=$((1+))", "A=$((9223372036854775807+1))", "A=$((1;2))"}) {
        const EnvFile broken = read(bad);
        ASSERT_FALSE(broken.problems.empty()) << bad;
        EXPECT_TRUE(broken.problems[0].is_error) << bad;
    }
}

TEST(EnvFile, ConditionsChooseWhatIsRead) {
    const std::string text =
        "KIND=lora\nif [[ \"$KIND\" == \"full\" ]]; then\n  A=1\nelif [ \"$KIND\" = 'lora' ]\nthen\n"
        "  A=2\n  if [[ -n $KIND ]]; then B=3; fi\nelse\n  A=4\nfi\nC=5\n";
    const EnvFile file = read(text);
    EXPECT_TRUE(file.problems.empty());
    EXPECT_EQ(value_of(file, "A"), "2");
    EXPECT_EQ(value_of(file, "B"), "3");
    EXPECT_EQ(value_of(file, "C"), "5");
    EXPECT_TRUE(read("if [[ a == b ]]; then\nA=1\n").problems[0].is_error) << "no fi";
    EXPECT_TRUE(read("fi\n").problems[0].is_error);
    EXPECT_TRUE(read("if grep -q x y; then\nA=1\nfi\n").problems[0].is_error);
}

TEST(EnvFile, CommandsAreNamedAndNeverRun) {
    const EnvFile file = read("A=\"$(date +%s)\"\nB=`date`\nrm -rf /tmp/nothing\nC=${A:-x}\nD=${NOBODY:-fallback}\n");
    EXPECT_TRUE(file.assignments[0].is_computed);
    EXPECT_TRUE(file.assignments[1].is_computed);
    EXPECT_EQ(value_of(file, "D"), "fallback");
    ASSERT_EQ(file.problems.size(), 1U);
    EXPECT_FALSE(file.problems[0].is_error);
    EXPECT_EQ(file.problems[0].line, 3U);
    EXPECT_NE(file.problems[0].what.find("rm -rf"), std::string::npos);
}

TEST(EnvFile, AnyBytesAreReadToTheEnd) {
    for (const char* text :
         {"'", "\"", "$", "${", "$(", "A=$((", "A=${B", "if", "if [[", "=", "A", "\\", "A=\\", "A+=", ";;;", "`"})
        EXPECT_NO_FATAL_FAILURE((void)read(text)) << text;
}

TEST(EnvFile, NamesBecomeSimpleTunersKeys) {
    const Document document = parse_env(
        "export TRAINING_SEED=42\nexport MAX_NUM_STEPS=100\nexport FLUX=true\nexport KOLORS=false\nexport USE_EMA=0\n"
        "BASE=/data\nexport OUTPUT_DIR=$BASE/out\nexport INSTANCE_PROMPT='a cat'\n"
        "export TRAINER_EXTRA_ARGS=\"--snr_gamma=5 --use_dora --lora_rank 8\"\nexport TOKENIZERS_PARALLELISM=false\n",
        "config.env", home_only);
    const auto text = [&](const char* key) {
        const Node* const node = document.root.find(key);
        return node == nullptr ? std::string{"(not there)"} : node->scalar();
    };
    EXPECT_TRUE(document.remarks.empty());
    EXPECT_EQ(text("seed"), "42");
    EXPECT_EQ(text("max_train_steps"), "100");
    EXPECT_EQ(text("model_family"), "flux");
    EXPECT_EQ(text("use_ema"), "false");
    EXPECT_EQ(text("output_dir"), "/data/out");
    EXPECT_EQ(text("instance_prompt"), "a cat");
    EXPECT_EQ(text("snr_gamma"), "5");
    EXPECT_EQ(text("use_dora"), "true");
    EXPECT_EQ(text("lora_rank"), "8");
    EXPECT_EQ(document.root.find("seed")->place(), "config.env:1:22");
}

TEST(EnvFile, ATypingErrorInANameIsToldFromAnotherProgramsVariable) {
    const Document document = parse_env("export LEARNING_RTAE=1\nexport HTTPS_PROXY=x\n", "config.env", home_only);
    ASSERT_EQ(document.remarks.size(), 2U);
    EXPECT_TRUE(document.remarks[0].refused);
    EXPECT_EQ(document.remarks[0].fix, "did you mean 'LEARNING_RATE'");
    EXPECT_FALSE(document.remarks[1].refused);
}

}  // namespace
