#pragma once
// strata/datasets/url_store.hpp - UrlStore: pictures at the addresses of a list, kept in a folder once fetched.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/http/http_pool.hpp>
#include <strata/http/retry.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::datasets {

struct UrlStoreOptions {
    std::filesystem::path list;      ///< a table (tables::table_format())
    std::string url_column = "url";  ///< its column with http and https addresses
    std::filesystem::path folder;    ///< where pictures are kept
    http::HttpOptions http{.connections = 16};
    int attempts = 5;                         ///< of one address in all: of many hosts one may be gone for good
    http::RetryOptions retry{};               ///< how long to wait between them; attempts_at_first
    std::uint64_t most_bytes = 256ULL << 20;  ///< of a picture
};

/// The pictures of a list of addresses as an object store that is only read. A key follows from its address
/// (url_key()), where() is the address.
///
/// A listing fetches what the folder does not have, several at once, and follows up to five redirects. Beside a picture
/// lies what it was when it was fetched: address, size, SHA-256, modification time. A file of another size is fetched
/// again, one of another time is read and, unless it is the same, fetched again. The version is of the bytes: a picture
/// that is fetched again and is the same is no other one. What is no longer in the list stays in the folder and is not
/// listed.
///
/// An address that gives no picture does not end a listing: it has size 0 there, and get() of it throws
/// Errc::url_failed with the reason, from each process that asks; it is tried again by the next one. Thread-safe;
/// copies share everything.
///
/// Throws Errc::bad_reference for a list that is not there, what tables::read_rows() and a folder throw, interrupted,
/// and read_only for put().
class UrlStore {
public:
    /// Reads nothing yet.
    explicit UrlStore(UrlStoreOptions options);

    [[nodiscard]] std::vector<storage::ObjectInfo> list(std::string_view prefix) const;
    [[nodiscard]] storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                std::size_t limit) const;
    void list_each(std::string_view prefix, const std::function<bool(storage::ObjectInfo&&)>& visit) const;
    [[nodiscard]] std::optional<storage::ObjectInfo> head(std::string_view key) const;
    [[nodiscard]] bool exists(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const;
    [[noreturn]] void put(std::string_view key, std::span<const std::byte> bytes) const;
    void remove(std::string_view key) const;  ///< the copy in the folder: the next listing fetches it again
    [[nodiscard]] std::string where(std::string_view key) const;

    [[nodiscard]] int requests_at_once() const noexcept;
    /// Requests under way, and later ones, throw Errc::interrupted.
    void interrupt() const noexcept;

private:
    class State;
    std::shared_ptr<State> state_;
};

/// "0f1e...png": 32 hexadecimal digits of the address, and its ending, or .jpg where it has none of a picture.
[[nodiscard]] std::string url_key(std::string_view url);

/// The address that a redirect leads to; empty if it is no http or https address.
[[nodiscard]] std::string redirected(std::string_view from, std::string_view location);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/url_store.ipp>
#endif
