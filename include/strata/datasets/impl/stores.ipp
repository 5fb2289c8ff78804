#pragma once
// strata/datasets/impl/stores.ipp - one client a bucket, and what it may not open.

#include <algorithm>
#include <utility>

#include <strata/core/environment.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/stores.hpp>

namespace strata::datasets {

STRATA_INLINE Buckets::Identity Buckets::identity(const config::S3Settings& settings) {
    return {settings.bucket,
            settings.region,
            settings.endpoint_url,
            settings.access_key_id,
            settings.secret_access_key.reveal(),
            settings.session_token.reveal()};
}

STRATA_INLINE Buckets::Buckets(const config::DatasetList& list, const http::RetryOptions& retry, http::RetryHooks hooks)
    : retry_{retry}, hooks_{std::move(hooks)} {
    const auto note = [&](const auto& entries) {
        for (const auto& entry : entries) {
            if (entry.type != config::StoreType::aws) continue;
            std::int64_t& connections = connections_[identity(entry.s3)];
            connections = std::max(connections, entry.s3.max_pool_connections);
        }
    };
    note(list.images);
    note(list.eval);
    note(list.conditioning);
    note(list.text_embeds);
    note(list.image_embeds);
}

STRATA_INLINE S3 Buckets::open(const config::S3Settings& settings) {
    const Identity key = identity(settings);
    auto found = opened_.find(key);
    if (found == opened_.end()) {
        s3::S3Options options;
        options.bucket = settings.bucket;
        options.region = settings.region;
        options.endpoint_url = settings.endpoint_url;
        options.access_key_id = settings.access_key_id;
        options.secret_access_key = settings.secret_access_key;
        options.session_token = settings.session_token;
        options.max_pool_connections = static_cast<int>(std::max(connections_[key], settings.max_pool_connections));
        options.retry = retry_;
        options.retry_hooks = hooks_;
        found = opened_.emplace(key, S3{std::move(options)}).first;
    }
    return found->second.below(expand_environment(settings.data_prefix, "aws_data_prefix", process_environment));
}

STRATA_INLINE std::optional<s3::S3Traffic> Buckets::traffic() const {
    if (opened_.empty()) return std::nullopt;
    s3::S3Traffic sum;
    for (const auto& [key, bucket] : opened_) sum += bucket.traffic();
    return sum;
}

STRATA_INLINE void Buckets::interrupt() const noexcept {
    for (const auto& [key, bucket] : opened_) bucket.interrupt();
}

namespace detail {

STRATA_INLINE UrlStore open_url_list(const config::UrlList& list) {
    return UrlStore{{.list = list.file,
                     .url_column = list.url_column,
                     .folder = list.cache_dir,
                     .http = {.connections = static_cast<int>(list.max_pool_connections)}}};
}

STRATA_INLINE void refuse_source(const config::ImageDataset& dataset) {
    throw Error{Errc::no_backend,
                "data set '" + dataset.id + "' " +
                    (dataset.type == config::StoreType::csv ? "is of type csv" : "is made of tar files") +
                    ", and this program was built to read folders of files only",
                "build it with Backend<S3>, which opens every kind of data set"};
}

STRATA_INLINE void refuse_bucket(const std::string& entry) {
    throw Error{Errc::no_backend, entry + " is of type aws, and this program was built to read folders only",
                "build it with Backend<S3>, or set type to local"};
}

}  // namespace detail

}  // namespace strata::datasets
