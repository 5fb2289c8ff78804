#pragma once
// strata/policy/backend.hpp - slot::Storage, and Backend<Store>: where data sets and caches live.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

class Local;  ///< folders of this machine; strata/storage/local.hpp
class S3;     ///< buckets of an S3 server; strata/s3/s3.hpp

namespace s3 {
class FolderOrBucket;  ///< strata/s3/folder_or_bucket.hpp
}

template <class Store>
struct Backend;

namespace rule {

template <class P>
struct BackendNamesAStore {
    static constexpr bool holds = requires { typename P::store; };
    struct Report {
        static_assert(
            holds,
            "[ST0133] A storage policy of your own names no store. Fix: let it say `using store = strata::Local;`, "
            "with Local or a store of your own, or write Backend<MyStore> (docs/write-a-store.md).");
    };
};

}  // namespace rule

namespace slot {

/// Where data sets and caches live.
struct Storage {
    static constexpr const char* name = "Storage";
    static constexpr const char* policy = "Backend<Local>";
    template <class... Ps>
    struct Members {
        using backend = select_t<Storage, Backend<Local>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Storage, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::BackendNamesAStore<P>>;
};

}  // namespace slot

/// Names the object store that data sets are read from and caches are kept in.
///
///   Store  Local: folders only. S3: folders and buckets, as each entry of the dataset list says. Or a type of your own
///          that satisfies storage::ObjectStore
/// `store` is the type that does the work.
template <class Store>
struct Backend {
    using slot = slot::Storage;
    using store = Store;
};

template <>
struct Backend<S3> {
    using slot = slot::Storage;
    using store = s3::FolderOrBucket;
};

}  // namespace strata
