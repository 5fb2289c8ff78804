#pragma once
// tests/support/refused.hpp - the number of the error that a call throws.

#include <utility>

#include <strata/core/error.hpp>

namespace strata_test {

/// Errc{} when it throws none.
template <class Call>
strata::Errc refused(Call&& call) {
    try {
        std::forward<Call>(call)();
    } catch (const strata::Error& error) {
        return error.code();
    }
    return strata::Errc{};
}

}  // namespace strata_test
