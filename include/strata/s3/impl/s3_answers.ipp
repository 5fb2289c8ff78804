#pragma once
// strata/s3/impl/s3_answers.ipp - XML over pugixml, which expands no entities of a document's own.

#include <charconv>

#include <pugixml.hpp>

#include <strata/core/inline.hpp>
#include <strata/http/url.hpp>
#include <strata/s3/s3_answers.hpp>

namespace strata::s3 {

namespace detail {

/// The document's only element. White space between tags is dropped and white space as text kept, because it may be a
/// key.
inline pugi::xml_node read_root(pugi::xml_document& document, std::string_view body) {
    const auto options = pugi::parse_escapes | pugi::parse_cdata | pugi::parse_eol | pugi::parse_ws_pcdata_single;
    const auto result = document.load_buffer(body.data(), body.size(), options, pugi::encoding_utf8);
    return result ? document.document_element() : pugi::xml_node{};
}

STRATA_INLINE Error bad_answer(std::string_view source, std::string_view why) {
    return Error{Errc::bad_answer, "the answer to " + std::string{source} + " " + std::string{why},
                 "check that aws_endpoint_url is the address of an S3 server and not of something in front of it"};
}

}  // namespace detail

STRATA_INLINE std::string plain_etag(std::string_view etag) {
    if (etag.starts_with("W/")) etag.remove_prefix(2);
    if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) etag = etag.substr(1, etag.size() - 2);
    return std::string{etag};
}

STRATA_INLINE std::optional<S3Refusal> parse_refusal(std::string_view body) {
    pugi::xml_document document;
    const pugi::xml_node root = detail::read_root(document, body);
    if (std::string_view{root.name()} != "Error") return std::nullopt;
    return S3Refusal{root.child_value("Code"), root.child_value("Message"), root.child_value("Region")};
}

STRATA_INLINE S3Listing parse_listing(std::string_view body, std::string_view source) {
    pugi::xml_document document;
    const pugi::xml_node root = detail::read_root(document, body);
    if (std::string_view{root.name()} != "ListBucketResult") throw detail::bad_answer(source, "is no list of objects");
    const bool encoded = std::string_view{root.child_value("EncodingType")} == "url";
    S3Listing listing;
    for (const pugi::xml_node object : root.children("Contents")) {
        const std::string_view key = object.child_value("Key");
        const std::string_view size = object.child_value("Size");
        storage::ObjectInfo info{encoded ? http::percent_decode(key, true) : std::string{key}, 0,
                                 plain_etag(object.child_value("ETag"))};
        const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), info.size);
        if (info.key.empty() || info.version.empty() || error != std::errc{} || end != size.data() + size.size())
            throw detail::bad_answer(source, "lists an object without key, size or ETag");
        listing.objects.push_back(std::move(info));
    }
    const std::string_view truncated = root.child_value("IsTruncated");
    if (truncated != "true" && truncated != "false")
        throw detail::bad_answer(source, "does not say whether more objects follow");
    listing.truncated = truncated == "true";
    listing.token = root.child_value("NextContinuationToken");
    return listing;
}

STRATA_INLINE std::string parse_upload_id(std::string_view body, std::string_view source) {
    pugi::xml_document document;
    const pugi::xml_node root = detail::read_root(document, body);
    std::string id = root.child_value("UploadId");
    if (std::string_view{root.name()} != "InitiateMultipartUploadResult" || id.empty())
        throw detail::bad_answer(source, "names no upload");
    return id;
}

}  // namespace strata::s3
