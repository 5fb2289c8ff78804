#include <string>

#include <gtest/gtest.h>

#include <strata/s3/s3_answers.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata_test::thrown_by;
namespace s3 = strata::s3;

const std::string opening =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
const std::string closing = "</ListBucketResult>";

std::string object(const std::string& key, const std::string& size = "17",
                   const std::string& etag = "&quot;4a6c&quot;") {
    return "<Contents><Key>" + key + "</Key><LastModified>2026-11-21T00:01:31.032Z</LastModified><ETag>" + etag +
           "</ETag><Size>" + size + "</Size></Contents>";
}

TEST(S3Answers, ReadsListings) {
    const auto listing = s3::parse_listing(opening + "<Name>b</Name><IsTruncated>true</IsTruncated>" +
                                               object("a &amp;&#x41;é") + "\n  " + object(" ", "0", "W/\"x-2\"") +
                                               "<NextContinuationToken>t&amp;k</NextContinuationToken>" + closing,
                                           "x");
    ASSERT_EQ(listing.objects.size(), 2U);
    EXPECT_EQ(listing.objects[0].key, "a &Aé");
    EXPECT_EQ(listing.objects[0].size, 17U);
    EXPECT_EQ(listing.objects[0].version, "4a6c");
    EXPECT_EQ(listing.objects[1].key, " ");
    EXPECT_EQ(listing.objects[1].version, "x-2");
    EXPECT_TRUE(listing.truncated);
    EXPECT_EQ(listing.token, "t&k");
}

TEST(S3Answers, DecodesKeysOnlyWhereTheServerEncodedThem) {
    const std::string one = "<IsTruncated>false</IsTruncated>" + object("a%2Fb+c%2B");
    EXPECT_EQ(s3::parse_listing(opening + one + closing, "x").objects[0].key, "a%2Fb+c%2B");
    EXPECT_EQ(s3::parse_listing(opening + "<EncodingType>url</EncodingType>" + one + closing, "x").objects[0].key,
              "a/b c+");
}

TEST(S3Answers, RefusesWhatIsNoListing) {
    const std::string end = "<IsTruncated>false</IsTruncated>" + closing;
    const std::vector<std::string> bad{
        "",
        "no xml",
        "<html><body>Welcome</body></html>",
        "<Error><Code>NoSuchBucket</Code></Error>",
        opening + object("a"),                                              // cut off
        opening + object("a") + "<IsTruncated>false</IsTruncated></List>",  // another end
        opening + object("a") + closing,                                    // more to come or not?
        opening + object("") + end,
        opening + object("a", "") + end,
        opening + object("a", "-1") + end,
        opening + object("a", "12x") + end,
        opening + object("a", "99999999999999999999999") + end,
        opening + object("a", "1", "") + end,
        opening + "<Contents/>" + end,
    };
    for (const std::string& body : bad) {
        const auto error = thrown_by([&] { (void)s3::parse_listing(body, "a listing of 's3://b/'"); });
        EXPECT_EQ(error.code, Errc::bad_answer) << body;
        EXPECT_TRUE(error.says("a listing of 's3://b/'")) << error.message;
    }
}

TEST(S3Answers, ExpandsNoEntitiesOfADocumentsOwn) {
    const std::string body =
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"boom\"><!ENTITY f SYSTEM \"file:///etc/passwd\">]>"
        "<Error><Code>&a;&f;</Code></Error>";
    const auto refusal = s3::parse_refusal(body);
    if (refusal) {
        EXPECT_EQ(refusal->code, "&a;&f;");
    }
}

TEST(S3Answers, ReadsRefusals) {
    const auto refusal = s3::parse_refusal(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>AuthorizationHeaderMalformed</Code><Message>wrong "
        "region</Message><Region>eu-west-1</Region><RequestId>tx0</RequestId></Error>");
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code, "AuthorizationHeaderMalformed");
    EXPECT_EQ(refusal->message, "wrong region");
    EXPECT_EQ(refusal->region, "eu-west-1");
    EXPECT_FALSE(s3::parse_refusal(""));
    EXPECT_FALSE(s3::parse_refusal("<html/>"));
    EXPECT_FALSE(s3::parse_refusal("<Error><Code>x"));
}

TEST(S3Answers, ReadsUploadIds) {
    EXPECT_EQ(
        s3::parse_upload_id("<InitiateMultipartUploadResult xmlns=\"x\"><Bucket>b</Bucket><UploadId>2~IJ_x</UploadId>"
                            "</InitiateMultipartUploadResult>",
                            "x"),
        "2~IJ_x");
    for (const char* body : {"", "<InitiateMultipartUploadResult/>", "<Other><UploadId>x</UploadId></Other>"})
        EXPECT_EQ(thrown_by([&] { (void)s3::parse_upload_id(body, "x"); }).code, Errc::bad_answer) << body;
}

}  // namespace
