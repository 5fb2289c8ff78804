#pragma once
// strata/datasets/sample_choice.hpp - `max_num_samples`: the same few of many, whatever order they are listed in.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace strata::datasets {

/// Which samples a data set of id `id` keeps of all it has: the `most` whose keys, together with the id, hash to the
/// smallest numbers. So the choice needs no seed, does not depend on the order of the keys, differs between ids, and a
/// picture that is added pushes out at most one other.
///
///   keys  of the samples, each another one
///   most  0: all
/// Returns indices of `keys`, ascending. Cost: linear.
[[nodiscard]] std::vector<std::size_t> chosen_samples(const std::vector<std::string_view>& keys, std::string_view id,
                                                      std::int64_t most);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/sample_choice.ipp>
#endif
