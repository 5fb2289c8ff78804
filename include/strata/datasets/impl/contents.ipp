#pragma once
// strata/datasets/impl/contents.ipp - what was learnt goes into the index.

#include <chrono>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/contents.hpp>

namespace strata::datasets {

STRATA_INLINE void Contents::keep() {
    for (auto one = to_keep_.begin(); one != to_keep_.end();) {
        const Place& set = sets_[one->first];
        try {
            SampleIndex::add_contents(index_folder_, set.id, set.place, one->second, std::chrono::milliseconds{100});
        } catch (const Error& error) {
            if (error.code() != Errc::output_in_use) throw;
            ++one;
            continue;
        }
        one = to_keep_.erase(one);
    }
}

}  // namespace strata::datasets
