// The tiers of strata keep what they promise, and the kit finds the tiers that do not. Here and not in unit/testing,
// whose executable knows no libtorch.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/policy/split.hpp>
#include <strata/policy/tier.hpp>
#include <strata/testing/tier_conformance.hpp>
#include <strata/zero/tiers/cpu.hpp>
#include <strata/zero/tiers/device.hpp>
#include <strata/zero/tiers/nvme.hpp>
#include <strata/zero/tiers/split.hpp>

#include "../../../examples/compressed_tier.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::Cpu;
using strata::Device;
using strata::Nvme;
using strata::Place;
using strata::PlaceBytes;
using strata::Split;
using strata::offload::Access;
using strata::testing::tier_failures;
using strata::zero::TierContext;
using Failures = std::vector<std::string>;

template <class Tier>
Failures failures_with_a_disk() {
    const strata_test::TemporaryFolder disk;
    return tier_failures<Tier>({.folder = disk.path()});
}

TEST(TierConformance, TheTiersOfOnePieceConform) {
    EXPECT_EQ(tier_failures<Device>(), Failures{});
    EXPECT_EQ(tier_failures<Cpu>(), Failures{});
    EXPECT_EQ(failures_with_a_disk<Nvme>(), Failures{});
}

TEST(TierConformance, SplitsConform) {
    EXPECT_EQ((tier_failures<Split<Device, Cpu, 20>>()), Failures{});
    EXPECT_EQ((failures_with_a_disk<Split<Cpu, Nvme, 30>>()), Failures{});
    EXPECT_EQ((failures_with_a_disk<Split<Nvme, Nvme, 50>>()), Failures{}) << "two files";
}

TEST(TierConformance, SplitsOfSplitsAndEmptyPartsConform) {
    EXPECT_EQ((failures_with_a_disk<Split<Device, Split<Cpu, Nvme, 50>, 20>>()), Failures{});
    EXPECT_EQ((failures_with_a_disk<Split<Cpu, Nvme, 0>>()), Failures{});
    EXPECT_EQ((failures_with_a_disk<Split<Cpu, Nvme, 100>>()), Failures{});
}

//! [conformance]
TEST(TierConformance, ATierOfAUsersOwnConforms) { EXPECT_EQ(tier_failures<Compressed>(), Failures{}); }
//! [conformance]

TEST(TierConformance, ATierThatWantsAFolderSaysSo) {
    const Failures failures = tier_failures<Nvme>();
    ASSERT_FALSE(failures.empty());
    EXPECT_NE(failures.front().find("give TierConformanceOptions a folder"), std::string::npos) << failures.front();
}

TEST(TierConformance, ASplitSaysWhatIsWhere) {
    const std::vector<std::int64_t> numels{10'000, 30'000, 60'000};
    using State = Split<Cpu, Nvme, 30>::state<float, 2, true>;
    const PlaceBytes bytes = State::bytes(numels);
    const std::int64_t on_cpu = 10'000 + 20'000 / 1024 * 1024;  // whole lines of the bucket that is cut
    EXPECT_EQ(bytes, PlaceBytes::at(Place::host, 12 * on_cpu) + PlaceBytes::at(Place::disk, 12 * (100'000 - on_cpu)));
    using Shards = Split<Cpu, Nvme, 30>::shards<float>;
    const std::vector<std::int64_t> ten(10, 100);
    EXPECT_EQ(Shards::bytes(ten), PlaceBytes::at(Place::host, 1200) + PlaceBytes::at(Place::disk, 2800));
    const auto where = strata::zero::detail::spread_shards(ten, 30);
    EXPECT_EQ(where, (std::vector<bool>{false, false, false, true, false, false, true, false, false, true}));
}

// ---- tiers that are wrong, each in one way
// ------------------------------------------------------------------------------

enum class Flaw {
    none,
    skips_a_run,
    out_of_order,
    never_last,
    forgets_updates,
    forgets_writes,
    starts_anew,
    asks_twice,
    keeps_exceptions,
    keeps_more,
    mixes_shards,
    forgets_shards,
};

Flaw flaw = Flaw::none;

struct Flawed : Cpu {
    template <class Kept, std::size_t states, bool has_master>
    class state;
    template <class Element>
    class shards;
};

template <class Kept, std::size_t states, bool has_master>
class Flawed::state : public Cpu::state<Kept, states, has_master> {
    using Base = Cpu::state<Kept, states, has_master>;

public:
    static PlaceBytes bytes(std::span<const std::int64_t> numels) {
        return PlaceBytes::at(Place::host, Base::bytes(numels)[Place::host] / (flaw == Flaw::keeps_more ? 2 : 1));
    }
    template <class WeightOf>
    void fill(std::array<float, states> initial, WeightOf&& weight_of) {
        if (flaw == Flaw::starts_anew) initial.fill(0.0F);
        Base::fill(initial, [&](std::size_t bucket) {
            if (flaw == Flaw::asks_twice && bucket == 1) weight_of(bucket);
            return weight_of(bucket);
        });
    }
    template <class Call>
    void run(Access access, Call&& call) {
        const bool forgets = (flaw == Flaw::forgets_updates && access == Access::update) ||
                             (flaw == Flaw::forgets_writes && access == Access::write);
        try {
            Base::run(access, [&](auto run) {
                if (flaw == Flaw::skips_a_run && run.bucket == 2) return;
                if (flaw == Flaw::out_of_order) run.bucket ^= 1U;
                if (flaw == Flaw::never_last) run.last = false;
                std::vector<Kept> copy{run.state[0].begin(), run.state[0].end()};
                if (forgets) run.state[0] = copy;
                call(std::as_const(run));
            });
        } catch (const std::exception&) {
            if (flaw != Flaw::keeps_exceptions) throw;
        }
    }
};

template <class Element>
class Flawed::shards : public Cpu::shards<Element> {
    using Base = Cpu::shards<Element>;

public:
    std::span<Element> open(std::size_t shard, Access access) {
        const std::span<Element> values = Base::open(shard, access);
        if (flaw == Flaw::mixes_shards) return Base::open(0, access).first(values.size() <= 30'000 ? values.size() : 0);
        if (flaw != Flaw::forgets_shards || access != Access::update) return values;
        copy_.assign(values.begin(), values.end());
        return copy_;
    }

private:
    std::vector<Element> copy_;
};

void expect_found(Flaw chosen, const std::string& words) {
    flaw = chosen;
    const Failures failures = tier_failures<Flawed>();
    flaw = Flaw::none;
    ASSERT_FALSE(failures.empty()) << "flaw " << static_cast<int>(chosen);
    EXPECT_NE(failures.front().find(words), std::string::npos) << failures.front();
}

TEST(TierConformance, FlawsOfStateAreFound) {
    EXPECT_EQ(tier_failures<Flawed>(), Failures{});
    expect_found(Flaw::skips_a_run, "a pass gave element 0 of bucket 3 where element 0 of bucket 2 was due");
    expect_found(Flaw::out_of_order, "a pass gave element 0 of bucket 1 where element 0 of bucket 0 was due");
    expect_found(Flaw::never_last, "a run is wrong about being the last of bucket 0");
    expect_found(Flaw::forgets_updates,
                 "keeps what an update leaves: other values than it was given, from element 0 of bucket 0 on");
    expect_found(Flaw::forgets_writes, "keeps what is written: other values than it was given");
    expect_found(Flaw::starts_anew, "is filled bucket by bucket: other values");
    expect_found(Flaw::asks_twice, "it asked for the weights of bucket 1 in the place of 2");
    expect_found(Flaw::keeps_exceptions, "lets exceptions of a pass out: it came out as ''");
    expect_found(Flaw::keeps_more, "bytes() says");
}

TEST(TierConformance, FlawsOfShardsAreFound) {
    expect_found(Flaw::mixes_shards, "shards<float> ");
    expect_found(Flaw::forgets_shards, "shards<float> keep what an update leaves: shard 3 has other values");
}

// ---- classes that are none -------------------------------------------------------------------------------------------

struct LivesSomewhere : Cpu::state<float, 2, true> {
    static const Place memory;
};
struct FailsSometimes : Cpu::state<float, 2, true> {
    static const bool fails_alone;
};
struct KeepsRunsToItself : Cpu::state<float, 2, true> {
private:
    void run();
};
struct OpensDoubles : Cpu::shards<float> {
    std::span<double> open(std::size_t, Access) { return {}; }
};
static_assert(strata::zero::TierState<Cpu::state<float, 2, true>, float, 2> &&
              !strata::zero::TierState<LivesSomewhere, float, 2> &&
              !strata::zero::TierState<FailsSometimes, float, 2> &&
              !strata::zero::TierState<KeepsRunsToItself, float, 2>);
static_assert(strata::zero::TierShards<Cpu::shards<float>, float> && !strata::zero::TierShards<OpensDoubles, float>);

}  // namespace
