#pragma once
// strata/zero/parts/staying_parameters.hpp - StayingParameters: where parameters were that are still trained, and where they are now.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parts/buckets.hpp>

namespace strata::zero {

/// Two tables of one model, before and after other parameters were chosen for training. Both list parameters in the order of
/// registration, so that the elements that stay come in one order through either: what is read bucket by bucket of the first
/// can be written bucket by bucket of the second. Local, and the same sums on every rank.
class StayingParameters {
public:
    /// Both outlive it; `after` need not be the table of an engine yet.
    StayingParameters(const Buckets& before, const Buckets& after);

    /// Whether some parameter of a bucket of the first table stays. The same on every rank.
    [[nodiscard]] bool any_of(std::size_t bucket) const;
    /// Whether that bucket is one of the second as well, so that every rank keeps its own share. The same on every rank.
    [[nodiscard]] bool keeps_shares(std::size_t bucket) const;

    /// What this rank is to have of a bucket of the first table: runs of the bucket's elements, in order.
    ///
    ///   all  of the bucket, and not only what is in this rank's share of the second table
    [[nodiscard]] std::vector<ElementRun> kept_of(std::size_t bucket, bool all) const;
    /// What stays of elements begin .. begin + numel - 1 of a bucket of the second: runs that count from `begin`, in order.
    [[nodiscard]] std::vector<ElementRun> staying_in(std::size_t bucket, std::int64_t begin, std::int64_t numel) const;

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    const Buckets& before_;
    const Buckets& after_;
    std::vector<std::size_t> now_;  // by parameter of the first table: its number in the second, or none
    std::vector<char> stayed_;      // by parameter of the second: it was in the first
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/staying_parameters.ipp>
#endif
