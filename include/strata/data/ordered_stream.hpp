#pragma once
// strata/data/ordered_stream.hpp - OrderedStream: items made ahead of time by several threads and handed out in order.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <strata/datasets/for_all.hpp>

namespace strata::data {

/// Items number first, first + 1, ... made ahead of time by several threads and handed out in order.
///
/// A TBB flow graph: make (parallel) -> sequencer -> queue. An item is asked for only when one was taken, so at most
/// `ahead` items are being made or waiting, and no thread ever blocks on a full queue. What `make` throws is thrown by
/// the next() that would have returned the item. The destructor lets items that are being made finish or see
/// `stop`, and drops the rest.
template <class Item>
class OrderedStream {
public:
    /// Makes item number `index`; looks at `stop` now and then and may return anything once it is true.
    using Make = std::function<Item(std::int64_t index, const std::atomic<bool>& stop)>;

    ///   ahead    >= 1
    ///   threads  >= 1
    OrderedStream(Make make, std::int64_t first, std::int64_t ahead, int threads)
        : make_{std::move(make)}, first_{first}, allowance_{threads}, arena_{threads + 1, 1} {
        arena_.execute([&] { flow_ = std::make_unique<Flow>(*this, threads); });
        for (std::int64_t i = 0; i < std::max<std::int64_t>(ahead, 1); ++i) ask();
    }
    OrderedStream(const OrderedStream&) = delete;
    OrderedStream& operator=(const OrderedStream&) = delete;
    ~OrderedStream() {
        stop_ = true;
        flow_->graph.wait_for_all();
    }

    /// The next item; waits until it is made. For one thread at a time.
    Item next() {
        SlotPtr slot;
        ready_.pop(slot);
        ask();
        if (slot->error) std::rethrow_exception(slot->error);
        return std::move(*slot->item);
    }

private:
    struct Slot {
        std::size_t turn = 0;
        std::optional<Item> item;
        std::exception_ptr error;
    };
    using SlotPtr = std::shared_ptr<Slot>;

    struct Flow {
        oneapi::tbb::flow::graph graph;
        oneapi::tbb::flow::function_node<std::size_t, SlotPtr> make;
        oneapi::tbb::flow::sequencer_node<SlotPtr> in_order;
        oneapi::tbb::flow::function_node<SlotPtr> deliver;

        Flow(OrderedStream& stream, int threads)
            : make{graph, static_cast<std::size_t>(threads),
                   [&stream](std::size_t turn) { return stream.make_slot(turn); }},
              in_order{graph, [](const SlotPtr& slot) { return slot->turn; }},
              deliver{graph, oneapi::tbb::flow::serial, [&stream](const SlotPtr& slot) {
                          stream.ready_.push(slot);
                          return oneapi::tbb::flow::continue_msg{};
                      }} {
            oneapi::tbb::flow::make_edge(make, in_order);
            oneapi::tbb::flow::make_edge(in_order, deliver);
        }
    };

    /// Lets one more item be made. Enqueued, because only enqueued work is sure to find a thread on a machine
    /// with a single core; the reservation makes the destructor wait for it.
    void ask() {
        flow_->graph.reserve_wait();
        arena_.enqueue([this, turn = asked_++] {
            flow_->make.try_put(turn);
            flow_->graph.release_wait();
        });
    }

    SlotPtr make_slot(std::size_t turn) {
        auto slot = std::make_shared<Slot>();
        slot->turn = turn;
        if (stop_) return slot;
        try {
            slot->item.emplace(make_(first_ + static_cast<std::int64_t>(turn), stop_));
        } catch (...) {
            slot->error = std::current_exception();
        }
        return slot;
    }

    Make make_;
    std::int64_t first_;
    std::size_t asked_ = 0;
    std::atomic<bool> stop_{false};
    oneapi::tbb::concurrent_bounded_queue<SlotPtr> ready_;
    datasets::WorkerAllowance allowance_;
    oneapi::tbb::task_arena arena_;
    std::unique_ptr<Flow> flow_;
};

}  // namespace strata::data
