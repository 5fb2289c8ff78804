#pragma once
// strata/storage/digest.hpp - SHA-256, HMAC-SHA-256 and MD5 of bytes, over OpenSSL, and how they are written.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // of OpenSSL

namespace strata::storage {

using Sha256 = std::array<std::byte, 32>;
using Md5 = std::array<std::byte, 16>;

/// FIPS 180-4. This and all below throw io_failed where OpenSSL is set up without the algorithm.
[[nodiscard]] Sha256 sha256(std::span<const std::byte> bytes);
/// RFC 2104 over SHA-256.
[[nodiscard]] Sha256 hmac_sha256(std::span<const std::byte> key, std::string_view message);
/// RFC 1321: a check sum against accidents, not against people.
[[nodiscard]] Md5 md5(std::span<const std::byte> bytes);

/// MD5 of bytes that come one after the other.
class Md5Sum {
public:
    Md5Sum();
    void add(std::span<const std::byte> bytes);
    [[nodiscard]] Md5 finish();  ///< once

private:
    struct Free {
        void operator()(evp_md_ctx_st* context) const noexcept;
    };
    std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// "0f1e..": two lower-case digits a byte.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// RFC 4648, section 4, with padding.
[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/digest.ipp>
#endif
