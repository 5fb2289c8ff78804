// tests/compile_time/train/unit_rules.cpp - which models name units, and which policies ask for them.

#include <cstddef>

#include <strata/policy/setup.hpp>
#include <strata/train/unit_rules.hpp>

namespace strata {
namespace {

template <std::size_t Count>
struct List {
    static constexpr std::size_t count = Count;
};
struct WithUnits {
    using Units = List<2>;
};
struct WithNone {
    using Units = List<0>;
};
struct Silent {};
struct Mistaken {
    using Units = int;
};
static_assert(HasUnits<WithUnits>);
static_assert(!HasUnits<WithNone> && !HasUnits<Silent> && !HasUnits<Mistaken>);

static_assert(!rule::ModelHasUnits<ZeroStage<3>, Silent>::holds);
static_assert(!rule::ModelHasUnits<ZeroStage<3>, WithNone>::holds);
static_assert(rule::ModelHasUnits<ZeroStage<3>, WithUnits>::holds);
static_assert(rule::ModelHasUnits<ZeroStage<2>, Silent>::holds);

static_assert(!rule::RecomputedModelHasUnits<Recompute<Blocks>, Silent>::holds);
static_assert(rule::RecomputedModelHasUnits<Recompute<Blocks>, WithUnits>::holds);
static_assert(rule::RecomputedModelHasUnits<Recompute<Nothing>, Silent>::holds);

}  // namespace
}  // namespace strata
