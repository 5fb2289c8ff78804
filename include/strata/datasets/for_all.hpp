#pragma once
// strata/datasets/for_all.hpp - a pass over a list by several threads, in bounded numbers, and the threads that passes and streams have.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

namespace strata::datasets {

/// Threads a pipeline uses for `asked`; 0 asks for as many as there are cores.
[[nodiscard]] inline int threads_for(std::int64_t asked) {
    return asked > 0 ? static_cast<int>(asked) : std::max(1, oneapi::tbb::info::default_concurrency());
}

/// Lets TBB have `threads` workers beside the calling thread while it lives; TBB prints a warning on stderr when an
/// arena asks for more workers than it has.
class WorkerAllowance {
public:
    explicit WorkerAllowance(int threads)
        : control_{oneapi::tbb::global_control::max_allowed_parallelism,
                   static_cast<std::size_t>(std::max(threads, oneapi::tbb::info::default_concurrency()) + 1)} {}

private:
    oneapi::tbb::global_control control_;
};

/// Calls work(i) for every i in [0, count) on several threads; at most two calls a thread are under way, whatever
/// their results cost in memory. `done(n)` is called after each, one at a time, with how many are finished.
/// What `work` throws ends the pass and is thrown here. Local.
template <class Work, class Done>
void for_all(std::int64_t count, int threads, const Work& work, const Done& done) {
    namespace tbb = oneapi::tbb;
    const WorkerAllowance allowance{threads};
    tbb::task_arena arena{threads};
    arena.execute([&] {
        std::int64_t next = 0;
        std::int64_t finished = 0;
        tbb::parallel_pipeline(static_cast<std::size_t>(threads) * 2,
                               tbb::make_filter<void, std::int64_t>(tbb::filter_mode::serial_in_order,
                                                                    [&](tbb::flow_control& control) -> std::int64_t {
                                                                        if (next == count) {
                                                                            control.stop();
                                                                            return 0;
                                                                        }
                                                                        return next++;
                                                                    }) &
                                   tbb::make_filter<std::int64_t, std::int64_t>(tbb::filter_mode::parallel,
                                                                                [&](std::int64_t i) {
                                                                                    work(i);
                                                                                    return i;
                                                                                }) &
                                   tbb::make_filter<std::int64_t, void>(tbb::filter_mode::serial_out_of_order,
                                                                        [&](std::int64_t) { done(++finished); }));
    });
}

}  // namespace strata::datasets
