#pragma once
// strata/core/impl/error.ipp - how an Error's message is put together.

#include <strata/core/error.hpp>
#include <strata/core/printable.hpp>

namespace strata {

STRATA_INLINE Error::Error(Errc code, std::string_view what, std::string_view fix)
    : std::runtime_error{"[ST" + std::to_string(static_cast<unsigned>(code)) + "] " + core::printable(what) +
                         ". Fix: " + core::printable(fix) + "."},
      code_{code},
      problem_{core::printable(what)},
      fix_{core::printable(fix)} {}

}  // namespace strata
