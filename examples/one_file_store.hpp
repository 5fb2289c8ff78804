#pragma once
// examples/one_file_store.hpp - a store of your own: a folder's objects in one file, a data base of SQLite, for file systems that count
// files. docs/write-a-store.md goes through it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include <strata/core/error.hpp>
#include <strata/storage/object_store.hpp>

/// All processes of a host may use one file at once, and copies of a store share a connection. Network file systems lack the locks.
class OneFile {
public:
    using Bytes = std::vector<std::byte>;

    //! [made_of]
    /// Of a folder, as a dataset list names it; the file lies in there.
    explicit OneFile(const std::filesystem::path& folder) : file_{(folder / "objects.sqlite").string()} {
        std::filesystem::create_directories(folder);
        sqlite3* opened = nullptr;
        const int status = ::sqlite3_open(file_.c_str(), &opened);
        base_.reset(opened, ::sqlite3_close);
        if (status != SQLITE_OK) fail();
        ::sqlite3_busy_timeout(opened, 60'000);  // ms, for another process that writes
        Query{*this,
              "CREATE TABLE IF NOT EXISTS objects (key BLOB PRIMARY KEY, bytes BLOB NOT NULL, version TEXT NOT NULL)"}
            .next();
    }
    //! [made_of]

    //! [read]
    [[nodiscard]] std::optional<strata::storage::ObjectInfo> head(std::string_view key) const {
        Query query{*this, "SELECT length(bytes), version FROM objects WHERE key = ?1", checked(key)};
        if (!query.next()) return std::nullopt;
        return strata::storage::ObjectInfo{std::string{key}, static_cast<std::uint64_t>(query.number(0)),
                                           query.text(1)};
    }
    [[nodiscard]] bool exists(std::string_view key) const { return head(key).has_value(); }
    [[nodiscard]] Bytes get(std::string_view key) const {
        Query query{*this, "SELECT bytes FROM objects WHERE key = ?1", checked(key)};
        if (!query.next()) throw missing(key);
        return query.bytes(0);
    }
    [[nodiscard]] Bytes get_range(std::string_view key, std::uint64_t offset, std::uint64_t length) const {
        Query query{*this, "SELECT substr(bytes, ?2, ?3) FROM objects WHERE key = ?1", checked(key)};
        constexpr std::uint64_t most = 1U << 30;  // more than SQLite lets an object have
        query.bind(2, static_cast<std::int64_t>(std::min(offset, most)) + 1);
        query.bind(3, static_cast<std::int64_t>(std::min(length, most)));
        if (!query.next()) throw missing(key);
        return query.bytes(0);
    }
    //! [read]

    //! [list]
    [[nodiscard]] strata::storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                        std::size_t limit) const {
        Query query{*this, "SELECT key, length(bytes), version FROM objects WHERE key >= ?1 AND key > ?2 ORDER BY key",
                    prefix};
        query.bind(2, after);
        strata::storage::ObjectPage page;
        while (query.next() && query.text(0).starts_with(prefix)) {
            if (page.objects.size() == limit) {
                page.next = page.objects.back().key;
                break;
            }
            page.objects.push_back({query.text(0), static_cast<std::uint64_t>(query.number(1)), query.text(2)});
        }
        return page;
    }
    [[nodiscard]] std::vector<strata::storage::ObjectInfo> list(std::string_view prefix) const {
        return strata::storage::list_by_pages(*this, prefix);
    }
    //! [list]

    //! [write]
    // A statement is a transaction: seen whole or not at all.
    void put(std::string_view key, std::span<const std::byte> bytes) const {
        Query query{*this, "INSERT OR REPLACE INTO objects VALUES (?1, ?2, hex(randomblob(8)))", checked(key)};
        query.bind(2, std::string_view{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        query.next();
    }
    void remove(std::string_view key) const { Query{*this, "DELETE FROM objects WHERE key = ?1", checked(key)}.next(); }
    [[nodiscard]] std::string where(std::string_view key) const { return file_ + ":" + std::string{key}; }
    //! [write]

private:
    /// A statement, and the connection to itself while it runs.
    class Query {
    public:
        Query(const OneFile& store, const char* sql, std::optional<std::string_view> first = {})
            : store_{store}, lock_{*store.mutex_} {
            sqlite3_stmt* prepared = nullptr;
            if (::sqlite3_prepare_v2(store.base_.get(), sql, -1, &prepared, nullptr) != SQLITE_OK) store.fail();
            statement_.reset(prepared);
            if (first) bind(1, *first);
        }
        void bind(int at, std::string_view bytes) {
            // An empty view may have no address, and that would be NULL.
            if (::sqlite3_bind_blob64(statement_.get(), at, bytes.empty() ? "" : bytes.data(), bytes.size(),
                                      SQLITE_TRANSIENT) != SQLITE_OK)
                store_.fail();
        }
        void bind(int at, std::int64_t number) { ::sqlite3_bind_int64(statement_.get(), at, number); }
        /// False at the end.
        bool next() {
            const int status = ::sqlite3_step(statement_.get());
            if (status != SQLITE_ROW && status != SQLITE_DONE) store_.fail();
            return status == SQLITE_ROW;
        }
        [[nodiscard]] std::int64_t number(int column) const { return ::sqlite3_column_int64(statement_.get(), column); }
        [[nodiscard]] Bytes bytes(int column) const {
            const auto* const begin = static_cast<const std::byte*>(::sqlite3_column_blob(statement_.get(), column));
            const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column));
            return begin ? Bytes(begin, begin + size) : Bytes{};
        }
        [[nodiscard]] std::string text(int column) const {
            const Bytes all = bytes(column);
            return {reinterpret_cast<const char*>(all.data()), all.size()};
        }

    private:
        struct Finalize {
            void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
        };
        const OneFile& store_;
        std::lock_guard<std::mutex> lock_;
        std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    };

    static std::string_view checked(std::string_view key) {
        if (key.empty())
            throw strata::Error{strata::Errc::bad_object_key, "the key of an object is empty", "name an object"};
        return key;
    }
    [[nodiscard]] strata::Error missing(std::string_view key) const {
        return strata::Error{strata::Errc::not_found, "there is no object '" + where(key) + "'", "check the key"};
    }
    [[noreturn]] void fail() const {
        throw strata::Error{strata::Errc::io_failed, "'" + file_ + "': " + ::sqlite3_errmsg(base_.get()),
                            "check the file, its permissions and its disk"};
    }

    std::string file_;
    std::shared_ptr<sqlite3> base_;
    std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
};
static_assert(strata::storage::ObjectStore<OneFile>);
