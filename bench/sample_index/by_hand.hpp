#pragma once
// bench/sample_index/by_hand.hpp - the limit: SQLite hands out every column of every row, and nothing is done with
// them.

#include <cstdint>
#include <filesystem>

namespace by_hand {

/// Opens the index and selects all columns of all pictures; numbers are asked for as such, texts where they lie.
///
///   returns rows
std::int64_t select_all(const std::filesystem::path& index);

}  // namespace by_hand
