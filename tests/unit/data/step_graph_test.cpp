#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/data/step_graph.hpp>

namespace {

using namespace std::chrono_literals;
using strata::data::Step;
using strata::data::StepBounds;

struct Sample {
    int value = 0;
    std::string way;
};
using Graph = strata::data::StepGraph<Sample>;

std::shared_ptr<Graph::Group> group_of(std::vector<int> values, std::int64_t number = 0) {
    auto group = std::make_shared<Graph::Group>();
    group->number = number;
    for (const int value : values) group->samples.push_back({value, ""});
    return group;
}

/// Waits for what must come; the deadline only keeps a failure from hanging.
template <class Condition>
bool comes_true(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

/// Counts calls that run at the same time.
struct Gauge {
    std::atomic<int> now{0};
    std::atomic<int> most{0};
    template <class Call>
    void count(const Call& call) {
        const int level = ++now;
        for (int seen = most; seen < level && !most.compare_exchange_weak(seen, level);) {
        }
        call();
        --now;
    }
};

TEST(StepGraph, EachSampleGoesItsWayAndEachGroupThroughAllOfItOnce) {
    Graph::Steps steps;
    steps.fetch = [](Sample& sample) {
        sample.way += "f";
        return sample.value % 2 == 1;
    };
    steps.read = [](Sample& sample) { sample.way += "r"; };
    steps.decode = [](Sample& sample) { sample.way += "d"; };
    steps.frame = [](Sample& sample) { sample.way += "p"; };
    const auto to_all = [](const char* letter) {
        return [letter](Graph::Group& group) {
            for (Sample& sample : group.samples) sample.way += letter;
        };
    };
    steps.encode = to_all("e");
    steps.keep = to_all("k");
    steps.collate = to_all("c");
    std::mutex mutex;
    std::vector<std::shared_ptr<Graph::Group>> done;
    steps.done = [&](const std::shared_ptr<Graph::Group>& group) {
        const std::lock_guard lock{mutex};
        done.push_back(group);
    };
    Graph graph{steps, StepBounds::of(3, 2, 100), 3};
    for (int i = 0; i < 40; ++i) graph.put(group_of({i, i + 1, i + 2}, i));
    graph.put(group_of({}, 40));
    graph.wait();
    ASSERT_EQ(done.size(), 41U);
    for (const auto& group : done)
        for (const Sample& sample : group->samples)
            EXPECT_EQ(sample.way, sample.value % 2 == 1 ? "frdpekc" : "fekc") << sample.value;
}

TEST(StepGraph, EveryStepKeepsItsBoundAndSamplesOfOneGroupAreMadeSideBySide) {
    Graph::Steps steps;
    Gauge fetching, decoding, encoding;
    std::atomic<bool> met{false};
    steps.fetch = [&](Sample&) {
        fetching.count([&] {
            if (!met) met = comes_true([&] { return fetching.now >= 2 || met; });  // of the only group
        });
        return true;
    };
    steps.decode = [&](Sample&) { decoding.count([] { std::this_thread::sleep_for(1ms); }); };
    steps.encode = [&](Graph::Group&) { encoding.count([] { std::this_thread::sleep_for(1ms); }); };
    Graph graph{steps, StepBounds::of(4, 2, 1000), 4};
    graph.put(group_of({0, 1, 2, 3, 4, 5, 6, 7}));
    graph.wait();
    EXPECT_TRUE(met);
    for (int i = 0; i < 20; ++i) graph.put(group_of({0, 1, 2}));
    graph.wait();
    EXPECT_LE(fetching.most, 4);
    EXPECT_LE(decoding.most, 2);
    EXPECT_EQ(encoding.most, 1);
    EXPECT_GT(graph.seconds(Step::decode), 0);
    EXPECT_EQ(graph.seconds(Step::collate), 0);
}

TEST(StepGraph, MemoryIsWithinTheBudgetAndALargerSampleGoesAlone) {
    Graph::Steps steps;
    std::atomic<int> bytes{0};
    std::atomic<int> too_much{0};
    steps.fetch = [](Sample&) { return true; };
    steps.bytes = [](const Sample& sample) { return std::int64_t{sample.value}; };
    steps.read = [&](Sample& sample) {
        const int all = bytes += sample.value;
        if (all > 100 && all != sample.value) ++too_much;
    };
    steps.decode = [](Sample&) { std::this_thread::sleep_for(1ms); };
    steps.frame = [&](Sample& sample) { bytes -= sample.value; };
    Graph graph{steps, StepBounds::of(4, 4, 100), 4};
    for (int i = 0; i < 20; ++i) graph.put(group_of({60, 50, 250, 10, 30, 100}));
    graph.wait();
    EXPECT_EQ(too_much, 0);
    EXPECT_EQ(bytes, 0);
}

TEST(StepGraph, AFailureIsItsSamplesOwnAndKeepsTheGroupFromTheBatch) {
    Graph::Steps steps;
    steps.fetch = [](Sample& sample) { return sample.value != 9; };
    steps.bytes = [](const Sample&) { return std::int64_t{60}; };
    steps.decode = [](Sample& sample) {
        if (sample.value == 2) throw std::runtime_error{"sample 2"};
    };
    steps.encode = [](Graph::Group& group) {
        if (group.number == 1) throw std::runtime_error{"group 1"};
    };
    std::atomic<int> collated{0};
    steps.collate = [&](Graph::Group&) { ++collated; };
    std::vector<std::vector<std::string>> said(3);
    steps.done = [&](const std::shared_ptr<Graph::Group>& group) {
        for (const std::exception_ptr& failure : group->failures) try {
                if (failure) std::rethrow_exception(failure);
                said[static_cast<std::size_t>(group->number)].push_back("");
            } catch (const std::runtime_error& error) {
                said[static_cast<std::size_t>(group->number)].push_back(error.what());
            }
    };
    {
        Graph graph{steps, StepBounds::of(2, 2, 100), 2};
        graph.put(group_of({1, 2, 3}, 0));
        graph.put(group_of({1, 2, 9}, 1));
        graph.put(group_of({4, 5, 9}, 2));
        graph.wait();
    }
    EXPECT_EQ(said[0], (std::vector<std::string>{"", "sample 2", ""}));
    EXPECT_EQ(said[1], (std::vector<std::string>{"group 1", "sample 2", "group 1"}));
    EXPECT_EQ(said[2], (std::vector<std::string>{"", "", ""}));
    EXPECT_EQ(collated, 1);
}

TEST(StepGraph, EndingLetsStepsFinishAndBeginsNoMore) {
    std::atomic<int> begun{0};
    std::atomic<bool> let_go{false};
    std::atomic<int> done{0};
    Graph::Steps steps;
    steps.fetch = [&](Sample&) {
        ++begun;
        EXPECT_TRUE(comes_true([&] { return let_go.load(); }));
        return true;
    };
    steps.done = [&](const std::shared_ptr<Graph::Group>&) { ++done; };
    {
        Graph graph{steps, StepBounds::of(2, 2, 100), 2};
        for (int i = 0; i < 50; ++i) graph.put(group_of({1, 2, 3}));
        EXPECT_TRUE(comes_true([&] { return begun == 2; }));
        graph.stop();
        let_go = true;
    }
    EXPECT_EQ(begun, 2);
    EXPECT_EQ(done, 50);
}

}  // namespace
