// tests/compile_time/core/rule.cpp - the first broken rule of a list, found without printing anything.

#include <strata/core/rule.hpp>

#include <concepts>

namespace strata::rule {
namespace {

/// A sentence that would print if anything but a user's mistake instantiated it.
template <int N>
struct Kept {
    static constexpr bool holds = true;
    struct Report {
        static_assert(N < 0, "Report of a rule that holds was instantiated");
    };
};
template <int N>
struct Violated {
    static constexpr bool holds = false;
    struct Report {
        static_assert(N < 0, "Report was instantiated by reading the rule");
    };
};

static_assert(Broken<Violated<1>> && !Broken<Kept<1>>);
static_assert(std::same_as<first_broken_t<>, None>);
static_assert(std::same_as<first_broken_t<Kept<1>, Kept<2>>, None>);
static_assert(std::same_as<first_broken_t<Kept<1>, Violated<2>, Violated<3>>, Violated<2>>);

// What is no rule does not hold by being unreadable.
struct Misspelt {
    static constexpr bool hold = false;
};
struct Late {
    static const bool holds;
};
struct Speechless {
    static constexpr bool holds = false;
};
struct Silent {
    static constexpr bool holds = true;
};
static_assert(std::same_as<first_broken_t<Kept<1>, Misspelt, Violated<2>>, BrokenIsARule<Misspelt>>);
static_assert(std::same_as<first_broken_t<int>, BrokenIsARule<int>>);
static_assert(std::same_as<first_broken_t<Late>, BrokenIsARule<Late>>);
static_assert(std::same_as<first_broken_t<Speechless>, BrokenIsARule<Speechless>>);
static_assert(std::same_as<first_broken_t<Silent>, None>, "a rule that always holds needs no sentence");
static_assert(!BrokenIsARule<Misspelt>::holds && BrokenIsARule<Violated<1>>::holds);

const bool Late::holds = true;

}  // namespace
}  // namespace strata::rule
