#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/http/url.hpp>
#include <strata/s3/sigv4.hpp>

namespace {

namespace http = strata::http;
namespace s3 = strata::s3;
namespace storage = strata::storage;

constexpr const char* empty_sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Amazon S3 API reference, "Authenticating Requests: Using the Authorization Header", the examples there.
const s3::SigningScope scope{"20130524T000000Z", "us-east-1"};
const strata::Secret secret{"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};

std::string sign(s3::SignedParts parts) {
    parts.headers.insert(parts.headers.end(), {{"Host", "examplebucket.s3.amazonaws.com"},
                                               {"x-amz-date", scope.time},
                                               {"x-amz-content-sha256", parts.payload_sha256}});
    return s3::authorization("AKIAIOSFODNN7EXAMPLE", s3::signing_key(secret, scope), scope, parts);
}

TEST(Sigv4, SignsAmazonsExamples) {
    EXPECT_EQ(sign({"GET", "/test.txt", "", {{"Range", "bytes=0-9"}}, empty_sha256}),
              "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
              "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
              "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    EXPECT_TRUE(sign({"PUT",
                      "/" + http::percent_encode("test$file.text", true),
                      "",
                      {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                      "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"})
                    .ends_with("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
    EXPECT_TRUE(sign({"GET", "/", http::canonical_query({{"lifecycle", ""}}), {}, empty_sha256})
                    .ends_with("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
    EXPECT_TRUE(sign({"GET", "/", http::canonical_query({{"prefix", "J"}, {"max-keys", "2"}}), {}, empty_sha256})
                    .ends_with("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(Sigv4, TimesAreUtcWithoutSeparators) {
    EXPECT_EQ(s3::signing_time(std::chrono::system_clock::from_time_t(1369353600)), "20130524T000000Z");
    EXPECT_EQ(s3::signing_time(std::chrono::system_clock::from_time_t(951827696)), "20000229T123456Z");
}

TEST(Sigv4, ValuesOfOneNameAreJoinedAndBlanksCollapse) {
    const std::string text =
        s3::canonical_request({"GET", "/", "", {{"B", " x  y\n  z "}, {"a", "2"}, {"A", "1"}, {"c", ""}}, "hash"});
    EXPECT_EQ(text, "GET\n/\n\na:2,1\nb:x y z\nc:\n\na;b;c\nhash");
}

nlohmann::json read_reference(const char* name) {
    const std::filesystem::path path = std::filesystem::path{STRATA_REFERENCE_DIR} / "data" / "s3" / name;
    std::ifstream file{path};
    return file ? nlohmann::json::parse(file) : nlohmann::json{};
}

/// Never left to a conversion: what compares with a value of nlohmann-json differs from release to release.
std::string text_in(const nlohmann::json& object, const std::string& key) { return object.at(key).get<std::string>(); }

TEST(Sigv4, SignsEveryExampleOfTheReference) {
    const auto file = read_reference("sigv4_s3_examples.json");
    if (file.is_null()) GTEST_SKIP() << "no data/s3/sigv4_s3_examples.json below STRATA_REFERENCE_DIR";
    const s3::SigningScope their_scope{text_in(file, "date"), text_in(file, "region")};
    const auto key = s3::signing_key(strata::Secret{text_in(file, "secret_key")}, their_scope);
    int count = 0;
    for (const auto& example : file["examples"]) {
        const std::string to_sign = text_in(example, "string_to_sign");
        EXPECT_EQ(s3::string_to_sign(their_scope, text_in(example, "canonical_request")), to_sign) << example["name"];
        EXPECT_EQ(s3::signature(key, to_sign), text_in(example, "signature")) << example["name"];
        ++count;
    }
    EXPECT_EQ(count, 5);
}

/// "/a/../b?c=d" and headers as a request's text has them; the path and query raw, as the suite gives them.
s3::SignedParts read_request(const std::string& text, const nlohmann::json& context) {
    s3::SignedParts parts;
    const std::string line = text.substr(0, text.find('\n'));
    parts.method = line.substr(0, line.find(' '));
    const std::string target = line.substr(parts.method.size() + 1, line.rfind(" HTTP/") - parts.method.size() - 1);
    parts.path = http::percent_encode(target.substr(0, target.find('?')), true);
    http::QueryParameters query;
    if (target.find('?') != std::string::npos) {
        std::stringstream fields{target.substr(target.find('?') + 1)};
        for (std::string field; std::getline(fields, field, '&');) {
            const std::size_t equals = std::min(field.find('='), field.size());
            query.emplace_back(http::percent_decode(field.substr(0, equals)),
                               equals < field.size() ? http::percent_decode(field.substr(equals + 1)) : "");
        }
    }
    parts.query = http::canonical_query(query);
    const std::size_t blank = text.find("\n\n");
    std::stringstream head{text.substr(0, blank)};
    std::string skipped;
    std::getline(head, skipped);
    for (std::string header; std::getline(head, header);) {
        if (header.starts_with(' '))
            parts.headers.back().value += "\n" + header;
        else if (!header.empty())
            parts.headers.push_back({header.substr(0, header.find(':')), header.substr(header.find(':') + 1)});
    }
    const std::string body = blank == std::string::npos ? "" : text.substr(blank + 2);
    parts.payload_sha256 = storage::to_hex(storage::sha256(std::as_bytes(std::span{body.data(), body.size()})));
    if (context["sign_body"].get<bool>()) parts.headers.push_back({"x-amz-content-sha256", parts.payload_sha256});
    return parts;
}

TEST(Sigv4, SignsTheTestSuiteWherePathsAreNotNormalised) {
    const auto file = read_reference("sigv4_test_suite.json");
    if (file.is_null()) GTEST_SKIP() << "no data/s3/sigv4_test_suite.json below STRATA_REFERENCE_DIR";
    int count = 0;
    for (const auto& [name, one] : file["cases"].items()) {
        if (name.ends_with("-normalized")) continue;  // S3 never normalises: each has an -unnormalized twin
        const auto& context = one["context.json"];
        s3::SignedParts parts = read_request(text_in(one, "request.txt"), context);
        std::string time = text_in(context, "timestamp");
        std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
        parts.headers.push_back({"X-Amz-Date", time});
        const auto& keys = context["credentials"];
        if (keys.contains("token") && !context.value("omit_session_token", false))
            parts.headers.push_back({"X-Amz-Security-Token", text_in(keys, "token")});
        const s3::SigningScope their_scope{time, text_in(context, "region"), text_in(context, "service")};
        const auto key = s3::signing_key(strata::Secret{text_in(keys, "secret_access_key")}, their_scope);
        EXPECT_EQ(s3::canonical_request(parts), text_in(one, "header-canonical-request.txt")) << name;
        const std::string header = s3::authorization(text_in(keys, "access_key_id"), key, their_scope, parts);
        EXPECT_TRUE(header.ends_with("Signature=" + text_in(one, "header-signature.txt"))) << name;
        ++count;
    }
    EXPECT_GE(count, 28);
}

TEST(Sigv4, SignsWhatARealServerAccepted) {
    const auto file = read_reference("rgw_transcripts.json");
    if (file.is_null()) GTEST_SKIP() << "no data/s3/rgw_transcripts.json below STRATA_REFERENCE_DIR";
    const strata::Secret their_secret{file["secret_key"].get<std::string>()};
    int count = 0;
    for (const auto& one : file["exchanges"]) {
        const std::string name = text_in(one, "name");
        const auto& headers = one["request_headers"];
        if (!headers.contains("authorization") || !one.contains("canonical_request")) continue;
        if (name.starts_with("wrong_secret") || name.starts_with("unknown_key")) continue;
        s3::SignedParts parts{text_in(one, "method"),
                              http::percent_encode(text_in(one, "path"), true),
                              "",
                              {},
                              text_in(headers, "x-amz-content-sha256")};
        http::QueryParameters query;
        for (const auto& [key, value] : one["query"].items())
            query.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
        parts.query = http::canonical_query(query);
        const std::string given = text_in(headers, "authorization");
        const std::size_t begin = given.find("SignedHeaders=") + std::string_view{"SignedHeaders="}.size();
        std::stringstream names{given.substr(begin, given.find(',', begin) - begin)};
        for (std::string key; std::getline(names, key, ';');) parts.headers.push_back({key, text_in(headers, key)});
        const s3::SigningScope their_scope{text_in(headers, "x-amz-date"), text_in(file, "region")};
        EXPECT_EQ(s3::canonical_request(parts), text_in(one, "canonical_request")) << name;
        EXPECT_EQ(s3::authorization(text_in(file, "access_key"), s3::signing_key(their_secret, their_scope),
                                    their_scope, parts),
                  given)
            << name;
        ++count;
    }
    EXPECT_GE(count, 40);
}

}  // namespace
