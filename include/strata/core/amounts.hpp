#pragma once
// strata/core/amounts.hpp - counts and bytes as a person reads them.

#include <cstdint>
#include <string>

#include <strata/core/inline.hpp>

namespace strata::core {

/// "1,024"
[[nodiscard]] std::string with_commas(std::uint64_t number);

/// "812 bytes", "307.2 MB": powers of 1000, as disks and traffic are sold.
[[nodiscard]] std::string in_megabytes(std::uint64_t bytes);

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/amounts.ipp>
#endif
