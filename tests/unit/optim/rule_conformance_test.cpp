// The rules of strata keep what they promise, and the kit finds the rules that do not. Here and not in unit/testing, whose
// executable does not link OpenMP.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/option_check.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/testing/rule_conformance.hpp>

#include "../../../examples/rms_prop.hpp"

namespace {

using strata::testing::rule_failures;
using Failures = std::vector<std::string>;

TEST(RuleConformance, TheRulesOfStrataConform) {
    EXPECT_EQ(rule_failures<strata::Adagrad>({.weight_decay = 0.1, .initial_accumulator_value = 0.1}), Failures{});
    EXPECT_EQ(rule_failures<strata::Adam>({.weight_decay = 0.1}), Failures{});
    EXPECT_EQ(rule_failures<strata::AdamW>(), Failures{});
    EXPECT_EQ(rule_failures<strata::Lamb>({.weight_decay = 0.1}), Failures{});
    EXPECT_EQ(rule_failures<strata::Lion>({.weight_decay = 0.1}), Failures{});
    EXPECT_EQ(rule_failures<strata::Sgd>({.momentum = 0.9, .nesterov = true}), Failures{});
}

//! [conformance]
TEST(RuleConformance, ARuleOfAUsersOwnConforms) { EXPECT_EQ(rule_failures<my::RmsProp>(), Failures{}); }
//! [conformance]

// ---- rules that are wrong, each in one way ---------------------------------------------------------------------------

enum class Flaw {
    none,
    same_names,
    name_of_a_checkpoint,
    empty_name,
    unchecked_options,
    starts_at_nan,
    moves_padding,
    divides_by_zero,
    counts_calls,
    uphill,
};

/// Descent with momentum, and a root that is there to go wrong.
template <Flaw flaw>
struct Flawed {
    struct Options {
        double momentum = 0.5;
        static void describe(auto& option) { option("momentum", &Options::momentum, {0, 0.999}, "Of the descent"); }
        void check(strata::OptionCheck& check) const {
            if (flaw != Flaw::unchecked_options) check.described(*this);
        }
    };
    static constexpr std::array<std::string_view, 2> state_names{
        flaw == Flaw::name_of_a_checkpoint ? "weight" : "speed", flaw == Flaw::same_names   ? "speed"
                                                                 : flaw == Flaw::empty_name ? ""
                                                                                            : "other"};
    struct Scalars {
        float momentum, lr, epsilon;
    };
    static Scalars scalars(const Options& options, double lr, std::int64_t) noexcept {
        return {static_cast<float>(options.momentum), static_cast<float>(flaw == Flaw::uphill ? -lr : lr),
                flaw == Flaw::divides_by_zero ? 0.0F : 1e-8F};
    }
    static float initial_state(const Options&, std::size_t) noexcept {
        return flaw == Flaw::starts_at_nan ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
    }
    static void apply(float& weight, float gradient, float* state, const Scalars& s) noexcept {
        state[0] = s.momentum * state[0] + gradient;
        state[1] = gradient * gradient;
        weight -=
            s.lr * state[0] / (strata::optim::square_root(state[1]) + s.epsilon) * strata::optim::square_root(state[1]);
        if (flaw == Flaw::moves_padding) weight += s.lr;
        if (flaw == Flaw::counts_calls) {
            static int calls = 0;
            weight += 1e-3F * static_cast<float>(++calls % 5) * gradient;
        }
    }
};

template <Flaw flaw>
std::string all_failures() {
    std::string all;
    for (const std::string& failure : rule_failures<Flawed<flaw>>()) all += failure + "\n";
    return all;
}

TEST(RuleConformance, TheRuleThatFlawsAreMadeOfHasNone) { EXPECT_EQ(all_failures<Flaw::none>(), ""); }

TEST(RuleConformance, NamesOfStatesAreLookedAt) {
    EXPECT_EQ(all_failures<Flaw::same_names>(),
              "state_names has 'speed' twice, or it is 'weight' or 'average', which a checkpoint has itself\n");
    EXPECT_EQ(all_failures<Flaw::name_of_a_checkpoint>(),
              "state_names has 'weight' twice, or it is 'weight' or 'average', which a checkpoint has itself\n");
    EXPECT_EQ(all_failures<Flaw::empty_name>(),
              "state_names has an empty name: a checkpoint keeps states by their names\n");
}

TEST(RuleConformance, ACheckThatForgetsTheRangesIsFound) {
    EXPECT_EQ(all_failures<Flaw::unchecked_options>(),
              "its check accepts NaN for momentum\nits check accepts a momentum above its range\n"
              "its check accepts a momentum below its range\n");
}

TEST(RuleConformance, FirstValuesAreNumbers) {
    EXPECT_NE(all_failures<Flaw::starts_at_nan>().find("state speed starts at no fixed finite number\n"),
              std::string::npos);
}

TEST(RuleConformance, PaddingStaysZero) {
    EXPECT_NE(all_failures<Flaw::moves_padding>().find("a weight of 0 does not stay 0 without a gradient"),
              std::string::npos);
}

TEST(RuleConformance, AGradientOfZeroThatIsDividedByZeroIsFound) {
    const std::string all = all_failures<Flaw::divides_by_zero>();
    EXPECT_NE(all.find("finite gradients make a number that is not, in step 1"), std::string::npos) << all;
}

TEST(RuleConformance, ARuleWithAMemoryOfItsOwnIsFound) {
    const std::string all = all_failures<Flaw::counts_calls>();
    EXPECT_NE(all.find("steps depend on more than options, rate, step, gradient and state, in fp32"), std::string::npos)
        << all;
}

TEST(RuleConformance, ARuleThatGoesUphillIsFound) {
    EXPECT_EQ(all_failures<Flaw::uphill>(), "no learning rate from 1e-4 to 1 makes a square smaller in 100 steps\n");
}

// ---- rules that are none ---------------------------------------------------------------------------------------------

using Right = Flawed<Flaw::none>;
static_assert(strata::optim::UpdateRule<Right> && strata::optim::has_names_of_states<Right>());
static_assert(strata::options_are_read_v<Right::Options>);

struct IsGivenACopy : Right {
    static void apply([[maybe_unused]] float weight, float, float*, const Scalars& s) noexcept { weight -= s.lr; }
};
struct TakesAConstant : Right {
    static void apply(const float&, float, float*, const Scalars&) noexcept {}
};
static_assert(!strata::optim::UpdateRule<IsGivenACopy> && !strata::optim::UpdateRule<TakesAConstant>,
              "neither would train");
struct HasNoDefaults : Right {
    struct Options {
        explicit Options(double given) : momentum{given} {}
        double momentum;
    };
    static Scalars scalars(const Options&, double, std::int64_t) noexcept { return {}; }
};
static_assert(!strata::optim::UpdateRule<HasNoDefaults>);
struct GrowsItsNames : Right {
    static inline std::vector<std::string_view> state_names{"speed"};
};
static_assert(!strata::optim::UpdateRule<GrowsItsNames>, "their number is not known to the compiler");
static_assert(!strata::optim::has_names_of_states<Flawed<Flaw::same_names>>() &&
              !strata::optim::has_names_of_states<Flawed<Flaw::name_of_a_checkpoint>>() &&
              !strata::optim::has_names_of_states<Flawed<Flaw::empty_name>>());

struct ChecksAsItChanges {
    void check(strata::OptionCheck&) {}
};
struct ChecksAnotherWay {
    void check() const {}
};
struct DescribesAnObject {
    double momentum = 0;
    void describe(auto& option) { option("momentum", &DescribesAnObject::momentum, strata::ranges::momentum, ""); }
};
static_assert(!strata::options_are_read_v<ChecksAsItChanges> && !strata::options_are_read_v<ChecksAnotherWay> &&
              !strata::options_are_read_v<DescribesAnObject>);
struct SaysNothing {};
static_assert(strata::options_are_read_v<SaysNothing> && strata::options_are_read_v<strata::Lamb::Options> &&
              strata::options_are_read_v<strata::AdamW::Options>);

}  // namespace
