#pragma once
// strata/datasets/detail/sqlite_statement.hpp - prepared statements of SQLite, and its failures as those of an index.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include <strata/core/error.hpp>
#include <strata/core/lock_holder.hpp>
#include <strata/storage/content_hash.hpp>

namespace strata::datasets::detail::index {

/// The file is no index that can be used; what() says why.
class Unusable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(::sqlite3* database, int code, const std::filesystem::path& file) {
    const std::string why = database != nullptr ? ::sqlite3_errmsg(database) : ::sqlite3_errstr(code);
    const std::string what = "index '" + file.string() + "' cannot be used: " + why;
    switch (code & 0xFF) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_FORMAT:
            throw Unusable{why};
        case SQLITE_FULL:
            throw Error{Errc::no_space, what, "free some space and start again; nothing was lost"};
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            // By the kernel's list alone: to open the file here would end SQLite's own locks when it is closed.
            throw Error{Errc::output_in_use, "index '" + file.string() + "' is in use: " + core::lock_holder(file),
                        "wait for it to end, or use another output directory"};
        case SQLITE_NOMEM:
            throw std::bad_alloc{};
        default:
            throw Error{Errc::io_failed, what, "check the folder's permissions and the disk, or remove the file"};
    }
}

/// A prepared statement.
class Statement {
public:
    Statement(::sqlite3* database, const char* text, const std::filesystem::path& file)
        : database_{database}, file_{file} {
        check(::sqlite3_prepare_v2(database, text, -1, &statement_, nullptr));
    }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    ~Statement() { ::sqlite3_finalize(statement_); }

    /// True: there is a row.
    bool step() {
        const int code = ::sqlite3_step(statement_);
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) fail(database_, code, file_);
        next_ = 0;
        return false;
    }
    void run() {
        while (step()) {
        }
        ::sqlite3_reset(statement_);
    }
    /// Ready for other parameters before it has run to its end.
    void reset() {
        ::sqlite3_reset(statement_);
        next_ = 0;
    }

    // Columns of a row, and parameters in their order.
    [[nodiscard]] std::int64_t integer(int column) const { return ::sqlite3_column_int64(statement_, column); }
    [[nodiscard]] bool is_null(int column) const { return ::sqlite3_column_type(statement_, column) == SQLITE_NULL; }
    [[nodiscard]] std::string_view text(int column) const {
        const void* const data = ::sqlite3_column_blob(statement_, column);  // the bytes of a text as they are
        if (data == nullptr) return {};
        return {static_cast<const char*>(data), static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column))};
    }
    Statement& operator<<(std::int64_t number) {
        check(::sqlite3_bind_int64(statement_, ++next_, number));
        return *this;
    }
    /// The text must live until the statement has run.
    Statement& operator<<(std::string_view text) {
        check(::sqlite3_bind_text64(statement_, ++next_, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC,
                                    SQLITE_UTF8));
        return *this;
    }
    /// The hash must live until the statement has run.
    Statement& operator<<(const storage::ContentHash& hash) {
        if (!hash) return *this << nullptr;
        check(::sqlite3_bind_blob64(statement_, ++next_, hash.bytes.data(), hash.bytes.size(), SQLITE_STATIC));
        return *this;
    }
    Statement& operator<<(std::nullptr_t) {
        check(::sqlite3_bind_null(statement_, ++next_));
        return *this;
    }

private:
    void check(int code) const {
        if (code != SQLITE_OK) fail(database_, code, file_);
    }
    ::sqlite3* database_;
    const std::filesystem::path& file_;
    ::sqlite3_stmt* statement_ = nullptr;
    int next_ = 0;
};

inline void execute(::sqlite3* database, const char* text, const std::filesystem::path& file) {
    if (const int code = ::sqlite3_exec(database, text, nullptr, nullptr, nullptr); code != SQLITE_OK)
        fail(database, code, file);
}

inline std::int64_t number(::sqlite3* database, const char* text, const std::filesystem::path& file) {
    Statement statement{database, text, file};
    return statement.step() ? statement.integer(0) : 0;
}

/// All of `work` or, where it throws, nothing.
template <class Work>
void in_transaction(::sqlite3* database, const std::filesystem::path& file, const Work& work) {
    execute(database, "BEGIN IMMEDIATE", file);
    try {
        work();
        execute(database, "COMMIT", file);
    } catch (...) {
        ::sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
        throw;
    }
}

}  // namespace strata::datasets::detail::index
