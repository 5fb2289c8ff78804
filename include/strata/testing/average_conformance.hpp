#pragma once
// strata/testing/average_conformance.hpp - average_failures(): does the class `average` of an averaging policy do what an engine relies on?

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <strata/policy/place.hpp>
#include <strata/zero/average.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/tier.hpp>

namespace strata::testing {

/// Tries a zero::WeightAverage for a rank's shares of three buckets, and steps 1 to 100. Local. Returns what is wrong, a
/// sentence each; empty when nothing is.
///
///   Average  average<Kept> of a policy, on a tier whose memory is the host's
///   options  that it is made from
template <class Average, class Options>
requires zero::WeightAverage<Average, Options>
[[nodiscard]] std::vector<std::string> average_failures(const Options& options) {
    std::vector<std::string> failures;
    const std::vector<std::int64_t> numels{5, 1, 64};
    const auto pool = std::make_shared<zero::detail::BufferPool>();
    const zero::TierContext context{*pool, nullptr, "average", zero::MemoryKind::state, {}};
    Average average{options};
    average.make(context, numels);

    const std::int64_t counted = pool->meter().total(Average::memory).now;
    const std::int64_t said = Average::bytes(numels)[Average::memory];
    if (counted > said)
        failures.push_back("bytes() says " + std::to_string(said) + " and make() takes " + std::to_string(counted));
    std::set<const float*> places;
    for (std::size_t i = 0; i < numels.size(); ++i) {
        const std::span<float> values = average.values(i);
        if (values.size() != static_cast<std::size_t>(numels[i]))
            failures.push_back("values(" + std::to_string(i) + ") has " + std::to_string(values.size()) +
                               " elements for a share of " + std::to_string(numels[i]));
        if (average.values(i).data() != values.data())
            failures.push_back("values(" + std::to_string(i) + ") is other memory at every call");
        if (!places.insert(values.data()).second) failures.push_back("values() gives two buckets the same memory");
        for (float& value : values) value = static_cast<float>(i) + 0.5F;
    }
    for (std::size_t i = 0; i < numels.size(); ++i) {
        for (const float value : average.values(i)) {
            if (value != static_cast<float>(i) + 0.5F) {
                failures.push_back("values(" + std::to_string(i) + ") does not hold what was written to it");
                break;
            }
        }
    }

    const Average other{options};
    bool ever = false;
    for (std::int64_t step = 100; step >= 1; --step) (void)(other.due(step) && other.decay(step) >= 0);
    for (std::int64_t step = 1; step <= 100; ++step) {
        const std::string name = "of step " + std::to_string(step);
        if (average.due(step) != other.due(step))
            failures.push_back("due() " + name + " depends on what was asked before: a resumed run differs");
        if (!average.due(step)) continue;
        ever = true;
        const double decay = average.decay(step);
        if (decay != other.decay(step))
            failures.push_back("decay() " + name + " depends on what was asked before: a resumed run differs");
        if (!(decay >= 0 && decay <= 1))
            failures.push_back("decay() " + name + " is " + std::to_string(decay) + ", which is no share");
    }
    if (!ever) failures.push_back("no step of the first 100 is due");
    return failures;
}

}  // namespace strata::testing
