#pragma once
// strata/tables/table_file.hpp - TableFile: where the rows of a table come from.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace strata::tables {

/// A file in which rows are.
struct TableFile {
    /// Bytes [offset, offset + length), all of them; may throw.
    std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t length)> read;
    std::uint64_t size = 0;  ///< bytes
    std::string place;       ///< named in messages
};

}  // namespace strata::tables
