#pragma once
// strata/datasets/stores.hpp - Stores: opens the folders, buckets, shards and addresses that a dataset list names.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <strata/comm/communicator.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/core/error.hpp>
#include <strata/datasets/url_store.hpp>
#include <strata/http/outage.hpp>
#include <strata/http/retry.hpp>
#include <strata/s3/s3.hpp>
#include <strata/s3/s3_options.hpp>
#include <strata/storage/any_object_store.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/object_store.hpp>
#include <strata/storage/tar_store.hpp>

namespace strata::datasets {

/// A store that is made of a folder, as Stores and data::PictureSource make theirs of what Backend<...> names.
template <class Store>
concept FolderStore = storage::ObjectStore<Store> && std::constructible_from<Store, std::filesystem::path>;

/// The buckets of a dataset list. Entries with one bucket, server and credentials share connections and counters, and
/// the largest of their aws_max_pool_connections holds for them together.
class Buckets {
public:
    /// Makes no request and opens nothing.
    ///
    ///   retry  of requests that fail; `hooks` say so
    explicit Buckets(const config::DatasetList& list = {}, const http::RetryOptions& retry = {},
                     http::RetryHooks hooks = {});

    /// What lies below the settings' data_prefix. Throws as S3's constructor does.
    [[nodiscard]] S3 open(const config::S3Settings& settings);
    /// Of all buckets that were opened; nothing if none was.
    [[nodiscard]] std::optional<s3::S3Traffic> traffic() const;
    /// See S3::interrupt(); of all buckets that were opened.
    void interrupt() const noexcept;

private:
    using Identity = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
    [[nodiscard]] static Identity identity(const config::S3Settings& settings);
    http::RetryOptions retry_;
    http::RetryHooks hooks_;
    std::map<Identity, std::int64_t> connections_;
    std::map<Identity, S3> opened_;
};

namespace detail {

/// Makes no request.
[[nodiscard]] UrlStore open_url_list(const config::UrlList& list);

/// Throws Errc::no_backend: a program of Backend<Local> opens folders of files only.
[[noreturn]] void refuse_source(const config::ImageDataset& dataset);

/// Throws Errc::no_backend: `entry` is of a type that Store cannot open.
[[noreturn]] void refuse_bucket(const std::string& entry);

}  // namespace detail

/// One line about the traffic of all ranks; none where no bucket was opened, which is so on all ranks or on none.
/// Collective.
template <comm::Communicator Comm>
std::vector<std::string> traffic_lines(Comm& comm, const std::optional<s3::S3Traffic>& mine) {
    if (!mine) return {};
    std::array<double, 8> counts{};  // exact up to 2^53
    const std::array members{&s3::S3Traffic::list,     &s3::S3Traffic::head,     &s3::S3Traffic::get,
                             &s3::S3Traffic::put,      &s3::S3Traffic::remove,   &s3::S3Traffic::retries,
                             &s3::S3Traffic::bytes_in, &s3::S3Traffic::bytes_out};
    for (std::size_t i = 0; i < members.size(); ++i) counts[i] = static_cast<double>((*mine).*members[i]);
    comm.all_reduce_sum(counts);
    s3::S3Traffic all;
    for (std::size_t i = 0; i < members.size(); ++i) all.*members[i] = static_cast<std::uint64_t>(counts[i]);
    return {"S3: " + summary(all)};
}

/// A store for cache entries in a folder. They are checked when they are read, so a store that can skip making
/// each of them survive a power loss is asked to.
template <FolderStore Store>
[[nodiscard]] Store cache_store(const std::filesystem::path& folder) {
    if constexpr (std::constructible_from<Store, std::filesystem::path, storage::Durability>)
        return Store{folder, storage::Durability::process_end};
    else
        return Store{folder};
}

/// Opens what entries of a dataset list name, each as a Store of its own. Opening makes no request.
///
///   Store  made of a folder's path; one that can be made of an S3, too, opens entries of type aws, and one that can be
///          made of a storage::AnyObjectStore those of type csv and tar files
template <FolderStore Store>
class Stores {
public:
    ///   retry, hooks  see Buckets
    explicit Stores(const config::DatasetList& list = {}, const http::RetryOptions& retry = {},
                    http::RetryHooks hooks = {})
        : buckets_{list, retry, std::move(hooks)} {}

    // Throw Errc::no_backend for an entry that Store cannot open, and what S3's constructor throws.

    [[nodiscard]] Store pictures(const config::ImageDataset& dataset) {
        if (dataset.type == config::StoreType::csv || !dataset.shards.empty()) return other(dataset);
        if (dataset.type == config::StoreType::local) return Store{dataset.instance_data_dir};
        return bucket(dataset.s3, "data set '" + dataset.id + "'");
    }
    ///   entry  named in messages: "text embeds 'text'"
    [[nodiscard]] Store cache(const config::CachePlace& place, const std::string& entry) {
        if (place.type == config::StoreType::local) return cache_store<Store>(place.folder);
        return bucket(place.s3, entry);
    }

    /// See Buckets.
    [[nodiscard]] std::optional<s3::S3Traffic> traffic() const { return buckets_.traffic(); }
    /// Requests to buckets that are under way, and later ones, throw Errc::interrupted.
    void interrupt() const noexcept {
        buckets_.interrupt();
        for (const auto& [id, store] : others_) store.interrupt();
    }

    /// Where indexes of tar files are kept; before pictures() is called. Empty, or without this call: nowhere.
    void keep_indexes_in(std::filesystem::path folder) { index_folder_ = std::move(folder); }

private:
    /// What is neither a folder nor a bucket of pictures: opened once, for it knows things that take long to find out.
    [[nodiscard]] Store other(const config::ImageDataset& dataset) {
        if constexpr (std::constructible_from<Store, storage::AnyObjectStore>) {
            auto found = others_.find(dataset.id);
            if (found == others_.end()) found = others_.emplace(dataset.id, open_other(dataset)).first;
            return Store{found->second};
        } else {
            detail::refuse_source(dataset);
        }
    }
    [[nodiscard]] storage::AnyObjectStore open_other(const config::ImageDataset& dataset) {
        if (dataset.type == config::StoreType::csv) return storage::AnyObjectStore{detail::open_url_list(dataset.csv)};
        const auto shards_in = [&](auto store) {
            return storage::AnyObjectStore{storage::TarStore{std::move(store), dataset.shards, index_folder_}};
        };
        if (dataset.type == config::StoreType::aws) return shards_in(buckets_.open(dataset.s3));
        return shards_in(Local{dataset.instance_data_dir});
    }
    [[nodiscard]] Store bucket(const config::S3Settings& settings, const std::string& entry) {
        if constexpr (std::constructible_from<Store, S3>)
            return Store{buckets_.open(settings)};
        else
            detail::refuse_bucket(entry);
    }

    Buckets buckets_;
    std::map<std::string, storage::AnyObjectStore> others_;  // by the id of the data set
    std::filesystem::path index_folder_;
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/stores.ipp>
#endif
