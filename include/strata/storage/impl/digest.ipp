#pragma once
// strata/storage/impl/digest.ipp - the calls of OpenSSL.

#include <algorithm>

#include <openssl/evp.h>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/digest.hpp>

namespace strata::storage {

namespace detail {

/// Looked up once: OpenSSL 3 takes longer for that than for a short text's sum.
inline const EVP_MD* algorithm(const char* name) {
    const EVP_MD* const found = ::EVP_MD_fetch(nullptr, name, nullptr);
    if (found == nullptr)
        throw Error{Errc::io_failed, "OpenSSL offers no " + std::string{name},
                    "let OpenSSL load its default provider; one for FIPS alone has no MD5"};
    return found;
}
inline const EVP_MD* sha256_algorithm() {
    static const EVP_MD* const found = algorithm("SHA256");
    return found;
}
inline const EVP_MD* md5_algorithm() {
    static const EVP_MD* const found = algorithm("MD5");
    return found;
}

inline void require_openssl(bool holds) {
    if (!holds) throw Error{Errc::io_failed, "OpenSSL cannot compute a check sum", "free some memory"};
}

/// A sum in steps.
class Digest {
public:
    explicit Digest(const EVP_MD* kind) : context_{::EVP_MD_CTX_new(), &::EVP_MD_CTX_free} {
        require_openssl(context_ != nullptr && ::EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
    }
    Digest& add(std::span<const std::byte> bytes) {
        require_openssl(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
        return *this;
    }
    template <class Sum>
    [[nodiscard]] Sum finish() {
        Sum sum{};
        require_openssl(::EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(sum.data()), nullptr) ==
                        1);
        return sum;
    }

private:
    std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace detail

STRATA_INLINE Sha256 sha256(std::span<const std::byte> bytes) {
    return detail::Digest{detail::sha256_algorithm()}.add(bytes).finish<Sha256>();
}

STRATA_INLINE Md5 md5(std::span<const std::byte> bytes) {
    return detail::Digest{detail::md5_algorithm()}.add(bytes).finish<Md5>();
}

STRATA_INLINE Sha256 hmac_sha256(std::span<const std::byte> key, std::string_view message) {
    constexpr std::size_t block = 64;  // bytes that SHA-256 takes in at once
    std::array<std::byte, block> inner{};
    const Sha256 short_key = key.size() > block ? sha256(key) : Sha256{};
    const std::span<const std::byte> used = key.size() > block ? std::span<const std::byte>{short_key} : key;
    std::copy(used.begin(), used.end(), inner.begin());
    std::array<std::byte, block> outer = inner;
    for (std::byte& byte : inner) byte ^= std::byte{0x36};
    for (std::byte& byte : outer) byte ^= std::byte{0x5c};
    const Sha256 first = detail::Digest{detail::sha256_algorithm()}
                             .add(inner)
                             .add(std::as_bytes(std::span{message.data(), message.size()}))
                             .finish<Sha256>();
    return detail::Digest{detail::sha256_algorithm()}.add(outer).add(first).finish<Sha256>();
}

STRATA_INLINE void Md5Sum::Free::operator()(evp_md_ctx_st* context) const noexcept { ::EVP_MD_CTX_free(context); }

STRATA_INLINE Md5Sum::Md5Sum() : context_{::EVP_MD_CTX_new()} {
    detail::require_openssl(context_ != nullptr &&
                            ::EVP_DigestInit_ex(context_.get(), detail::md5_algorithm(), nullptr) == 1);
}

STRATA_INLINE void Md5Sum::add(std::span<const std::byte> bytes) {
    detail::require_openssl(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

STRATA_INLINE Md5 Md5Sum::finish() {
    Md5 sum{};
    detail::require_openssl(
        ::EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(sum.data()), nullptr) == 1);
    return sum;
}

STRATA_INLINE std::string to_hex(std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte byte : bytes) {
        text += digits[std::to_integer<unsigned>(byte) >> 4];
        text += digits[std::to_integer<unsigned>(byte) & 15U];
    }
    return text;
}

STRATA_INLINE std::string to_base64(std::span<const std::byte> bytes) {
    std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a zero
    text.resize(static_cast<std::size_t>(::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                           reinterpret_cast<const unsigned char*>(bytes.data()),
                                                           static_cast<int>(bytes.size()))));
    return text;
}

}  // namespace strata::storage
