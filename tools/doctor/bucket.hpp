#pragma once
// tools/doctor/bucket.hpp - a bucket: whether it is reached, and which rights the keys have.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <strata/core/error.hpp>

#include "line.hpp"
#include "place.hpp"

namespace strata::tools::doctor {

/// What became of one call.
struct Tried {
    std::string right;                   ///< "s3:ListBucket"
    std::optional<strata::Errc> code{};  ///< none: it was done
    std::string failure{};               ///< "[STnnnn] what. Fix: ..."
};

struct BucketFacts {
    std::string name;
    bool is_written = true;
    std::vector<Tried> tried;  ///< in order; it ends with the first that says that no other can be done
    double first_ms = 0;       ///< of the first call, TLS included
    double later_ms = 0;       ///< of the fastest after it
};

/// Lists the prefix; writes, reads and deletes a small object in it, or reads the first byte of one that is there. Its requests are
/// not made again for long.
[[nodiscard]] BucketFacts look_at_bucket(BucketPlace place);

[[nodiscard]] Line judge(const BucketFacts& facts);

}  // namespace strata::tools::doctor
