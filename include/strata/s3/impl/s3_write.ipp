#pragma once
// strata/s3/impl/s3_write.ipp - S3: objects written by one request, or in parts.

#include <algorithm>
#include <cstdio>
#include <utility>

#include <strata/core/crc32c.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/s3/detail/in_parallel.hpp>
#include <strata/s3/detail/s3_client.hpp>
#include <strata/s3/s3.hpp>

namespace strata {

namespace s3::detail {

/// True if the object is the one that these parts make: the end of an upload may arrive although its answer is lost.
inline bool is_complete(S3Client& client, const std::string& key, const std::vector<std::string>& etags,
                        std::uint64_t size) {
    std::vector<std::byte> sums;
    for (const std::string& etag : etags)
        for (std::size_t i = 0; i + 1 < etag.size(); i += 2)
            sums.push_back(static_cast<std::byte>(16 * std::max(core::hex_value(etag[i]), 0) +
                                                  std::max(core::hex_value(etag[i + 1]), 0)));
    const std::string expected = storage::to_hex(storage::md5(sums)) + "-" + std::to_string(etags.size());
    const http::HttpAnswer answer =
        client.call({.kind = S3Kind::head, .method = "HEAD", .action = "inspect", .key = key, .accept = {404}});
    return answer.status != 404 && answer.header("content-length") == std::to_string(size) &&
           core::lower_case(plain_etag(answer.header("etag"))) == expected;
}

/// Kept with the object: read again, it shows damage to any object, also to one whose ETag is no sum of its bytes.
inline http::HttpHeader crc_header(std::span<const std::byte> bytes) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", core::crc32c(bytes));
    return {std::string{crc_header_name}, digits};
}

}  // namespace s3::detail

STRATA_INLINE void S3::put(std::string_view key, std::span<const std::byte> bytes) const {
    const std::string all = whole(key);
    if (bytes.size() > client_->options().part_bytes) return put_in_parts(all, bytes);
    const storage::Md5 sum = storage::md5(bytes);
    s3::detail::S3Call call{
        .kind = s3::detail::S3Kind::put, .method = "PUT", .action = "write", .key = all, .body = bytes};
    call.headers = {{"content-md5", storage::to_base64(sum)}, s3::detail::crc_header(bytes)};
    call.check = [&](const http::HttpAnswer& answer) -> std::string {
        const std::string etag = s3::plain_etag(answer.header("etag"));
        const bool right = !client_->options().verify_etag || !s3::detail::is_md5_sum(etag, answer) ||
                           core::lower_case(etag) == storage::to_hex(sum);
        return right ? "" : "the ETag that the server gives is not that of the bytes sent";
    };
    (void)client_->call(call);
}

STRATA_INLINE void S3::put_in_parts(const std::string& key, std::span<const std::byte> bytes) const {
    using s3::detail::S3Call;
    using s3::detail::S3Kind;
    constexpr std::uint64_t most_parts = 10'000;
    const std::uint64_t part =
        std::max<std::uint64_t>(client_->options().part_bytes, (bytes.size() + most_parts - 1) / most_parts);
    const auto parts = static_cast<std::size_t>((bytes.size() + part - 1) / part);
    const S3Call write{.kind = S3Kind::put, .method = "POST", .action = "write", .key = key};
    S3Call begin = write;
    begin.query = {{"uploads", ""}};
    begin.headers = {s3::detail::crc_header(bytes)};
    const std::string upload =
        s3::parse_upload_id(client_->call(begin).text(), "the beginning of an upload of '" + key + "'");
    try {
        std::vector<std::string> etags(parts);
        s3::detail::in_parallel(parts, static_cast<std::size_t>(client_->options().part_requests), [&](std::size_t i) {
            S3Call call = write;
            call.method = "PUT";
            call.query = {{"partNumber", std::to_string(i + 1)}, {"uploadId", upload}};
            call.body = bytes.subspan(i * part, std::min<std::uint64_t>(part, bytes.size() - i * part));
            call.headers = {{"content-md5", storage::to_base64(storage::md5(call.body))}};
            call.check = [&](const http::HttpAnswer& answer) -> std::string {
                etags[i] = s3::plain_etag(answer.header("etag"));
                return etags[i].empty() ? "the server gives a part no ETag" : "";
            };
            (void)client_->call(call);
        });
        std::string list = "<CompleteMultipartUpload>";
        for (std::size_t i = 0; i < parts; ++i)
            list +=
                "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>\"" + etags[i] + "\"</ETag></Part>";
        list += "</CompleteMultipartUpload>";
        S3Call end = write;
        end.query = {{"uploadId", upload}};
        end.body = core::bytes_of(list);
        end.accept = {404};
        if (client_->call(end).status == 404 && !s3::detail::is_complete(*client_, key, etags, bytes.size()))
            throw Error{Errc::transfer_failed,
                        "cannot write '" + client_->base() + key + "': its upload was ended by somebody else",
                        "start again"};
    } catch (...) {
        // Parts of an upload that never ends are paid for. If this fails too, the bucket's lifecycle rule removes them.
        try {
            S3Call abort{.kind = S3Kind::remove, .method = "DELETE", .action = "give up", .key = key, .attempts = 1};
            abort.query = {{"uploadId", upload}};
            (void)client_->call(abort);
        } catch (const Error&) {
        }
        throw;
    }
}

}  // namespace strata
