#pragma once
// strata/core/amounts.hpp - counts and bytes as a person reads them.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::core {

/// "1,024"
[[nodiscard]] std::string with_commas(std::uint64_t number);

/// "812 bytes", "307.2 MB": powers of 1000, as disks and traffic are sold.
[[nodiscard]] std::string in_megabytes(std::uint64_t bytes);

/// The other way: "5GB", "1.5 GiB", "500MB", "4096". Powers of 1000 for kB, MB, GB and TB, of 1024 for KiB, MiB, GiB and TiB. None for what
/// is no such text, or more than 2^63 bytes.
[[nodiscard]] std::optional<std::uint64_t> bytes_in(std::string_view text);

/// "12 s", "5 min", "1 min 30 s", "2 h", "1 h 5 min": two units at most; below zero is "0 s".
[[nodiscard]] std::string in_words(std::chrono::seconds time);

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/amounts.ipp>
#endif
