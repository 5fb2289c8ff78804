// In which order two ranks gather units, whatever each of them needs: both in one process, a thread each.

#include <algorithm>
#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/zero/parts/unit_order.hpp>

namespace {

using strata::Errc;
using strata::Error;
using namespace strata::zero;

struct Board {
    std::barrier<> meeting{2};
    std::array<std::vector<std::byte>, 2> said;
};
/// One of two ranks: what either says both hear.
class OfTwo final : public Exchange {
public:
    OfTwo(Board& board, int rank) : Exchange{rank, 2}, board_{board} {}
    void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
        board_.said[static_cast<std::size_t>(rank())].assign(mine.begin(), mine.end());
        board_.meeting.arrive_and_wait();
        auto to = all.begin();
        for (const std::vector<std::byte>& said : board_.said) to = std::copy(said.begin(), said.end(), to);
        board_.meeting.arrive_and_wait();
    }
    void broadcast(const at::Tensor&) override {}
    void all_gather(const at::Tensor&, const at::Tensor&) override {}
    void reduce_scatter(const at::Tensor&, const at::Tensor&) override {}
    std::vector<std::string> all_gather_texts(std::string_view) override { return {}; }
    strata::comm::Ticket post(std::string_view, std::function<void()>) override { return {}; }
    void wait() override {}
    void close() noexcept override {}

private:
    Board& board_;
};

/// A rank with three units and two buckets; what it does is in `done`.
struct Rank {
    explicit Rank(Board& board, int rank) : exchange{board, rank} {
        for (const char* name : {"a", "b", "c"}) order.add_unit(name);
        order.set_buckets(2);
    }
    /// As UnitGathering::gather_flat().
    void gather(const UnitTurn& mine) {
        UnitOrder::Next next;
        do {
            next = order.next(mine, nullptr);
            if (!next.is_everyones) order.check_all_read(nullptr);
            order.reduce_due();
            done += next.turn.unit == UnitTurn::ended ? "." : names[static_cast<std::size_t>(next.turn.unit)];
        } while (next.turn != mine);
    }
    void pass(const std::vector<int>& units, UnitPhase phase) {
        for (const int unit : units) gather({unit, phase, 0});
    }
    /// As UnitGathering::end_pass().
    void end() {
        order.complete_rest();
        gather({});
    }

    static constexpr std::array<const char*, 3> names{"a", "b", "c"};
    std::string done;
    OfTwo exchange;
    UnitOrder order{exchange, [this](std::size_t bucket) { done += std::to_string(bucket); }};
};

/// What both ranks did, the first one `first` and the second one `second`; the error that one of them met.
struct Both {
    template <class First, class Second>
    Both(First&& first, Second&& second) {
        Board board;
        Rank one{board, 0}, other{board, 1};
        std::thread thread{[&] { kept(1, [&] { second(other); }); }};
        kept(0, [&] { first(one); });
        thread.join();
        done = {one.done, other.done};
    }
    template <class Work>
    void kept(std::size_t rank, Work&& work) {
        try {
            work();
        } catch (const std::exception& error) {
            said[rank] = error.what();
        }
    }
    std::array<std::string, 2> done, said;
};

constexpr UnitPhase forward = UnitPhase::forward, backward = UnitPhase::backward, inference = UnitPhase::inference;
using Done = std::array<std::string, 2>;

TEST(UnitOrder, RanksThatNeedTheSameGatherThatAndReduceWhatIsCompleteOnBoth) {
    const auto rank = [](Rank& r) {
        r.pass({0, 1}, forward);
        r.order.complete(1);
        r.pass({1, 0}, backward);
        r.end();
    };
    EXPECT_EQ(Both(rank, rank).done, (Done{"ab1ba0.", "ab1ba0."}));
}

TEST(UnitOrder, ARankThatLeavesUnitsOutTakesPartInThem) {
    const auto rank = [](std::vector<int> units) {
        return [units](Rank& r) {
            r.pass(units, forward);
            r.pass({units.rbegin(), units.rend()}, backward);
            r.end();
        };
    };
    const Done all{"abccba10.", "abccba10."};
    EXPECT_EQ(Both(rank({0, 1, 2}), rank({0, 2})).done, all);
    EXPECT_EQ(Both(rank({0, 1, 2}), rank({0, 1})).done, all) << "forward before backward";
    EXPECT_EQ(Both(rank({}), rank({0, 1, 2})).done, all);
}

TEST(UnitOrder, ABucketThatOneRankHasNoGradientForWaitsForTheEnd) {
    const auto rank = [](bool completes) {
        return [completes](Rank& r) {
            if (completes) r.order.complete(0);
            r.pass({1}, backward);
            r.end();
        };
    };
    EXPECT_EQ(Both(rank(true), rank(false)).done, (Done{"b10.", "b10."}));
}

TEST(UnitOrder, AnotherOrderEndsToo) {
    const Both both{[](Rank& r) {
                        r.pass({2, 0, 1}, forward);
                        r.end();
                    },
                    [](Rank& r) {
                        r.pass({0, 1, 2}, forward);
                        r.end();
                    }};
    EXPECT_EQ(both.done[0], both.done[1]);
    EXPECT_EQ(both.done[0], "abcab10.") << "what comes too early for one rank it gathers again";
}

TEST(UnitOrder, WithoutGradientsUnitsThatDifferAreNamed) {
    const Both both{[](Rank& r) { r.pass({1}, inference); }, [](Rank& r) { r.pass({2}, inference); }};
    EXPECT_NE(both.said[0].find("rank 1 calls the unit c where rank 0 calls the unit b"), std::string::npos)
        << both.said[0];
    EXPECT_EQ(both.said[0], both.said[1]);
}

TEST(UnitOrder, WhatAllCallWithoutGradientsTheyMeetInWhicheverWayTheyCame) {
    const auto rank = [](std::vector<int> units) {
        return [units](Rank& r) {
            r.pass(units, forward);
            r.pass({0, 2}, inference);
            r.pass({units.rbegin(), units.rend()}, backward);
            r.end();
        };
    };
    EXPECT_EQ(Both(rank({0, 1, 2}), rank({})).done, (Done{"abcaccba10.", "abcaccba10."}));
    EXPECT_EQ(Both(rank({1}), rank({2, 1})).done, (Done{"bcbacbc10.", "bcbacbc10."}));
}

TEST(UnitOrder, WhatOneRankCallsWithoutGradientsComesBeforeBackward) {
    const auto rank = [](std::vector<int> looks) {
        return [looks](Rank& r) {
            r.pass({0}, forward);
            r.pass(looks, inference);
            r.pass({0}, backward);
            r.end();
        };
    };
    EXPECT_EQ(Both(rank({}), rank({2, 1})).done, (Done{"acba10.", "acba10."}));
}

TEST(UnitOrder, AShardThatOneRankCannotReadFailsAll) {
    const auto failing = [](Rank& r) {
        static_cast<void>(
            r.order.next({1, forward, 0}, std::make_exception_ptr(std::runtime_error{"the disk is gone"})));
    };
    const Both both{failing, [](Rank& r) { r.pass({1}, forward); }};
    EXPECT_EQ(both.said[0], "the disk is gone");
    EXPECT_NE(both.said[1].find("rank 0 could not read its shards"), std::string::npos) << both.said[1];
}

TEST(UnitOrder, WhatRanksHaveLearnedIsCompared) {
    std::array<bool, 3> same{};
    const auto rank = [&](std::uint64_t of_backward) {
        return [&same, of_backward](Rank& r) {
            same = r.order.next({}, nullptr, {7, of_backward, 3}).learned_the_same;
        };
    };
    const auto first = [&](Rank& r) { static_cast<void>(r.order.next({}, nullptr, {7, 1, 3})); };
    Both(first, rank(2));
    EXPECT_EQ(same, (std::array<bool, 3>{true, false, true}));
}

}  // namespace
