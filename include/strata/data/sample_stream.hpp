#pragma once
// strata/data/sample_stream.hpp - SampleStream: batches made ahead of time by a graph of steps, handed out in order.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <strata/data/step_graph.hpp>

namespace strata::data {

/// Batches number first, first + 1, ... made ahead of time by a StepGraph and handed out in order.
///
/// A batch is asked for only when one was taken, so at most `ahead` batches are being made or waiting. What planning or a step
/// throws is thrown by the next() that would have returned the batch. The destructor lets steps that run finish, and drops
/// the rest.
template <class Sample>
class SampleStream {
public:
    using Graph = StepGraph<Sample>;
    using Group = typename Graph::Group;
    using GroupPtr = std::shared_ptr<Group>;
    /// What is in the batch of that number; called by the constructor and by next().
    using Plan = std::function<GroupPtr(std::int64_t number)>;

    ///   what     without `done`
    ///   ahead    >= 1
    ///   threads  >= 1
    SampleStream(typename Graph::Steps what, Plan plan, std::int64_t first, std::int64_t ahead,
                 const StepBounds& bounds, int threads)
        : plan_{std::move(plan)}, taken_{first}, asked_{first}, graph_{with_done(std::move(what)), bounds, threads} {
        for (std::int64_t i = 0; i < std::max<std::int64_t>(ahead, 1); ++i) ask();
    }
    SampleStream(const SampleStream&) = delete;
    SampleStream& operator=(const SampleStream&) = delete;

    /// The next batch; waits until it is made. For one thread at a time.
    [[nodiscard]] GroupPtr next() {
        GroupPtr group;
        {
            std::unique_lock lock{mutex_};
            changed_.wait(lock, [&] { return ready_.contains(taken_); });
            group = std::move(ready_.extract(taken_++).mapped());
        }
        ask();
        if (const std::exception_ptr failure = group->failure()) std::rethrow_exception(failure);
        return group;
    }

    /// See StepGraph::seconds().
    [[nodiscard]] double seconds(Step step) const noexcept { return graph_.seconds(step); }

private:
    typename Graph::Steps with_done(typename Graph::Steps what) {
        what.done = [this](GroupPtr group) { put(std::move(group)); };
        return what;
    }
    void put(GroupPtr group) {
        {
            const std::lock_guard lock{mutex_};
            const std::int64_t number = group->number;
            ready_[number] = std::move(group);
        }
        changed_.notify_all();
    }
    /// Lets one more batch be made.
    void ask() {
        const std::int64_t number = asked_++;
        GroupPtr group;
        try {
            group = plan_(number);
        } catch (...) {  // is of this batch, and those before it come first
            group = std::make_shared<Group>();
            group->number = number;
            group->failures.push_back(std::current_exception());
            put(std::move(group));
            return;
        }
        group->number = number;
        graph_.put(std::move(group));
    }

    Plan plan_;
    std::int64_t taken_;
    std::int64_t asked_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::int64_t, GroupPtr> ready_;
    Graph graph_;  // last: its threads use everything above
};

}  // namespace strata::data
