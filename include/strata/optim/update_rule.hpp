#pragma once
// strata/optim/update_rule.hpp - UpdateRule: one element's step, from which every kernel is made.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <strata/core/policy.hpp>

namespace strata::optim {

/// What every rule says about itself.
///
///   * Options: plain settings, each with its default; the learning rate is not among them. What they say of themselves in
///     `static void describe(auto& option)` (core/option_description.hpp) is looked at before training begins, and gives
///     them keys in files and on command lines: optimizer_ and the name. What must hold between numbers says a
///     `void check(OptionCheck&) const` (core/option_check.hpp).
///   * state_names: std::array of the names that checkpoints give to the rule's states; there is one value of each an
///     element. All start at 0, or at initial_state(options, k), which a rule may have.
///   * Scalars scalars(options, lr, step): what is the same for all elements of a step; step counts from 1.
///
/// Functions over elements are [[gnu::always_inline]], branch-free and use nothing but their arguments, so that they
/// become one vector loop; marked STRATA_HOST_DEVICE they are the body of a CUDA kernel too. Weight 0, gradient 0 and
/// state 0 must leave weight and state 0 (padding stays 0).
template <class R>
concept DescribedRule = std::default_initializable<typename R::Options> && std::copyable<typename R::Options> &&
    requires(const typename R::Options& options) {
    typename strata::detail::Constant<R::state_names.size()>;
    { R::state_names.size() } -> std::convertible_to<std::size_t>;
    { R::state_names[0] } -> std::convertible_to<std::string_view>;
    { R::scalars(options, double{}, std::int64_t{}) } -> std::same_as<typename R::Scalars>;
};

/// A rule whose elements do not know each other: one pass over memory, optim/update_kernel.hpp.
///
///   * apply(weight, gradient, state, scalars): the update; state points to state_names.size() values.
template <class R>
concept ElementwiseRule = DescribedRule<R> &&
    requires(float& weight, float* state, const typename R::Scalars& scalars) {
    { R::apply(weight, float{}, state, scalars) } -> std::same_as<void>;
    requires !requires { R::apply(float{}, float{}, state, scalars); };  // it would write to a copy
};

/// A rule whose step length depends on norms over a whole parameter: two passes, optim/layerwise_kernel.hpp.
///
///   * advance(gradient, weight, state, scalars): the states' update, in the first pass.
///   * direction(weight, state, scalars): where the weight is to go, from the new states; both passes.
///   * trust_ratio(options, |weight|, |direction|): the step's length; norms over the whole parameter, over all ranks.
///   * apply(weight, direction, ratio, scalars): the weight's update, in the second pass.
template <class R>
concept LayerwiseRule = DescribedRule<R> &&
    requires(float& weight, float* state, const float* kept, const typename R::Options& options,
             const typename R::Scalars& scalars) {
    { R::advance(float{}, float{}, state, scalars) } -> std::same_as<void>;
    { R::direction(float{}, kept, scalars) } -> std::same_as<float>;
    { R::trust_ratio(options, double{}, double{}) } -> std::same_as<double>;
    { R::apply(weight, float{}, float{}, scalars) } -> std::same_as<void>;
    requires !requires { R::apply(float{}, float{}, float{}, scalars); };
};

/// How a gradient changes a weight.
template <class R>
concept UpdateRule = ElementwiseRule<R> || LayerwiseRule<R>;

/// How many states an element has under Rule.
template <UpdateRule Rule>
inline constexpr std::size_t state_count_v = Rule::state_names.size();

/// What state k is filled with before the first step.
template <UpdateRule Rule>
constexpr float initial_state(const typename Rule::Options& options, std::size_t k) noexcept {
    if constexpr (requires { Rule::initial_state(options, k); }) return Rule::initial_state(options, k);
    return 0.0F;
}

/// Whether the states' names can be those of a checkpoint: each of them there once, none empty, none that it has itself.
template <UpdateRule Rule>
constexpr bool has_names_of_states() noexcept {
    for (std::size_t i = 0; i < state_count_v<Rule>; ++i) {
        const std::string_view name = Rule::state_names[i];
        if (name.empty() || name == "weight" || name == "average") return false;
        for (std::size_t k = 0; k < i; ++k)
            if (name == Rule::state_names[k]) return false;
    }
    return true;
}

namespace archetype {

/// The least an ElementwiseRule may be.
struct UpdateRule {
    struct Options {};
    struct Scalars {};
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t step);
    static void apply(float& weight, float gradient, float* state, const Scalars&);
};

/// The least a LayerwiseRule may be.
struct LayerwiseRule {
    struct Options {};
    struct Scalars {};
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t step);
    static void advance(float gradient, float weight, float* state, const Scalars&);
    static float direction(float weight, const float* state, const Scalars&);
    static double trust_ratio(const Options&, double weight_norm, double direction_norm);
    static void apply(float& weight, float direction, float ratio, const Scalars&);
};

}  // namespace archetype

static_assert(ElementwiseRule<archetype::UpdateRule> && !LayerwiseRule<archetype::UpdateRule>);
static_assert(LayerwiseRule<archetype::LayerwiseRule> && !ElementwiseRule<archetype::LayerwiseRule>);

}  // namespace strata::optim
