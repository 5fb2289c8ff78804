#pragma once
// strata/s3/s3.hpp - S3: a bucket of an S3 server as an object store.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/s3/s3_options.hpp>
#include <strata/storage/object_store.hpp>

namespace strata {

namespace s3::detail {
class S3Client;
}

/// A bucket, or what has `data_prefix` in front in it, as an object store.
///
/// Keys may be any 1 to 1024 bytes of UTF-8, the prefix included; "a//b" and "a/b" are two objects. The version is the
/// ETag. Objects larger than part_bytes are read and written in parts, several at once: a read's parts are tied to one
/// ETag, and a written object appears when all of its parts are there. Requests are signed (signature version 4) with
/// their bodies' check sums; an ETag that is an MD5 sum is compared with the bytes. A request that failed in a way that
/// may pass is made again (RetryOptions).
///
/// Thread-safe; copies share connections and counters. Works with Amazon S3 and servers that speak its API (Ceph,
/// MinIO).
///
/// Every call throws store_refused (credentials or rights), no_bucket, clock_skew, store_unreachable (address, TLS),
/// transfer_failed (connections that break or stall, 429 and 5xx, when no attempt is left), bad_answer (no S3 server,
/// or damaged bytes), interrupted; reads not_found and object_changed; writes no_space; and all bad_object_key for a
/// key that is empty or too long. Messages name object and server, and no secret.
class S3 {
public:
    /// Makes no request. Throws bad_value for options that cannot work and what find_credentials() throws.
    explicit S3(s3::S3Options options);

    /// What lies below `prefix` in this store, over the same connections.
    [[nodiscard]] S3 below(std::string_view prefix) const;

    [[nodiscard]] std::vector<storage::ObjectInfo> list(std::string_view prefix) const;
    [[nodiscard]] storage::ObjectPage list_page(std::string_view prefix, std::string_view after,
                                                std::size_t limit) const;
    [[nodiscard]] std::optional<storage::ObjectInfo> head(std::string_view key) const;
    [[nodiscard]] bool exists(std::string_view key) const;
    [[nodiscard]] std::vector<std::byte> get(std::string_view key) const;
    [[nodiscard]] storage::VersionedBytes get_versioned(std::string_view key) const;  ///< with their ETag
    [[nodiscard]] std::vector<std::byte> get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const;
    void put(std::string_view key, std::span<const std::byte> bytes) const;
    void remove(std::string_view key) const;
    [[nodiscard]] std::string where(std::string_view key) const;  ///< s3://bucket/key, or the server's address and both

    /// Requests that are under way at once at most: max_pool_connections.
    [[nodiscard]] int requests_at_once() const noexcept;
    /// Of this store and all that share its connections, so far.
    [[nodiscard]] s3::S3Traffic traffic() const;
    /// Calls under way and later ones, of copies as well, throw interrupted within 0.1 s. From any thread.
    void interrupt() const noexcept;

private:
    S3(std::shared_ptr<s3::detail::S3Client> client, std::string prefix);
    [[nodiscard]] std::string whole(std::string_view key) const;
    void put_in_parts(const std::string& key, std::span<const std::byte> bytes) const;

    std::shared_ptr<s3::detail::S3Client> client_;
    std::string prefix_;
};
static_assert(storage::ObjectStore<S3>);

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/s3/impl/s3.ipp>
#include <strata/s3/impl/s3_read.ipp>
#include <strata/s3/impl/s3_write.ipp>
#endif
