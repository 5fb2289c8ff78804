// What set_trainable() is made of: which elements stay with whom, and a predicate's answers on all ranks.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/core/error.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/staying_parameters.hpp>
#include <strata/zero/parts/trainable_change.hpp>

namespace {

using namespace strata;
using namespace strata::zero;

/// Parameters "p0", "p1", ... of these sizes and units.
std::vector<Parameter> parameters(const std::vector<ParameterExtent>& extents) {
    std::vector<Parameter> made;
    for (const ParameterExtent& extent : extents)
        made.push_back({"p" + std::to_string(made.size()), torch::zeros({extent.numel}).requires_grad_(), extent.unit});
    return made;
}
Buckets table(const std::vector<Parameter>& all, const std::vector<std::size_t>& trained, Buckets::Options options) {
    std::vector<Parameter> chosen;
    for (const std::size_t i : trained) chosen.push_back(all[i]);
    return {chosen, std::vector<std::size_t>(chosen.size(), 0), options};
}
std::vector<ElementRun> runs(std::vector<ElementRun> expected) { return expected; }

// 6 and 5 elements, a unit of 7 and 3, and 4 elements after it.
const std::vector<ParameterExtent> five{{6, -1}, {5, -1}, {7, 0}, {3, 0}, {4, -1}};

TEST(Trainable, ABucketOfTheSameParametersKeepsItsShares) {
    const auto all = parameters(five);
    const Buckets::Options options{.bucket_numel = 100, .rank = 1, .world = 2};
    const Buckets before = table(all, {0, 1, 2, 3, 4}, options);
    ASSERT_EQ(before.size(), 3U);
    const Buckets after = table(all, {0, 2, 3}, options);
    const StayingParameters staying{before, after};
    EXPECT_FALSE(staying.keeps_shares(0)) << "p1 has left";
    EXPECT_TRUE(staying.keeps_shares(1)) << "the unit";
    EXPECT_FALSE(staying.keeps_shares(2));
    EXPECT_TRUE(staying.any_of(0) && staying.any_of(1));
    EXPECT_FALSE(staying.any_of(2));
    const StayingParameters back{after, before};
    EXPECT_FALSE(back.keeps_shares(0)) << "p1 has joined";
    EXPECT_TRUE(back.keeps_shares(1));
}

TEST(Trainable, ARankHasOfTheOldBucketsWhatIsInItsShareOfTheNewOnes) {
    const auto all = parameters(five);
    const Buckets::Options options{.bucket_numel = 100, .rank = 1, .world = 2};
    const Buckets before = table(all, {0, 1, 2, 3, 4}, options);
    const Buckets after = table(all, {1, 2, 4}, options);  // buckets of 5, 7 and 4
    const StayingParameters staying{before, after};
    EXPECT_EQ(staying.kept_of(0, false), runs({{6 + 3, 2}})) << "elements 3 and 4 of p1, after p0";
    EXPECT_EQ(staying.kept_of(1, false), runs({{4, 3}})) << "the rest of p2";
    EXPECT_EQ(staying.kept_of(2, false), runs({{2, 2}}));
    EXPECT_EQ(staying.kept_of(0, true), runs({{6, 5}})) << "where every rank has all of the state";
}

TEST(Trainable, PlacesInANewBucketAreThoseOfWhatWasTrainedBefore) {
    const auto all = parameters(five);
    const Buckets::Options options{.bucket_numel = 100, .rank = 0, .world = 1};
    const Buckets before = table(all, {1, 2}, options);
    const Buckets after = table(all, {0, 1, 2, 3}, options);
    const StayingParameters staying{before, after};
    EXPECT_EQ(staying.staying_in(0, 0, 11), runs({{6, 5}}));
    EXPECT_EQ(staying.staying_in(0, 4, 4), runs({{2, 2}})) << "elements 6 and 7 of the bucket, from element 4 on";
    EXPECT_TRUE(staying.staying_in(0, 0, 6).empty());
    EXPECT_EQ(staying.staying_in(1, 0, 10), runs({{0, 7}}));
}

/// What is read in order of the one table is what is written in order of the other, for every rank.
TEST(Trainable, ElementsThatStayComeInOneOrderThroughBothTables) {
    const auto all = parameters({{6, -1}, {5, -1}, {7, 0}, {3, 0}, {4, -1}, {9, 1}, {1, 1}, {2, -1}});
    const std::vector<std::size_t> first{0, 1, 3, 4, 5, 6, 7}, second{1, 2, 3, 5, 7};
    for (const int world : {1, 2, 3, 5}) {
        for (int rank = 0; rank < world; ++rank) {
            const Buckets::Options options{.bucket_numel = 8, .rank = rank, .world = world};
            const Buckets before = table(all, first, options), after = table(all, second, options);
            const StayingParameters staying{before, after};
            const auto name_elements = [](const Buckets& buckets, std::size_t bucket, const ElementRun& run) {
                std::vector<std::string> names;
                for (std::int64_t e = run.begin; e < run.begin + run.numel; ++e) {
                    const Bucket& b = buckets[bucket].bucket;
                    for (std::size_t i = b.first_parameter; i < b.first_parameter + b.parameter_count; ++i) {
                        const TrainedParameter& p = buckets.parameter(i);
                        if (p.offset <= e && e < p.offset + p.tensor.numel())
                            names.push_back(buckets.name(i) + "[" + std::to_string(e - p.offset) + "]");
                    }
                }
                return names;
            };
            std::vector<std::string> read, written;
            const auto append = [](std::vector<std::string>& to, const std::vector<std::string>& names) {
                to.insert(to.end(), names.begin(), names.end());
            };
            for (std::size_t b = 0; b < before.size(); ++b) {
                for (const ElementRun& run : staying.kept_of(b, false)) append(read, name_elements(before, b, run));
            }
            for (std::size_t b = 0; b < after.size(); ++b) {
                const std::int64_t share = after.share_of(b), begin = share * rank;
                for (const ElementRun& run : staying.staying_in(b, begin, share))
                    append(written, name_elements(after, b, {begin + run.begin, run.numel}));
            }
            EXPECT_EQ(read, written) << rank << " of " << world;
            if (world == 1) {
                EXPECT_EQ(read.size(), 5U + 3U + 9U + 2U);
            }
        }
    }
}

struct Change {
    comm::SelfComm comm;
    std::shared_ptr<strata::zero::detail::BufferPool> pool = std::make_shared<strata::zero::detail::BufferPool>();
    CpuDevice device;
    ExchangeOver<comm::SelfComm, CpuDevice> exchange{comm, *pool, device};
};
Errc code_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.code();
    }
    return Errc{};
}

TEST(Trainable, APredicateIsAppliedToAllParametersOrToNone) {
    Change ranks;
    std::vector<Parameter> all = parameters(five);
    all[4].tensor.requires_grad_(false);
    all.push_back({"number", torch::zeros({2}, torch::kLong), -1});
    const auto trained = [&] {
        std::string text;
        for (const Parameter& parameter : all) text += parameter.tensor.requires_grad() ? 'T' : '-';
        return text;
    };
    const auto change = [&](const std::function<bool(std::string_view)>& trains) {
        return TrainableChange{all, {all[4], all[5]}, trains, ranks.exchange};
    };
    const auto as_they_are = [](std::string_view name) { return name < "p4" && name != "number"; };
    EXPECT_FALSE(change(as_they_are).any());
    all[0].tensor.requires_grad_(false);
    const TrainableChange same = change(as_they_are);
    EXPECT_FALSE(same.any()) << "what is trained is no gradient's matter for the moment";
    same.apply(at::kCPU);
    EXPECT_EQ(trained(), "TTTT--");
    const TrainableChange some = change([](std::string_view name) { return name == "p0" || name == "p4"; });
    EXPECT_TRUE(some.any());
    EXPECT_EQ(trained(), "TTTT--") << "asking changes nothing";
    some.apply(at::kCPU);
    EXPECT_EQ(trained(), "T---T-");
    some.undo();
    EXPECT_EQ(trained(), "TTTT--");
    EXPECT_EQ(code_of([&] { change([](std::string_view) { return false; }).apply(at::kCPU); }), Errc::no_parameters);
    EXPECT_EQ(code_of([&] { change([](std::string_view) { return true; }).apply(at::kCPU); }), Errc::bad_parameter);
    EXPECT_EQ(code_of([&] { change({}); }), Errc::bad_value);
    EXPECT_EQ(trained(), "TTTT--");
}

}  // namespace
