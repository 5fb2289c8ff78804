#include "by_hand.hpp"

#include <cstdio>
#include <cstdlib>

#include <sqlite3.h>

namespace by_hand {

std::int64_t select_all(const std::filesystem::path& index) {
    sqlite3* database = nullptr;
    sqlite3_stmt* statement = nullptr;
    const auto require = [&](bool good) {
        if (good) return;
        std::fprintf(stderr, "by hand: %s\n", ::sqlite3_errmsg(database));
        std::exit(1);
    };
    require(::sqlite3_open_v2(index.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
    require(::sqlite3_prepare_v2(database, "SELECT * FROM pictures", -1, &statement, nullptr) == SQLITE_OK);
    const int columns = ::sqlite3_column_count(statement);
    std::int64_t rows = 0;
    std::int64_t sum = 0;
    int code = ::sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = ::sqlite3_step(statement), ++rows)
        for (int column = 0; column < columns; ++column)
            if (::sqlite3_column_type(statement, column) == SQLITE_INTEGER) {
                sum += ::sqlite3_column_int64(statement, column);
            } else if (const void* const text = ::sqlite3_column_blob(statement, column)) {
                sum += *static_cast<const char*>(text) + ::sqlite3_column_bytes(statement, column);
            }
    require(code == SQLITE_DONE);
    volatile std::int64_t used = sum;
    (void)used;
    ::sqlite3_finalize(statement);
    ::sqlite3_close(database);
    return rows;
}

}  // namespace by_hand
