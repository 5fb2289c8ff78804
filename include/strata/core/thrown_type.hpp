#pragma once
// strata/core/thrown_type.hpp - thrown_type(): what kind of exception a failure began with.

#include <exception>
#include <string>

#include <strata/core/inline.hpp>

namespace strata::core {

/// "c10::Error", "std::runtime_error": the type of the exception that is nested deepest. Empty where that is an Error, whose sentence says what it is,
/// or no std::exception.
[[nodiscard]] std::string thrown_type(const std::exception& failure);

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/thrown_type.ipp>
#endif
