#pragma once
// strata/core/impl/thrown_type.ipp - down to the first exception, and its type's name for people.

#include <typeinfo>

#include <strata/core/error.hpp>
#include <strata/core/impl/symbol_names.ipp>
#include <strata/core/thrown_type.hpp>

namespace strata::core {

STRATA_INLINE std::string thrown_type(const std::exception& failure) {
    try {
        std::rethrow_if_nested(failure);
    } catch (const std::exception& first) {
        return thrown_type(first);
    } catch (...) {
        return {};
    }
    if (dynamic_cast<const Error*>(&failure) != nullptr) return {};
    return detail::readable(typeid(failure).name());
}

}  // namespace strata::core
