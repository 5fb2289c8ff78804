#pragma once
// strata/s3/impl/s3.ipp - S3: keys, listings, and what one request does.

#include <algorithm>
#include <charconv>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/s3/detail/s3_client.hpp>
#include <strata/s3/s3.hpp>

namespace strata {

STRATA_INLINE S3::S3(s3::S3Options options)
    : client_{std::make_shared<s3::detail::S3Client>(std::move(options))}, prefix_{client_->options().data_prefix} {}

STRATA_INLINE S3::S3(std::shared_ptr<s3::detail::S3Client> client, std::string prefix)
    : client_{std::move(client)}, prefix_{std::move(prefix)} {}

STRATA_INLINE S3 S3::below(std::string_view prefix) const {
    std::string longer = prefix_ + std::string{prefix};
    if (!prefix.empty() && !longer.ends_with('/')) longer += '/';
    return S3{client_, std::move(longer)};
}

STRATA_INLINE std::string S3::where(std::string_view key) const { return client_->base() + prefix_ + std::string{key}; }

STRATA_INLINE int S3::requests_at_once() const noexcept { return client_->options().max_pool_connections; }

STRATA_INLINE s3::S3Traffic S3::traffic() const { return client_->traffic(); }

STRATA_INLINE void S3::interrupt() const noexcept { client_->interrupt(); }

STRATA_INLINE std::string S3::whole(std::string_view key) const {
    constexpr std::size_t longest = 1024;
    std::string all = prefix_ + std::string{key};
    if (key.empty() || all.size() > longest || key.find('\0') != std::string_view::npos)
        throw Error{Errc::bad_object_key,
                    "'" + std::string{key.substr(0, 100)} + "' is no object key in '" + where("") + "'",
                    "use a name of 1 to 1024 bytes, aws_data_prefix included"};
    return all;
}

STRATA_INLINE std::vector<storage::ObjectInfo> S3::list(std::string_view prefix) const {
    return storage::list_by_pages(*this, prefix);
}

STRATA_INLINE storage::ObjectPage S3::list_page(std::string_view prefix, std::string_view after,
                                                std::size_t limit) const {
    const std::string all_of = prefix_ + std::string{prefix};
    const std::string behind = prefix_ + std::string{after};
    const std::string source = "a listing of '" + where(prefix) + "'";
    s3::detail::S3Call call{.kind = s3::detail::S3Kind::list, .action = "list", .key = {}};
    call.query = {{"list-type", "2"},
                  {"encoding-type", "url"},
                  {"max-keys", std::to_string(std::clamp<std::size_t>(limit, 1, 1000))}};
    if (!all_of.empty()) call.query.emplace_back("prefix", all_of);
    if (!behind.empty()) call.query.emplace_back("start-after", behind);
    s3::S3Listing listing;
    for (std::string token; listing.objects.empty(); token = listing.token) {
        s3::detail::S3Call next = call;
        if (!token.empty()) next.query.emplace_back("continuation-token", token);
        listing = s3::parse_listing(client_->call(next).text(), source);
        // A page may be empty and yet not the last; then only the server knows how to go on.
        if (!listing.truncated || (listing.objects.empty() && (listing.token.empty() || listing.token == token))) break;
    }
    if (listing.truncated && listing.objects.empty())
        throw s3::detail::bad_answer(source, "says that more objects follow and not how to get them");

    storage::ObjectPage page;
    std::string last = behind;
    for (storage::ObjectInfo& object : listing.objects) {
        const bool is_own_folder = object.key == prefix_ && after.empty();  // some programs make objects for folders
        if (!is_own_folder && (!object.key.starts_with(all_of) || (object.key <= last && !last.empty())))
            throw s3::detail::bad_answer(source, "is not in order at '" + object.key + "'");
        last = object.key;
        object.key.erase(0, prefix_.size());
        if (!is_own_folder) page.objects.push_back(std::move(object));
    }
    if (listing.truncated) page.next = last.substr(prefix_.size());
    if (listing.truncated && page.next.empty())
        throw s3::detail::bad_answer(source, "begins before the place it was asked for");
    return page;
}

STRATA_INLINE std::optional<storage::ObjectInfo> S3::head(std::string_view key) const {
    s3::detail::S3Call call{
        .kind = s3::detail::S3Kind::head, .method = "HEAD", .action = "inspect", .key = whole(key), .accept = {404}};
    const http::HttpAnswer answer = client_->call(call);
    if (answer.status == 404) {
        client_->require_bucket();  // the answer to HEAD does not say which of the two is missing
        return std::nullopt;
    }
    const std::string_view size = answer.header("content-length");
    storage::ObjectInfo info{std::string{key}, 0, s3::plain_etag(answer.header("etag"))};
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), info.size);
    if (info.version.empty() || error != std::errc{} || end != size.data() + size.size())
        throw s3::detail::bad_answer("a question about '" + where(key) + "'", "has no size or no ETag");
    return info;
}

STRATA_INLINE bool S3::exists(std::string_view key) const { return head(key).has_value(); }

STRATA_INLINE void S3::remove(std::string_view key) const {
    s3::detail::S3Call call{
        .kind = s3::detail::S3Kind::remove, .method = "DELETE", .action = "remove", .key = whole(key), .accept = {404}};
    const http::HttpAnswer answer = client_->call(call);
    if (answer.status == 404) client_->require_bucket();
}

}  // namespace strata
