// Gradient norms by layer in metrics.jsonl: those of the gradient, in the steps that were asked for, and no bit changes.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "trainer_runs.hpp"

namespace {

using namespace strata;
using train::GradientNormsOf;

struct TrainerGradientNorms : strata_test::TrainerRuns {
    static Options with_norms(std::int64_t steps, std::int64_t every, GradientNormsOf of = GradientNormsOf::layer) {
        Options given = options(steps);
        given.engine.gradient_accumulation_steps = 2;
        given.gradient_norms = {.every = every, .of = of};
        return given;
    }
    [[nodiscard]] std::vector<nlohmann::json> lines(const std::string& name) const {
        comm_barrier();
        std::ifstream in{root / name / "metrics.jsonl"};
        std::vector<nlohmann::json> found;
        for (std::string line; std::getline(in, line);) found.push_back(nlohmann::json::parse(line));
        return found;
    }
    /// The norm of the whole gradient that the norms of its parts say.
    static double whole(const nlohmann::json& line) {
        double squares = 0;
        for (const auto& [name, norm] : line.at("grad_norms").items()) squares += std::pow(norm.get<double>(), 2);
        return std::sqrt(squares);
    }
    template <class... Policies>
    void expect_norms(const std::string& name) {
        run<Policies...>(name, with_norms(5, 2));
        const auto log = lines(name);
        ASSERT_EQ(log.size(), 5U);
        for (const auto& line : log) {
            ASSERT_EQ(line.contains("grad_norms"), line["step"].get<int>() % 2 == 0) << name << ' ' << line;
            if (!line.contains("grad_norms")) continue;
            std::vector<std::string> parts;
            for (const auto& [part, norm] : line["grad_norms"].items()) parts.push_back(part);
            EXPECT_EQ(parts, (std::vector<std::string>{"block.linear", "in", "out"})) << name;
            const auto norm = line["grad_norm"].get<double>();
            EXPECT_NEAR(whole(line), norm, 1e-4 * norm) << name << ": six digits are written";
        }
    }
};

TEST_F(TrainerGradientNorms, AtEveryStageTheyAreThoseOfTheWholeGradient) {
    expect_norms<ZeroStage<0>>("s0");
    expect_norms<ZeroStage<2>>("s2");
    expect_norms<ZeroStage<3>>("s3");
}

TEST_F(TrainerGradientNorms, NoBitOfTheRunChanges) {
    run<ZeroStage<2>>("without", with_norms(4, 0));
    run<ZeroStage<2>>("with", with_norms(4, 1, GradientNormsOf::parameter));
    EXPECT_EQ(losses("without"), losses("with"));
    EXPECT_FALSE(lines("without")[3].contains("grad_norms"));
    EXPECT_TRUE(lines("with")[0]["grad_norms"].contains("block.linear.weight"));
}

TEST_F(TrainerGradientNorms, AResumedRunKeepsThem) {
    run<ZeroStage<1>>("run", with_norms(2, 1, GradientNormsOf::unit));
    const auto before = lines("run");
    run<ZeroStage<1>>("run", with_norms(4, 0));
    const auto after = lines("run");
    ASSERT_EQ(after.size(), 4U);
    EXPECT_EQ(after[1]["grad_norms"], before[1]["grad_norms"]);
    EXPECT_TRUE(after[1]["grad_norms"].contains("block"));
    EXPECT_FALSE(after[2].contains("grad_norms"));
}

}  // namespace
