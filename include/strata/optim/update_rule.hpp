#pragma once
// strata/optim/update_rule.hpp - UpdateRule: one element's step, from which every kernel is made.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strata::optim {

/// How a gradient changes a weight, element by element.
///
///   * Options: plain settings with the usual defaults; the learning rate is not among them.
///   * state_names: std::array of the names that checkpoints give to the rule's fp32 states; all start at 0.
///   * Scalars scalars(options, lr, step): what is the same for all elements of a step; step counts from 1.
///   * apply(weight, gradient, state, scalars): the update; state points to state_names.size() values. It must be
///     [[gnu::always_inline]], branch-free, and use nothing but its arguments, so that it becomes one vector loop.
///     State 0 and gradient 0 must leave state 0 (padding stays 0).
template <class R>
concept UpdateRule = requires(float& weight, float* state, const typename R::Options& options,
                              const typename R::Scalars& scalars) {
    { R::state_names.size() } -> std::convertible_to<std::size_t>;
    { R::state_names[0] } -> std::convertible_to<std::string_view>;
    { R::scalars(options, double{}, std::int64_t{}) } -> std::same_as<typename R::Scalars>;
    { R::apply(weight, float{}, state, scalars) } -> std::same_as<void>;
};

/// How many fp32 states an element has under Rule.
template <UpdateRule Rule>
inline constexpr std::size_t state_count_v = Rule::state_names.size();

namespace archetype {

/// The least an UpdateRule may be.
struct UpdateRule {
    struct Options {};
    struct Scalars {};
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t step);
    static void apply(float& weight, float gradient, float* state, const Scalars&);
};

}  // namespace archetype

static_assert(UpdateRule<archetype::UpdateRule>);

}  // namespace strata::optim
