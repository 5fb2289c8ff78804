#pragma once
// strata/zero/parts/exceptions.hpp - which parameters keep the other number format of Precision<Format, Except<Other>>.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::zero {

namespace detail {

/// Marks parameters whose name has one of `patterns`, or that `excepts` takes. Throws bad_value for a pattern that no parameter has,
/// for exceptions that a precision has no format for, and for a format without exceptions.
///
///   patterns  parts of names, with commas between
///   possible  the precision has a format for exceptions
[[nodiscard]] std::vector<Parameter> marked(std::vector<Parameter> parameters, std::string_view patterns,
                                            const std::function<bool(std::string_view)>& excepts, bool possible);

}  // namespace detail

/// The parameters, each marked as the options say. Local. Throws bad_value.
///
///   Options   EngineOptions
///   possible  the precision has a format for exceptions
template <class Options>
[[nodiscard]] std::vector<Parameter> with_exceptions(std::vector<Parameter> parameters, const Options& options,
                                                     bool possible) {
    return detail::marked(std::move(parameters), options.excepted_parameters, options.excepts, possible);
}

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/exceptions.ipp>
#endif
