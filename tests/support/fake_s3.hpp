#pragma once
// tests/support/fake_s3.hpp - what tests of S3 against a FakeHttpServer share: keys, options, answers.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/s3/s3.hpp>
#include <strata/storage/digest.hpp>

#include "fake_http_server.hpp"
#include "retry_in_steps.hpp"

namespace strata_test::fake_s3 {

namespace s3 = strata::s3;
namespace storage = strata::storage;
using namespace std::chrono_literals;

inline std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}
inline std::string text(const std::vector<std::byte>& b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }
inline std::string md5_of(std::string_view of) { return storage::to_hex(storage::md5(bytes(of))); }

inline constexpr const char* key_id = "AKIDEXAMPLE123";
inline constexpr const char* secret = "geheim/SecretOfTheTest";
inline constexpr const char* token = "token+OfTheTest/==";

inline s3::S3Options options_for(const std::string& url) {
    s3::S3Options options;
    options.bucket = "b";
    options.endpoint_url = url;
    options.access_key_id = key_id;
    options.secret_access_key = secret;
    options.retry = {.patience = 2s};
    options.retry_hooks = retry_in_steps();
    options.environment = [](const std::string&) { return std::nullopt; };
    return options;
}

/// An object, or the range of it that is asked for, as S3 answers.
inline FakeReply object_for(const FakeRequest& request, const std::string& object, std::string etag = {},
                            const std::string& more = {}) {
    if (etag.empty()) etag = md5_of(object);
    const std::string headers = "ETag: \"" + etag + "\"\r\n" + more;
    const std::string range = request.header("range");
    if (range.empty()) return FakeReply::answer(200, object, headers);
    const std::size_t begin = std::stoull(range.substr(6));
    const std::size_t last = std::min<std::size_t>(std::stoull(range.substr(range.find('-') + 1)), object.size() - 1);
    if (begin >= object.size()) return FakeReply::error(416, "InvalidRange");
    return FakeReply::answer(206, object.substr(begin, last - begin + 1),
                             headers + "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(last) +
                                 "/" + std::to_string(object.size()) + "\r\n");
}

}  // namespace strata_test::fake_s3
