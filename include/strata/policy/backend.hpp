#pragma once
// strata/policy/backend.hpp - Backend<Store>: where data sets and caches live.

#include <strata/core/policy.hpp>

namespace strata {

class Local;  ///< folders of this machine; strata/storage/local.hpp
class S3;     ///< buckets of an S3 server; strata/storage/s3.hpp

namespace storage {
class FolderOrBucket;  ///< strata/storage/folder_or_bucket.hpp
}

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
    using store = storage::FolderOrBucket;
};

}  // namespace strata
