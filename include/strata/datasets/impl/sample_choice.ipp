#pragma once
// strata/datasets/impl/sample_choice.ipp - the smallest numbers of all.

#include <algorithm>
#include <numeric>

#include <strata/core/inline.hpp>
#include <strata/core/random.hpp>
#include <strata/datasets/sample_choice.hpp>

namespace strata::datasets {

STRATA_INLINE std::vector<std::size_t> chosen_samples(const std::vector<std::string_view>& keys, std::string_view id,
                                                      std::int64_t most) {
    std::vector<std::size_t> indices(keys.size());
    std::iota(indices.begin(), indices.end(), std::size_t{0});
    const auto count = static_cast<std::size_t>(most);
    if (most <= 0 || count >= keys.size()) return indices;
    const std::uint64_t seed = core::number_of(id);
    std::vector<std::uint64_t> numbers;
    for (const std::string_view key : keys) numbers.push_back(core::combine({seed, core::number_of(key)}));
    std::nth_element(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count), indices.end(),
                     [&](std::size_t a, std::size_t b) {
                         return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : keys[a] < keys[b];
                     });
    indices.resize(count);
    std::sort(indices.begin(), indices.end());
    return indices;
}

}  // namespace strata::datasets
