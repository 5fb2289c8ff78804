#pragma once
// strata/train/impl/validate.ipp - sources that do not go together.

#include <strata/core/error.hpp>
#include <strata/train/validate.hpp>

namespace strata::train {

STRATA_INLINE void refuse_uneven(std::span<const std::int64_t> all) {
    constexpr std::array<const char*, 2> names{"samples_per_micro_batch", "micro_batches_per_epoch"};
    constexpr std::array<const char*, 2> because{": every micro-batch counts the same in the mean of a step",
                                                 ": ranks go through an epoch together"};
    for (std::size_t i = 2; i < all.size(); ++i) {
        if (all[i] == all[i % 2]) continue;
        throw Error{Errc::uneven_batches,
                    "the source's " + std::string{names[i % 2]} + " is " + std::to_string(all[i]) + " on rank " +
                        std::to_string(i / 2) + " and " + std::to_string(all[i % 2]) + " on rank 0" + because[i % 2],
                    "give every rank's source the same " + std::string{names[i % 2]}};
    }
}

}  // namespace strata::train
