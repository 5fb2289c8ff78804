#pragma once
// strata/data/detail/picture_source_fill.hpp - how ranks share what is to be looked up and to be encoded before the first step.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/core/error.hpp>
#include <strata/data/detail/picture_source_body.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/for_all.hpp>

namespace strata::data::detail {

[[noreturn]] inline void throw_interrupted() {
    throw Error{Errc::interrupted, "stopped before training began; what was cached is kept",
                "run the same command again to go on"};
}

/// Calls work(i) for this rank's i of [0, count) on all threads: those who see the same caches share that; a failure anywhere, or being asked to stop, is thrown
/// on all ranks. They meet every few seconds, so that none waits for long: whoever is late is not taken for lost, and all
/// hear of a failure soon.
template <class Store>
template <class Work>
void PictureSourceBody<Store>::pass_over_share(std::string_view what, std::size_t count, const Work& work) {
    const auto [number, together, fewest] = cache_keepers_.share(comm_->rank(), comm_->world());
    const auto rank = static_cast<std::size_t>(number), world = static_cast<std::size_t>(together);
    const std::size_t share = count / world + (count % world > rank ? 1 : 0);
    const std::size_t most = (count + static_cast<std::size_t>(fewest) - 1) / static_cast<std::size_t>(fewest);
    std::size_t part = 64;  // items of a rank between two meetings
    for (std::size_t begin = 0; begin < most;) {
        const std::size_t end = std::min(begin + part, most);
        const std::size_t mine = std::min(end, share) - std::min(begin, share);
        const auto start = std::chrono::steady_clock::now();
        std::atomic<bool> stop{options_.stopped && options_.stopped()};
        comm::agree(*comm_, [&] {
            datasets::for_all(
                static_cast<std::int64_t>(mine), threads_,
                [&](std::int64_t i) {
                    if (!stop) work((begin + static_cast<std::size_t>(i)) * world + rank);
                },
                [&](std::int64_t done) {
                    if (stop) return;
                    if (options_.progress)
                        options_.progress(what, static_cast<std::int64_t>(begin) + done,
                                          static_cast<std::int64_t>(share));
                    if (options_.stopped && options_.stopped()) stop = true;
                });
        });
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        double slowest = 0;
        for (const std::string& said : comm_->all_gather_varied(stop ? "stop" : std::to_string(taken.count()))) {
            if (said == "stop") throw_interrupted();
            slowest = std::max(slowest, std::stod(said));
        }
        begin = end;
        constexpr std::size_t least = 16;
        if (slowest < 2)
            part *= 2;
        else if (slowest > 20)
            part = std::max(least, part / 2);
    }
}

/// Which of `count` entries must be made, in their order, the same on all ranks that see the same caches.
///
///   look_up  of one entry, from several threads; `found` where it is there
template <class Store>
std::vector<typename PictureSourceBody<Store>::Missing> PictureSourceBody<Store>::missing_of(
    std::string_view what, std::size_t count, const std::function<CacheOutcome(std::size_t)>& look_up) {
    datasets::FieldWriter news;
    std::mutex mutex;
    pass_over_share(what, count, [&](std::size_t i) {
        const CacheOutcome outcome = look_up(i);
        if (outcome == CacheOutcome::found) return;
        const std::lock_guard lock{mutex};
        news << i << static_cast<int>(outcome);
    });
    std::vector<Missing> missing;
    const std::vector<std::string> of_ranks = comm_->all_gather_varied(news.bytes());
    for (int other = 0; other < comm_->world(); ++other) {
        if (cache_keepers_.of(other) != cache_keepers_.of(comm_->rank())) continue;
        for (datasets::FieldReader fields{of_ranks[static_cast<std::size_t>(other)]}; !fields.empty();) {
            const auto task = static_cast<std::size_t>(fields.integer());
            missing.push_back({task, static_cast<CacheOutcome>(fields.integer())});
        }
    }
    std::sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) { return a.task < b.task; });
    return missing;
}

/// Makes entries, the groups dealt to the ranks in turn; each group is encoded together. Encoders compute without a pause:
/// while they do, samples of the next groups are read and decoded, and entries of those before are written.
///
///   begin  what is to be made
///   made   what became of it, from one thread at a time; failures that are no PictureFailure end all
template <class Store>
void PictureSourceBody<Store>::make(std::string_view what, const std::vector<std::vector<Missing>>& groups,
                                    const std::function<SampleWork(const Missing&)>& begin, const Made& made) {
    if (comm_->all_gather_varied(groups.empty() ? "" : "1") ==
        std::vector<std::string>(static_cast<std::size_t>(comm_->world())))
        return;
    const comm::FolderKeepers::Share part = cache_keepers_.share(comm_->rank(), comm_->world());
    const auto world = static_cast<std::size_t>(part.of);
    auto next = static_cast<std::size_t>(part.number);
    std::int64_t share = 0;
    std::size_t largest = 1;
    for (std::size_t g = next; g < groups.size(); g += world) {
        share += static_cast<std::int64_t>(groups[g].size());
        largest = std::max(largest, groups[g].size());
    }
    // One is encoded, one is complete, and the others keep the threads busy.
    const std::size_t most_under_way = 2 + (static_cast<std::size_t>(threads_) + largest - 1) / largest;

    std::mutex mutex;  // of what follows
    std::condition_variable changed;
    std::size_t under_way = 0;
    std::int64_t done = 0;
    std::exception_ptr failure;
    std::atomic<bool> stop{options_.stopped && options_.stopped()};
    auto steps = graph_steps();
    steps.collate = {};
    steps.done = [&](const std::shared_ptr<Group>& group) {
        const std::lock_guard lock{mutex};
        --under_way;
        if (!stop) {
            for (std::size_t i = 0; i < group->samples.size(); ++i) {
                try {
                    if (group->failures[i]) std::rethrow_exception(group->failures[i]);
                    made(group->samples[i].task, group->samples[i].picture_outcome, nullptr);
                } catch (const PictureFailure&) {
                    made(group->samples[i].task, group->samples[i].picture_outcome, group->failures[i]);
                } catch (...) {
                    if (!failure) failure = std::current_exception();
                }
            }
            done += static_cast<std::int64_t>(group->samples.size());
            if (options_.progress && !failure) options_.progress(what, done, share);
            if (options_.stopped && options_.stopped()) stop = true;
        }
        group->samples.clear();
        changed.notify_all();
    };
    Graph graph{std::move(steps), bounds_, threads_};

    for (bool all_done = false; !all_done;) {
        // Ranks meet while their graphs go on, so that all hear of a failure soon and nobody is taken for lost.
        const auto meeting = std::chrono::steady_clock::now() + std::chrono::seconds{1};
        comm::agree(*comm_, [&] {
            std::unique_lock lock{mutex};
            while (std::chrono::steady_clock::now() < meeting && !failure && !stop) {
                if (next >= groups.size() && under_way == 0) break;
                if (next < groups.size() && under_way < most_under_way) {
                    auto group = std::make_shared<Group>();
                    for (const Missing& one : groups[next]) {
                        group->samples.push_back(begin(one));
                        group->samples.back().task = one.task;
                    }
                    next += world;
                    ++under_way;
                    graph.put(std::move(group));
                } else {
                    changed.wait_until(lock, meeting);
                }
            }
            if (failure) std::rethrow_exception(failure);
        });
        const bool is_over = [&] {
            const std::lock_guard lock{mutex};
            return next >= groups.size() && under_way == 0;
        }();
        if (stop) graph.wait();  // what is under way is finished, and kept
        contents_->share(*comm_, collection_);
        all_done = true;
        for (const std::string& said : comm_->all_gather_varied(stop ? "stop" : is_over ? "done" : "more")) {
            if (said == "stop") {
                graph.wait();
                contents_->share(*comm_, collection_);
                throw_interrupted();
            }
            all_done &= said == "done";
        }
    }
}

}  // namespace strata::data::detail
