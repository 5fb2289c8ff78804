#pragma once
// strata/data/step_graph.hpp - StepGraph: the steps from stored samples to batches, as nodes of a flow graph.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <strata/datasets/for_all.hpp>

namespace strata::data {

/// The nodes of a StepGraph, in the order in which a sample meets them.
enum class Step : std::uint8_t { fetch, read, decode, frame, encode, keep, collate };
inline constexpr std::size_t steps = 7;

/// "fetch", "read", ...
[[nodiscard]] constexpr std::string_view name_of(Step step) noexcept {
    constexpr std::array<std::string_view, steps> names{"fetch",  "read", "decode", "frame",
                                                        "encode", "keep", "collate"};
    return names[static_cast<std::size_t>(step)];
}

/// What a step does, for a sentence: "decoding".
[[nodiscard]] constexpr std::string_view work_of(Step step) noexcept {
    constexpr std::array<std::string_view, steps> words{
        "reading cache entries", "reading pictures",        "decoding", "resizing", "encoding",
        "writing cache entries", "putting batches together"};
    return words[static_cast<std::size_t>(step)];
}

/// How many calls of each step may run at once, >= 1, and how much memory samples may take between read and frame.
struct StepBounds {
    std::array<int, steps> calls{1, 1, 1, 1, 1, 1, 1};
    std::int64_t bytes = std::int64_t{1} << 30;
    /// Of a rank with so many threads: encoders are one thread's at a time.
    [[nodiscard]] static StepBounds of(int threads, int decode_threads, std::int64_t bytes) {
        return {{threads, threads, decode_threads, decode_threads, 1, threads, threads}, bytes};
    }
};

/// Groups of samples, each sample through its own steps side by side, then each group through those that are for all of it:
///
///   fetch --+-------------------------------+--> (the last of a group) --> encode --> keep --> collate --> done
///           +--> read --> decode --> frame --+
///
/// A TBB flow graph. Each node has a bound of its own; what waits for a node costs no thread. A sample enters `read` when
/// the bytes that it will take are within the budget, in the order of asking; one that wants more than there is goes alone.
///
///   Sample  default constructible, movable
template <class Sample>
class StepGraph {
public:
    /// What goes through the graph together.
    struct Group {
        std::int64_t number = 0;
        std::vector<Sample> samples;
        /// What a step threw, one a sample; encode() and keep() may set it for theirs. A sample with a failure meets no
        /// further step of its own, and its group no collate.
        std::vector<std::exception_ptr> failures;
        std::shared_ptr<void> made;  ///< by collate

        [[nodiscard]] std::exception_ptr failure() const {
            for (const std::exception_ptr& one : failures)
                if (one) return one;
            return nullptr;
        }

    private:
        friend class StepGraph;
        std::atomic<std::size_t> left{0};
    };

    /// What the nodes do. Those that are empty do nothing.
    struct Steps {
        std::function<bool(Sample&)> fetch = {};  ///< true: read, decode and frame come next
        /// That read, decode and frame take; asked before read, and behind it for what is known by then. Must not throw.
        std::function<std::int64_t(const Sample&)> bytes = {};
        std::function<void(Sample&)> read = {};
        std::function<void(Sample&)> decode = {};
        std::function<void(Sample&)> frame = {};
        std::function<void(Group&)> encode = {};
        std::function<void(Group&)> keep = {};
        std::function<void(Group&)> collate = {};
        /// Whatever became of the group; from any thread. Must not throw.
        std::function<void(std::shared_ptr<Group>)> done = {};
    };

    ///   threads  that work, >= 1
    StepGraph(Steps what, const StepBounds& bounds, int threads)
        : what_{std::move(what)}, budget_{bounds.bytes}, allowance_{threads}, arena_{threads + 1, 1} {
        arena_.execute([&] { flow_ = std::make_unique<Flow>(*this, bounds); });
    }
    StepGraph(const StepGraph&) = delete;
    StepGraph& operator=(const StepGraph&) = delete;
    /// Steps that run are finished or see stopping(); what is left passes through the graph without any.
    ~StepGraph() {
        stop_ = true;
        wait();
    }

    /// Lets a group in; returns at once. From any thread, `done` too.
    void put(std::shared_ptr<Group> group) {
        group->failures.assign(group->samples.size(), nullptr);
        group->left = std::max<std::size_t>(group->samples.size(), 1);
        flow_->graph.reserve_wait();
        // Enqueued, because only enqueued work is sure to find a thread on a machine with a single core; the reservation
        // makes wait() wait for it.
        arena_.enqueue([this, group = std::move(group)] {
            if (group->samples.empty()) flow_->gather.try_put({group, nullptr, 0});
            for (std::size_t i = 0; i < group->samples.size(); ++i)
                flow_->fetch.try_put({group, &group->samples[i], i});
            flow_->graph.release_wait();
        });
    }

    /// Returns when nothing is under way.
    void wait() { flow_->graph.wait_for_all(); }
    /// From here on samples pass through without any step.
    void stop() noexcept { stop_ = true; }
    [[nodiscard]] bool stopping() const noexcept { return stop_; }

    /// Seconds that calls of a step took so far, together.
    [[nodiscard]] double seconds(Step step) const noexcept {
        return static_cast<double>(nanoseconds_[static_cast<std::size_t>(step)]) / 1e9;
    }

private:
    using GroupPtr = std::shared_ptr<Group>;
    struct Item {
        GroupPtr group;
        Sample* sample = nullptr;
        std::size_t index = 0;
        std::int64_t bytes = 0;  // of the budget
        [[nodiscard]] bool has_failed() const { return group->failures[index] != nullptr; }
    };
    using Fork = oneapi::tbb::flow::multifunction_node<Item, std::tuple<Item, Item>>;  // on, or out of turn
    using Ports = typename Fork::output_ports_type;
    using Stage = oneapi::tbb::flow::function_node<GroupPtr, GroupPtr>;
    static constexpr oneapi::tbb::flow::node_priority_t first =
        2;  // what is nearly done takes memory, and is waited for
    static constexpr oneapi::tbb::flow::node_priority_t second = 1;

    struct Flow {
        oneapi::tbb::flow::graph graph;
        Fork fetch, admit, read, decode, frame;
        oneapi::tbb::flow::multifunction_node<Item, std::tuple<GroupPtr>> gather;
        Stage encode, keep, collate;
        oneapi::tbb::flow::function_node<GroupPtr> done;

        Flow(StepGraph& self, const StepBounds& bounds)
            : fetch{graph, at_once(bounds, Step::fetch),
                    [&self](const Item& item, Ports& ports) {
                        bool goes_on = false;
                        self.call(Step::fetch, item,
                                  [&] { goes_on = self.what_.fetch && self.what_.fetch(*item.sample); });
                        if (goes_on && !item.has_failed() && !self.stop_)
                            std::get<0>(ports).try_put(item);
                        else
                            std::get<1>(ports).try_put(item);
                    }},
              admit{graph, oneapi::tbb::flow::serial,
                    [&self](const Item& item, Ports& ports) { self.let_in(item, ports); }},
              read{graph, at_once(bounds, Step::read),
                   [&self](const Item& item, Ports& ports) { self.pass(Step::read, self.what_.read, item, ports); }},
              decode{
                  graph, at_once(bounds, Step::decode),
                  [&self](const Item& item, Ports& ports) { self.pass(Step::decode, self.what_.decode, item, ports); },
                  second},
              frame{graph, at_once(bounds, Step::frame),
                    [&self](const Item& item, Ports& ports) { self.pass(Step::frame, self.what_.frame, item, ports); },
                    second},
              gather{graph, oneapi::tbb::flow::unlimited,
                     [](const Item& item, auto& ports) {
                         if (--item.group->left == 0) std::get<0>(ports).try_put(item.group);
                     },
                     first},
              encode{graph, at_once(bounds, Step::encode),
                     [&self](const GroupPtr& group) { return self.apply(Step::encode, self.what_.encode, group); },
                     first},
              keep{graph, at_once(bounds, Step::keep),
                   [&self](const GroupPtr& group) { return self.apply(Step::keep, self.what_.keep, group); }, first},
              collate{graph, at_once(bounds, Step::collate),
                      [&self](const GroupPtr& group) {
                          return group->failure() ? group : self.apply(Step::collate, self.what_.collate, group);
                      },
                      first},
              done{graph, oneapi::tbb::flow::unlimited,
                   [&self](const GroupPtr& group) {
                       if (self.what_.done) self.what_.done(group);
                   },
                   first} {
            using oneapi::tbb::flow::make_edge;
            using oneapi::tbb::flow::output_port;
            make_edge(output_port<0>(fetch), admit);
            make_edge(output_port<1>(fetch), gather);
            make_edge(output_port<0>(admit), read);
            make_edge(output_port<0>(read), decode);
            make_edge(output_port<0>(decode), frame);
            make_edge(output_port<0>(frame), gather);
            for (Fork* const step : {&read, &decode, &frame}) make_edge(output_port<1>(*step), gather);
            make_edge(output_port<0>(gather), encode);
            make_edge(encode, keep);
            make_edge(keep, collate);
            make_edge(collate, done);
        }
        static std::size_t at_once(const StepBounds& bounds, Step step) {
            return static_cast<std::size_t>(std::max(bounds.calls[static_cast<std::size_t>(step)], 1));
        }
    };

    /// Runs one call, timed; what it throws is the sample's failure.
    template <class Call>
    void call(Step step, const Item& item, const Call& call) {
        if (stop_) return;
        const auto begin = std::chrono::steady_clock::now();
        try {
            call();
        } catch (...) {
            item.group->failures[item.index] = std::current_exception();
        }
        note(step, begin);
    }

    /// A step of a sample that has its part of the budget, and gives it back behind the last one or its failure.
    void pass(Step step, const std::function<void(Sample&)>& work, Item item, Ports& ports) {
        call(step, item, [&] {
            if (work) work(*item.sample);
        });
        const bool goes_on = !item.has_failed();
        const bool is_over = step == Step::frame || !goes_on;
        if (is_over || step == Step::read) {  // which knows better what decoding takes
            const std::int64_t wanted = is_over ? 0 : bytes_of(*item.sample);
            taken_ += wanted - item.bytes;
            item.bytes = wanted;
            flow_->admit.try_put({});
        }
        if (goes_on)
            std::get<0>(ports).try_put(item);
        else
            std::get<1>(ports).try_put(item);
    }

    /// One at a time: an item joins the queue, an empty one says that there is more room.
    void let_in(const Item& item, Ports& ports) {
        if (item.sample != nullptr) {
            Item waiting = item;
            waiting.bytes = bytes_of(*item.sample);
            waiting_.push_back(std::move(waiting));
        }
        while (!waiting_.empty()) {
            const std::int64_t taken = taken_;
            if (taken > 0 && taken + waiting_.front().bytes > budget_) return;
            taken_ += waiting_.front().bytes;
            std::get<0>(ports).try_put(waiting_.front());
            waiting_.pop_front();
        }
    }

    [[nodiscard]] std::int64_t bytes_of(const Sample& sample) const {
        return what_.bytes ? std::max<std::int64_t>(what_.bytes(sample), 0) : 0;
    }

    GroupPtr apply(Step step, const std::function<void(Group&)>& work, const GroupPtr& group) {
        if (!work || stop_) return group;
        const auto begin = std::chrono::steady_clock::now();
        try {
            work(*group);
        } catch (...) {
            if (group->failures.empty()) group->failures.emplace_back();
            for (std::exception_ptr& one : group->failures)
                if (!one) one = std::current_exception();
        }
        note(step, begin);
        return group;
    }

    void note(Step step, std::chrono::steady_clock::time_point begin) noexcept {
        nanoseconds_[static_cast<std::size_t>(step)] +=
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
    }

    Steps what_;
    std::int64_t budget_;
    std::deque<Item> waiting_;            // of admit, which is one thread at a time
    std::atomic<std::int64_t> taken_{0};  // of the budget
    std::atomic<bool> stop_{false};
    std::array<std::atomic<std::int64_t>, steps> nanoseconds_{};
    datasets::WorkerAllowance allowance_;
    oneapi::tbb::task_arena arena_;
    std::unique_ptr<Flow> flow_;
};

}  // namespace strata::data
