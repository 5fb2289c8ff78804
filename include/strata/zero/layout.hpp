#pragma once
// strata/zero/layout.hpp - which rank owns which element: partition arithmetic without tensors.
//
// All trainable parameters of a model, one after the other in registration order, those that keep another number format behind
// the others, form one virtual array of elements 0 .. numel - 1. A bucket is a run of whole parameters in it. Every bucket is padded to a
// multiple of the world and cut into equal shares; rank r owns share r of every bucket. All stages use this
// layout, and checkpoints name elements by their place in the virtual array, which no padding disturbs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::zero {

/// Elements of each rank's share of a bucket of `numel` elements.
constexpr std::int64_t share_numel(std::int64_t numel, int world) noexcept { return (numel + world - 1) / world; }
static_assert(share_numel(10, 4) == 3);
static_assert(share_numel(2, 4) == 1);

/// A run of elements of the virtual array.
struct ElementRun {
    std::int64_t begin = 0;
    std::int64_t numel = 0;  ///< 0 when a rank's whole share is padding
    friend constexpr bool operator==(const ElementRun&, const ElementRun&) = default;
};

/// What a layout needs to know about a parameter.
struct ParameterExtent {
    std::int64_t numel = 0;
    std::int32_t unit = -1;  ///< as in Parameter
    bool excepted = false;   ///< as in Parameter
};

/// Consecutive parameters that are reduced and gathered by one message.
struct Bucket {
    std::int64_t begin = 0;  ///< first element in the virtual array
    std::int64_t numel = 0;  ///< without padding
    std::size_t first_parameter = 0;
    std::size_t parameter_count = 0;
    std::int32_t unit = -1;
    bool excepted = false;  ///< its parameters keep the other number format

    /// The real elements, without padding, of a rank's share.
    [[nodiscard]] constexpr ElementRun share_of(int rank, int world) const noexcept {
        const std::int64_t share = share_numel(numel, world);
        const std::int64_t from = std::min(numel, share * rank);
        return {begin + from, std::min(numel, from + share) - from};
    }
};
static_assert(Bucket{.begin = 100, .numel = 10}.share_of(3, 4) == ElementRun{109, 1});
static_assert(Bucket{.begin = 100, .numel = 2}.share_of(3, 4).numel == 0);

/// Cuts parameters into buckets: one for each unit, and one more for its exceptions; outside of units, consecutive parameters up
/// to `bucket_numel` elements. A bucket is of one number format. A larger single parameter is a bucket of its own. Pure: the same on every rank, for every world.
constexpr std::vector<Bucket> make_buckets(const std::vector<ParameterExtent>& parameters, std::int64_t bucket_numel) {
    std::vector<Bucket> buckets;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto [numel, unit, excepted] = parameters[i];
        const bool continues = !buckets.empty() && buckets.back().unit == unit && buckets.back().excepted == excepted &&
                               (unit >= 0 || buckets.back().numel + numel <= bucket_numel);
        if (!continues)
            buckets.push_back({.begin = at,
                               .numel = 0,
                               .first_parameter = i,
                               .parameter_count = 0,
                               .unit = unit,
                               .excepted = excepted});
        buckets.back().numel += numel;
        ++buckets.back().parameter_count;
        at += numel;
    }
    return buckets;
}
static_assert(make_buckets({{6, -1}, {5, -1}, {90, 0}, {9, 0}, {7, 1}, {1, -1}}, 10).size() == 5);
static_assert(make_buckets({{6, -1}, {9, 0}, {1, -1, true}, {1, 0, true}, {1, 0, true}}, 10).size() == 4);

}  // namespace strata::zero
