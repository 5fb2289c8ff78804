#pragma once
// strata/policy/backend.hpp - Backend<Store>: where data sets and caches live.

#include <strata/core/policy.hpp>

namespace strata {

class Local;  ///< folders of this machine; strata/storage/local.hpp
class S3;     ///< buckets of an S3 server; strata/storage/s3.hpp

/// Names the object store that data sets are read from and caches are kept in.
///
///   Store  Local, S3, or a type of your own that satisfies storage::ObjectStore
template <class Store>
struct Backend {
    using slot = slot::Storage;
    using store = Store;
};

}  // namespace strata
