#include <gtest/gtest.h>

#include <strata/http/url.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata_test::thrown_by;
namespace http = strata::http;

TEST(Url, EncodesEveryByteButTheUnreservedOnes) {
    EXPECT_EQ(http::percent_encode("AZaz09-._~"), "AZaz09-._~");
    EXPECT_EQ(http::percent_encode("a b+c%d/e"), "a%20b%2Bc%25d%2Fe");
    EXPECT_EQ(http::percent_encode("a/b c//", true), "a/b%20c//");
    EXPECT_EQ(http::percent_encode("é猫"), "%C3%A9%E7%8C%AB");
    EXPECT_EQ(http::percent_encode(std::string("\0\n\xff", 3)), "%00%0A%FF");
}

TEST(Url, DecodingUndoesEncoding) {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    EXPECT_EQ(http::percent_decode(http::percent_encode(all)), all);
    EXPECT_EQ(http::percent_decode(http::percent_encode(all), true), all);
    EXPECT_EQ(http::percent_decode("a+b%2bc%2Fd", true), "a b+c/d");
    EXPECT_EQ(http::percent_decode("a+b"), "a+b");
    EXPECT_EQ(http::percent_decode("%"), "%");
    EXPECT_EQ(http::percent_decode("%4"), "%4");
    EXPECT_EQ(http::percent_decode("%zz%4g"), "%zz%4g");
}

TEST(Url, QueriesAreSortedByWhatIsSent) {
    EXPECT_EQ(http::canonical_query({}), "");
    EXPECT_EQ(http::canonical_query({{"prefix", "a b/"}, {"max-keys", "2"}, {"uploads", ""}}),
              "max-keys=2&prefix=a%20b%2F&uploads=");
    EXPECT_EQ(http::canonical_query({{"b", "2"}, {"b", "1"}, {"B", "3"}}), "B=3&b=1&b=2");
}

TEST(Url, EndpointsComeApart) {
    const auto amazon = http::parse_endpoint("https://S3.Eu-Central-1.amazonaws.com");
    EXPECT_EQ(amazon.scheme, "https");
    EXPECT_EQ(amazon.host, "s3.eu-central-1.amazonaws.com");
    EXPECT_EQ(amazon.path, "");
    EXPECT_EQ(http::parse_endpoint("https://host:443/").host, "host");
    EXPECT_EQ(http::parse_endpoint("http://host:443/").host, "host:443");
    EXPECT_EQ(http::parse_endpoint("http://127.0.0.1:9000").host, "127.0.0.1:9000");
    EXPECT_EQ(http::parse_endpoint("http://[::1]:9000").host, "[::1]:9000");
    EXPECT_EQ(http::parse_endpoint("http://host/a%20b/c//").path, "/a%20b/c");
}

TEST(Url, RefusesWhatIsNoEndpointAndRepeatsNoPassword) {
    for (const char* text :
         {"", "host:9000", "ftp://host", "s3://bucket", "https://", "http://me:geheim@host", "http://host?geheim",
          "http://host/#geheim", "http://host:99999", "http://host/a b", "http://ho st/"}) {
        const auto error = thrown_by([&] { (void)http::parse_endpoint(text); });
        EXPECT_EQ(error.code, Errc::bad_value) << text;
        EXPECT_TRUE(error.says("aws_endpoint_url")) << error.message;
        EXPECT_FALSE(error.says("geheim")) << error.message;
    }
}

}  // namespace
