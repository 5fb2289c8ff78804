#pragma once
// tests/support/own_certificate.hpp - a certificate that nobody but its maker has signed.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace strata_test {

/// A server's side of TLS with a certificate for `name` ("IP:127.0.0.1"), which is also written to a file.
class OwnCertificate {
public:
    OwnCertificate(const std::string& name, const std::filesystem::path& pem) {
        key_.reset(::EVP_EC_gen("P-256"));
        certificate_.reset(::X509_new());
        X509* const x = certificate_.get();
        ::X509_set_version(x, 2);
        ::ASN1_INTEGER_set(::X509_get_serialNumber(x), 1);
        ::X509_gmtime_adj(::X509_getm_notBefore(x), -3600);
        ::X509_gmtime_adj(::X509_getm_notAfter(x), 3600);
        ::X509_set_pubkey(x, key_.get());
        X509_NAME* const subject = ::X509_get_subject_name(x);
        ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1,
                                     -1, 0);
        ::X509_set_issuer_name(x, subject);
        X509_EXTENSION* const names = ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, name.c_str());
        ::X509_add_ext(x, names, -1);
        ::X509_EXTENSION_free(names);
        ::X509_sign(x, key_.get(), ::EVP_sha256());
        std::unique_ptr<FILE, int (*)(FILE*)> file{std::fopen(pem.c_str(), "w"), &std::fclose};
        ::PEM_write_X509(file.get(), x);
        context_.reset(::SSL_CTX_new(::TLS_server_method()));
        ::SSL_CTX_use_certificate(context_.get(), x);
        ::SSL_CTX_use_PrivateKey(context_.get(), key_.get());
    }
    [[nodiscard]] SSL_CTX* context() const noexcept { return context_.get(); }
    /// For a server of another process.
    void write_key(const std::filesystem::path& pem) const {
        std::unique_ptr<FILE, int (*)(FILE*)> file{std::fopen(pem.c_str(), "w"), &std::fclose};
        ::PEM_write_PrivateKey(file.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    }

private:
    std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_{nullptr, &::EVP_PKEY_free};
    std::unique_ptr<X509, void (*)(X509*)> certificate_{nullptr, &::X509_free};
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{nullptr, &::SSL_CTX_free};
};

}  // namespace strata_test
