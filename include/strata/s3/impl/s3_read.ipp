#pragma once
// strata/s3/impl/s3_read.ipp - S3: objects read whole, in ranges and in parts, and compared with their check sums.

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include <strata/core/crc32c.hpp>
#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/s3/detail/in_parallel.hpp>
#include <strata/s3/detail/s3_client.hpp>
#include <strata/s3/s3.hpp>

namespace strata {

namespace s3::detail {

/// "bytes 0-9/100".
struct ContentRange {
    std::uint64_t begin = 0;
    std::uint64_t last = 0;
    std::uint64_t total = 0;
};

inline std::optional<ContentRange> parse_content_range(std::string_view text) noexcept {
    ContentRange range;
    const auto number = [&](std::string_view opening, std::uint64_t& value) {
        if (!text.starts_with(opening)) return false;
        text.remove_prefix(opening.size());
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return error == std::errc{};
    };
    const bool whole =
        number("bytes ", range.begin) && number("-", range.last) && number("/", range.total) && text.empty();
    if (!whole || range.begin > range.last || range.last >= range.total) return std::nullopt;
    return range;
}

inline std::string range_text(std::uint64_t begin, std::uint64_t count) {
    return "bytes=" + std::to_string(begin) + "-" + std::to_string(begin + count - 1);
}

/// A whole number; nothing if the text is anything else.
template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// What an answer's head says of the whole object, besides its size.
struct Identity {
    std::string etag;
    std::optional<std::uint32_t> crc;  ///< what put() left with the object
    bool etag_is_md5 = false;          ///< and may be compared

    Identity() = default;
    Identity(const S3Options& options, const http::HttpAnswer& answer)
        : etag{plain_etag(answer.header("etag"))},
          crc{parse_number<std::uint32_t>(answer.header(crc_header_name), 16)},
          etag_is_md5{options.verify_etag && is_md5_sum(etag, answer)} {}

    /// "" or what is wrong with the bytes of the whole object.
    ///
    ///   sum  of the bytes, if it is known
    [[nodiscard]] std::string complaint(std::span<const std::byte> bytes,
                                        const std::optional<storage::Md5>& sum = {}) const {
        if (crc)
            return core::crc32c(bytes) == *crc
                       ? ""
                       : "the bytes that arrived do not have the check sum they were written with";
        if (!etag_is_md5 || storage::to_hex(sum ? *sum : storage::md5(bytes)) == core::lower_case(etag)) return {};
        return "the bytes that arrived are not those of its ETag";
    }
};

/// The object was replaced between two of its parts.
struct ReplacedMeanwhile {};

/// Reads [begin, begin + into.size()) of an object of `total` bytes, part by part, all of one ETag.
inline void read_parts(S3Client& client, const std::string& key, const std::string& etag, std::uint64_t begin,
                       std::uint64_t total, std::span<std::byte> into) {
    const std::uint64_t part = client.options().part_bytes;
    const std::size_t parts = static_cast<std::size_t>((into.size() + part - 1) / part);
    in_parallel(parts, static_cast<std::size_t>(client.options().part_requests), [&](std::size_t i) {
        const std::uint64_t offset = i * part;
        const auto bytes = into.subspan(offset, std::min<std::uint64_t>(part, into.size() - offset));
        S3Call call{.action = "read", .key = key, .into = bytes, .accept = {412}};
        call.headers = {{"range", range_text(begin + offset, bytes.size())}, {"if-match", "\"" + etag + "\""}};
        call.check = [&](const http::HttpAnswer& answer) -> std::string {
            const auto range = parse_content_range(answer.header("content-range"));
            const bool right = answer.status == 206 && range && range->begin == begin + offset &&
                               range->total == total && range->last - range->begin + 1 == bytes.size() &&
                               answer.received == bytes.size();
            return right ? "" : "the server sent another range than the one asked for";
        };
        if (client.call(call).status == 412) throw ReplacedMeanwhile{};
    });
}

/// The error for bytes that no memory is left for.
inline Error no_memory(std::uint64_t bytes, const std::string& where) {
    return Error{Errc::not_enough_memory, "no memory for the " + std::to_string(bytes) + " bytes of '" + where + "'",
                 "free some memory, or read the object in ranges"};
}

inline std::vector<std::byte> memory_for(std::uint64_t bytes, const std::string& where) {
    try {
        return std::vector<std::byte>(bytes);
    } catch (const std::exception&) {
        throw no_memory(bytes, where);
    }
}

/// Calls read() again when it throws ReplacedMeanwhile, three times at most.
template <class Read>
auto while_it_is_replaced(const std::string& where, const Read& read) {
    constexpr int attempts = 3;
    for (int attempt = 1; attempt <= attempts; ++attempt) {
        try {
            return read();
        } catch (const ReplacedMeanwhile&) {
        }
    }
    throw Error{Errc::object_changed,
                "'" + where + "' was replaced " + std::to_string(attempts) + " times while it was read",
                "end what writes it, or read it when it is complete"};
}

/// The whole object. One request without a range, which costs a Ceph server less, unless the object turns out to be
/// larger than a part: then that request is ended after its head.
inline storage::VersionedBytes read_whole(S3Client& client, const std::string& key, const std::string& where) {
    const std::uint64_t part = client.options().part_bytes;
    Identity identity;
    std::uint64_t total = 0;
    S3Call call{.action = "read", .key = key, .most = part};
    call.on_body = [&](const http::HttpAnswer& answer) {
        identity = Identity{client.options(), answer};
        total = parse_number<std::uint64_t>(answer.header("content-length")).value_or(0);
        if (total > part) return http::BodyUse::leave;
        return identity.etag_is_md5 && !identity.crc ? http::BodyUse::take_and_sum : http::BodyUse::take;
    };
    call.check = [&](const http::HttpAnswer& answer) -> std::string {
        identity = Identity{client.options(), answer};
        if (identity.etag.empty()) return "the server gives no ETag";
        if (answer.status != 200) return "the server sent another range than the one asked for";
        return answer.failure == http::HttpFailure::left ? "" : identity.complaint(answer.body, answer.md5);
    };
    http::HttpAnswer answer = client.call(call);
    if (answer.failure != http::HttpFailure::left) return {std::move(answer.body), std::move(identity.etag)};

    std::vector<std::byte> bytes = memory_for(total, where);
    read_parts(client, key, identity.etag, 0, total, bytes);
    if (const std::string wrong = identity.complaint(bytes); !wrong.empty())
        throw Error{Errc::bad_answer, "cannot read '" + where + "': " + wrong,
                    "check the network and the server's disks, and write the object again"};
    return {std::move(bytes), std::move(identity.etag)};
}

/// Bytes [offset, offset + length) of the object, fewer at its end; length > 0.
inline std::vector<std::byte> read_range(S3Client& client, const std::string& key, const std::string& where,
                                         std::uint64_t offset, std::uint64_t length) {
    constexpr std::uint64_t end_of_all = std::numeric_limits<std::int64_t>::max();  // servers count no further
    if (offset >= end_of_all) offset = end_of_all - 1;
    length = std::min(length, end_of_all - offset);
    const std::uint64_t first_length = std::min(length, client.options().part_bytes);
    std::optional<ContentRange> range;
    S3Call call{.action = "read", .key = key, .most = first_length, .accept = {416}};
    call.headers = {{"range", range_text(offset, first_length)}};
    call.check = [&](const http::HttpAnswer& answer) -> std::string {
        range = parse_content_range(answer.header("content-range"));
        const Identity identity{client.options(), answer};
        if (identity.etag.empty()) return "the server gives no ETag";
        if (answer.status != 206) return identity.complaint(answer.body, {});  // a server without ranges: all of it
        const bool right = range && range->begin == offset && range->last - range->begin + 1 == answer.received &&
                           answer.received == std::min(first_length, range->total - offset);
        if (!right) return "the server sent another range than the one asked for";
        return answer.received == range->total ? identity.complaint(answer.body, {}) : std::string{};
    };
    http::HttpAnswer answer = client.call(call);
    if (answer.status == 416) return {};
    if (answer.status != 206) {
        const std::uint64_t begin = std::min<std::uint64_t>(offset, answer.body.size());
        const std::uint64_t count = std::min<std::uint64_t>(length, answer.body.size() - begin);
        const auto first = answer.body.begin() + static_cast<std::ptrdiff_t>(begin);
        return {first, first + static_cast<std::ptrdiff_t>(count)};
    }
    const std::uint64_t wanted = std::min(length, range->total - offset);
    if (answer.body.size() == wanted) return std::move(answer.body);

    std::vector<std::byte> bytes = memory_for(wanted, where);
    std::memcpy(bytes.data(), answer.body.data(), answer.body.size());
    read_parts(client, key, plain_etag(answer.header("etag")), offset + answer.body.size(), range->total,
               std::span{bytes}.subspan(answer.body.size()));
    return bytes;
}

}  // namespace s3::detail

STRATA_INLINE std::vector<std::byte> S3::get(std::string_view key) const { return get_versioned(key).bytes; }

STRATA_INLINE storage::VersionedBytes S3::get_versioned(std::string_view key) const {
    const std::string all = whole(key);
    return s3::detail::while_it_is_replaced(where(key),
                                            [&] { return s3::detail::read_whole(*client_, all, where(key)); });
}

STRATA_INLINE std::vector<std::byte> S3::get_range(std::string_view key, std::uint64_t offset,
                                                   std::uint64_t length) const {
    const std::string all = whole(key);
    if (length > 0)
        return s3::detail::while_it_is_replaced(
            where(key), [&] { return s3::detail::read_range(*client_, all, where(key), offset, length); });
    if (!exists(key))
        throw Error{Errc::not_found, "cannot read '" + where(key) + "': there is no such object",
                    "check the key's spelling and aws_data_prefix"};
    return {};
}

}  // namespace strata
