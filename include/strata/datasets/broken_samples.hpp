#pragma once
// strata/datasets/broken_samples.hpp - BrokenSamples: pictures that cannot be used when their turn comes, and who takes it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/report.hpp>
#include <strata/datasets/sample.hpp>

namespace strata::datasets {

/// What a run with `on_broken_sample` replace knows of its broken samples. Their turns go to the next of their bucket, in the
/// bucket's order and from its end to its start, that can be used: so who takes a turn follows from the plan and from which
/// files are broken, on every rank and in a run that is resumed. Thread-safe.
class BrokenSamples {
public:
    /// The place in a bucket of `count` samples that is tried when `before` places from `place` on were broken.
    [[nodiscard]] static constexpr std::size_t place_of(std::size_t place, std::size_t before,
                                                        std::size_t count) noexcept {
        return (place + before) % count;
    }

    /// True once add() was called for it: it is not tried again.
    [[nodiscard]] bool contains(const Sample& sample) const;
    /// Found broken before training; the same on all ranks.
    void add_known(const Sample& sample, Skipped why);
    /// Found broken by this rank when its turn came.
    void add(const Sample& sample, Skipped why);
    /// A turn of a broken sample went to another.
    void count_turn(const Sample& sample);

    /// For the report: those of add_known(), in their order.
    [[nodiscard]] std::vector<Skipped> known() const;
    /// Turns so far of this rank, to be told to the rank that prints.
    [[nodiscard]] std::string pack() const;
    /// For the end of a run, from pack() of all ranks: how many turns of how many samples went to others, and which samples.
    /// Empty where none did.
    [[nodiscard]] static std::vector<std::string> lines(const std::vector<std::string>& packed);

private:
    struct Found {
        Skipped why;
        std::int64_t turns = 0;
    };
    mutable std::mutex mutex_;
    std::map<const Sample*, Found> found_;
    std::vector<Skipped> known_;
};

/// Throws Errc::broken_bucket: nobody is left in a bucket to take a turn.
///
///   first  place of one of its samples, for the message
[[noreturn]] void throw_broken_bucket(const Bucket& bucket, const std::string& first);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/broken_samples.ipp>
#endif
