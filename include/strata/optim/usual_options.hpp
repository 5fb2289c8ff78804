#pragma once
// strata/optim/usual_options.hpp - options that several update rules have: each described once, with its usual default.

#include <string_view>

#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>

namespace strata::optim {

/// Weight decay as a part of the gradient, which then goes where the gradient goes.
struct L2Penalty {
    static constexpr double usual = 0.0;
    static constexpr std::string_view help = "L2 penalty: times the weight, added to its gradient";
};
/// Weight decay beside the gradient (Loshchilov and Hutter 2019, arXiv:1711.05101).
struct DecoupledDecay {
    static constexpr double usual = 0.01;
    static constexpr std::string_view help =
        "Decoupled weight decay: what a step takes of a weight, times the learning rate";
};

/// For the describe() of `Options` with such a member. Keys have SimpleTuner's names as a second spelling.
///
///   help  what it does in this rule
template <class Options>
void describe_beta1(auto& option, std::string_view help = "Decay of the mean of gradients, a step") {
    option("beta1", &Options::beta1, ranges::beta1, {.help = help, .alias = "adam_beta1"});
}
template <class Options>
void describe_beta2(auto& option, std::string_view help = "Decay of the mean of their squares, a step") {
    option("beta2", &Options::beta2, ranges::beta2, {.help = help, .alias = "adam_beta2"});
}
template <class Options>
void describe_epsilon(auto& option,
                      std::string_view help = "Added to the root of that mean, so that nothing is divided by 0") {
    option("epsilon", &Options::epsilon, ranges::epsilon, {.help = help, .alias = "adam_epsilon"});
}
template <class Options>
void describe_weight_decay(auto& option, std::string_view help) {
    option("weight_decay", &Options::weight_decay, ranges::weight_decay, {.help = help, .alias = "adam_weight_decay"});
}

/// The options of Adam and of rules like it. (No base of other options: members of a base have no names in braces.)
///
///   Decay  L2Penalty or DecoupledDecay
template <class Decay>
struct MomentOptions {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = Decay::usual;

    static void describe(auto& option) {
        describe_beta1<MomentOptions>(option);
        describe_beta2<MomentOptions>(option);
        describe_epsilon<MomentOptions>(option);
        describe_weight_decay<MomentOptions>(option, Decay::help);
    }
};

}  // namespace strata::optim
