#pragma once
// strata/testing/tier_conformance.hpp - do the classes that a tier brings do what zero::TierState and zero::TierShards
// say?

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>
#include <strata/offload/swap_folder.hpp>
#include <strata/offload/window_pipeline.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/memory_meter.hpp>
#include <strata/zero/tier.hpp>

namespace strata::testing {

struct TierConformanceOptions {
    std::filesystem::path folder{};                   ///< on a local disk, for tiers that keep files
    std::size_t budget_bytes = std::size_t{1} << 20;  ///< of memory for buffers: less than the state that is tried
};

namespace detail {

/// What an engine lends a tier.
class TierRig {
public:
    TierRig(const TierConformanceOptions& options, bool wants_folder) : budget_bytes_{options.budget_bytes} {
        if (!wants_folder) return;
        if (options.folder.empty()) throw std::runtime_error{"it keeps files: give TierConformanceOptions a folder"};
        folder_ = std::make_unique<offload::SwapFolder>(options.folder, offload::new_run_id(), 0);
    }
    [[nodiscard]] zero::TierContext context(const char* name, zero::MemoryKind kind) const {
        return {*pool_, folder_.get(), name, kind, {.budget_bytes = budget_bytes_}};
    }
    [[nodiscard]] zero::MemoryMeter& meter() const { return pool_->meter(); }

private:
    std::size_t budget_bytes_;
    std::shared_ptr<zero::detail::BufferPool> pool_ = std::make_shared<zero::detail::BufferPool>();
    std::unique_ptr<offload::SwapFolder> folder_;
};

/// Tries laws one by one, each with a class that is new, and notes those that are broken.
class TierLaws {
public:
    TierLaws(TierConformanceOptions options, std::string subject)
        : options_{std::move(options)}, subject_{std::move(subject)} {}
    [[nodiscard]] std::vector<std::string> failures() && { return std::move(failures_); }

protected:
    template <class Law>
    void law(const std::string& promise, Law&& holds) {
        try {
            holds();
        } catch (const std::exception& error) {
            failures_.push_back(subject_ + " " + promise + ": " + error.what());
        }
    }
    static void require(bool holds, const std::string& otherwise) {
        if (!holds) throw std::runtime_error{otherwise};
    }
    /// What must be counted while a class lives, and nothing of it afterwards.
    template <class Tried>
    static void require_counts(const TierRig& rig, zero::MemoryKind kind, std::unique_ptr<Tried> tried,
                               const PlaceBytes& promised) {
        PlaceBytes counted;
        for (const Place place : {Place::device, Place::host, Place::disk})
            counted[place] = rig.meter().of(kind, place).now;
        // Blocks and windows have ends of their own.
        require(counted.in_memory() <= promised.in_memory() + promised.in_memory() / 50 + 4096,
                "bytes() says " + std::to_string(promised.in_memory()) + " bytes in memory, and it keeps " +
                    std::to_string(counted.in_memory()));
        require(counted.in_memory() + counted[Place::disk] > 0, "it keeps something, and its meter says nothing");
        tried.reset();
        for (const Place place : {Place::device, Place::host, Place::disk}) {
            require(rig.meter().total(place).now == 0, "it is gone, and its meter still counts bytes");
        }
    }

    TierConformanceOptions options_;

private:
    std::string subject_;
    std::vector<std::string> failures_;
};

inline std::string element_text(std::size_t bucket, std::int64_t begin) {
    return "element " + std::to_string(begin) + " of bucket " + std::to_string(bucket);
}

template <class Tier, class Kept, std::size_t states, bool has_master>
class StateLaws : TierLaws {
    using State = typename Tier::template state<Kept, states, has_master>;
    static constexpr std::size_t kinds = states + 1;  // the master is the last one

public:
    StateLaws(const TierConformanceOptions& options, const std::string& subject) : TierLaws{options, subject} {}

    std::vector<std::string> run() && {
        law("is filled bucket by bucket", [&] { Trial{options_}.expect_all(); });
        law("keeps what an update leaves", [&] {
            Trial trial{options_};
            for (int i = 0; i < 3; ++i) trial.update();
            trial.expect_all();
        });
        law("keeps what is written", [&] {
            Trial trial{options_};
            trial.update();
            trial.write();
            trial.expect_all();
            trial.update();
            trial.expect_all();
        });
        law("prefetches without a trace", [&] {
            Trial trial{options_};
            for (int i = 0; i < 3; ++i) {
                trial.state->prefetch();
                trial.state->prefetch();
                trial.update();
                trial.state->prefetch();
            }
            trial.write();
            trial.expect_all();
        });
        law("lets exceptions of a pass out", [&] {
            Trial trial{options_};
            int runs = 0;
            require_thrown([&] {
                trial.state->run(offload::Access::update, [&](const auto&) {
                    if (++runs == 2) throw std::runtime_error{"stop"};
                });
            });
            require(runs == 2, "the pass went on after an exception");
        });
        law("lets exceptions of fill() out", [&] {
            const TierRig rig{options_, State::wants_folder};
            State state;
            state.make(rig.context("optimizer", zero::MemoryKind::state), numels);
            require_thrown(
                [&] { state.fill(initial(), [](std::size_t) -> at::Tensor { throw std::runtime_error{"stop"}; }); });
        });
        if constexpr (zero::TierStateByBucket<State, Kept, states>) {
            law("gives one bucket, whichever is asked for", [&] {
                Trial trial{options_};
                for (const std::size_t bucket : {5U, 4U, 0U, 3U, 1U, 2U, 4U}) {
                    trial.state->prefetch_bucket(bucket);
                    trial.update_bucket(bucket);
                }
                trial.expect_all();
                trial.update();
                for (std::size_t bucket = numels.size(); bucket-- > 0;) trial.update_bucket(bucket);
                trial.expect_all();
            });
            law("lets exceptions of one bucket's pass out", [&] {
                Trial trial{options_};
                require_thrown([&] {
                    trial.state->run_bucket(1, offload::Access::update,
                                            [](const auto&) { throw std::runtime_error{"stop"}; });
                });
            });
        }
        law("counts what it keeps", [&] {
            Trial trial{options_};
            require_counts(trial.rig, zero::MemoryKind::state, std::move(trial.state), State::bytes(numels));
        });
        return std::move(*this).failures();
    }

private:
    /// Sizes around those of blocks and windows.
    inline static const std::vector<std::int64_t> numels{1, 70'000, 3, 33'000, 4096, 65'537};

    static std::array<float, states> initial() {
        std::array<float, states> values{};
        for (std::size_t k = 0; k < states; ++k) values[k] = 0.5F + static_cast<float>(k);
        return values;
    }
    template <class Work>
    static void require_thrown(Work&& work) {
        std::string thrown;
        try {
            work();
        } catch (const std::exception& error) {
            thrown = error.what();
        }
        require(thrown == "stop", "it came out as '" + thrown + "'");
    }

    /// One class, and beside it what it must hold.
    struct Trial {
        explicit Trial(const TierConformanceOptions& options) : rig{options, State::wants_folder} {
            state->make(rig.context("optimizer", zero::MemoryKind::state), numels);
            for (const std::int64_t numel : numels) {
                auto& values = expected.emplace_back();
                for (auto& kind : values) kind.resize(static_cast<std::size_t>(numel));
            }
            std::size_t asked = 0;
            state->fill(initial(), [&](std::size_t bucket) {
                require(bucket == asked, "it asked for the weights of bucket " + std::to_string(bucket) +
                                             " in the place of " + std::to_string(asked));
                ++asked;
                return start(bucket);
            });
            require(asked == numels.size(), "it asked for the weights of " + std::to_string(asked) + " buckets of " +
                                                std::to_string(numels.size()));
        }

        at::Tensor start(std::size_t bucket) {
            const at::Tensor weight = at::empty({numels[bucket]}, at::kFloat);
            float* const values = static_cast<float*>(weight.data_ptr());
            for (std::size_t i = 0; i < static_cast<std::size_t>(numels[bucket]); ++i) {
                values[i] = static_cast<float>(i % 251) + static_cast<float>(bucket);
                if (has_master) expected[bucket][states][i] = to_element<Kept>(values[i]);
                for (std::size_t k = 0; k < states; ++k) expected[bucket][k][i] = to_element<Kept>(initial()[k]);
            }
            return weight;
        }

        /// A pass whose runs are looked at before `work` gets them, with what they must hold.
        template <class Work>
        void pass(offload::Access access, Work&& work) {
            pass(0, numels.size(), work, [&](auto&& look) { state->run(access, look); });
        }
        ///   visit  calls what it is given with the runs of the buckets first .. end - 1
        template <class Work, class Run>
        void pass(std::size_t first, std::size_t end_bucket, Work&& work, Run&& visit) {
            std::size_t bucket = first;
            std::int64_t begin = 0;
            visit([&](const auto& run) {
                const std::string due = element_text(bucket, begin);
                require(run.bucket == bucket && run.begin == begin,
                        "a pass gave " + element_text(run.bucket, run.begin) + " where " + due + " was due");
                const std::int64_t end = begin + run.numel;
                require(run.numel > 0 && end <= numels[bucket],
                        "a pass gave " + std::to_string(run.numel) + " elements at " + due);
                require(run.last == (end == numels[bucket]),
                        "a run is wrong about being the last of bucket " + std::to_string(bucket));
                const auto numel = static_cast<std::size_t>(run.numel);
                require(run.weight.size() == (has_master ? numel : 0),
                        "the master has " + std::to_string(run.weight.size()) + " elements at " + due);
                for (const auto& values : run.state) {
                    require(values.size() == numel,
                            "a state has " + std::to_string(values.size()) + " elements at " + due);
                }
                for (std::size_t kind = 0; kind < kinds; ++kind) {
                    if (kind == states && !has_master) continue;
                    const std::span<Kept> values = kind == states ? run.weight : run.state[kind];
                    work(values, std::span{expected[bucket][kind]}.subspan(static_cast<std::size_t>(begin), numel),
                         due);
                }
                bucket += run.last ? 1 : 0;
                begin = run.last ? 0 : end;
            });
            require(bucket == end_bucket, "a pass ended where " + element_text(bucket, begin) + " was due");
        }
        static void expect(std::span<const Kept> values, std::span<const Kept> wanted, const std::string& where) {
            require(std::equal(values.begin(), values.end(), wanted.begin()),
                    "other values than it was given, from " + where + " on");
        }
        void expect_all() {
            pass(offload::Access::read,
                 [](auto values, auto wanted, const std::string& where) { expect(values, wanted, where); });
        }
        static void change(std::span<Kept> values, std::span<Kept> wanted, const std::string& where) {
            expect(values, wanted, where);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] = wanted[i] = to_element<Kept>(to_float(values[i]) * 0.5F + static_cast<float>(i % 7));
            }
        }
        void update() { pass(offload::Access::update, change); }
        void update_bucket(std::size_t bucket) {
            pass(bucket, bucket + 1, change,
                 [&](auto&& look) { state->run_bucket(bucket, offload::Access::update, look); });
        }
        void write() {
            pass(offload::Access::write, [](auto values, auto wanted, const std::string&) {
                for (std::size_t i = 0; i < values.size(); ++i)
                    values[i] = wanted[i] = to_element<Kept>(static_cast<float>(i % 13));
            });
        }

        TierRig rig;
        std::unique_ptr<State> state = std::make_unique<State>();
        std::vector<std::array<std::vector<Kept>, kinds>> expected;  // by bucket
    };
};

template <class Tier, class Element>
class ShardLaws : TierLaws {
    using Shards = typename Tier::template shards<Element>;

public:
    ShardLaws(const TierConformanceOptions& options, const std::string& subject) : TierLaws{options, subject} {}

    std::vector<std::string> run() && {
        using offload::Access;
        law("keep what is written", [&] {
            Trial trial{options_};
            for (std::size_t i = 0; i < numels.size(); ++i) trial.expect(i);
            for (std::size_t i = numels.size(); i-- > 0;) trial.expect(i);
        });
        law("keep what an update leaves", [&] {
            Trial trial{options_};
            for (int round = 0; round < 3; ++round) {
                for (const std::size_t i : std::array<std::size_t, 6>{3, 0, 4, 1, 2, 5}) {
                    trial.expect(i, Access::update);
                    trial.expect(i);
                }
            }
        });
        law("read ahead without a trace", [&] {
            Trial trial{options_};
            for (std::size_t i = 0; i < numels.size(); ++i) {
                for (std::size_t ahead = i + 1; ahead < numels.size(); ++ahead)
                    trial.shards->read_ahead(ahead, Access::read);
                trial.expect(i, Access::update);
            }
            for (std::size_t ahead = 0; ahead < numels.size(); ++ahead) trial.shards->read_ahead(ahead, Access::read);
            for (std::size_t i = numels.size(); i-- > 0;) trial.expect(i);
        });
        law("may be none", [&] {
            const TierRig rig{options_, Shards::wants_folder};
            Shards shards;
            shards.make(rig.context("parameters", zero::MemoryKind::parameters), {});
            require(shards.count() == 0 && shards.reads_ahead() == 0, "none were made, and some are there");
        });
        law("count what they keep", [&] {
            Trial trial{options_};
            require(trial.shards->count() == numels.size(), "count() says " + std::to_string(trial.shards->count()));
            require_counts(trial.rig, zero::MemoryKind::parameters, std::move(trial.shards), Shards::bytes(numels));
        });
        law("count gradients as such, and keep them from one step to the next", [&] {
            Trial trial{options_, zero::MemoryKind::gradients};
            for (int step = 0; step < 2; ++step) {
                for (std::size_t i = numels.size(); i-- > 0;) trial.write(i, static_cast<float>(step + 1));
                for (std::size_t i = 0; i < numels.size(); ++i) trial.expect(i);
            }
            require_counts(trial.rig, zero::MemoryKind::gradients, std::move(trial.shards), Shards::bytes(numels));
        });
        return std::move(*this).failures();
    }

private:
    inline static const std::vector<std::int64_t> numels{30'000, 1, 64, 30'001, 7, 12'345};

    struct Trial {
        explicit Trial(const TierConformanceOptions& options, zero::MemoryKind kind = zero::MemoryKind::parameters)
            : rig{options, Shards::wants_folder}, expected(numels.size()) {
            shards->make(rig.context(std::string{zero::name_of(kind)}.c_str(), kind), numels);
            for (std::size_t i = 0; i < numels.size(); ++i) write(i, 0.0F);
        }
        /// Gives a shard values from `first` on.
        void write(std::size_t shard, float first) {
            const std::span<Element> values = opened(shard, offload::Access::write);
            for (std::size_t k = 0; k < values.size(); ++k)
                values[k] = to_element<Element>(static_cast<float>((k + shard) % 251) + first);
            expected[shard].assign(values.begin(), values.end());
            shards->close(shard, offload::Access::write);
        }
        std::span<Element> opened(std::size_t shard, offload::Access access) {
            const std::span<Element> values = shards->open(shard, access);
            require(std::ssize(values) == numels[shard],
                    "shard " + std::to_string(shard) + " has " + std::to_string(values.size()) + " elements");
            return values;
        }
        /// Looks at a shard, and gives it other values with Access::update.
        void expect(std::size_t shard, offload::Access access = offload::Access::read) {
            const std::span<Element> values = opened(shard, access);
            require(std::equal(values.begin(), values.end(), expected[shard].begin()),
                    "shard " + std::to_string(shard) + " has other values than it was given");
            if (access == offload::Access::update) {
                for (Element& value : values) value = to_element<Element>(to_float(value) + 1.0F);
                expected[shard].assign(values.begin(), values.end());
            }
            shards->close(shard, access);
        }

        TierRig rig;
        std::unique_ptr<Shards> shards = std::make_unique<Shards>();
        std::vector<std::vector<Element>> expected;
    };
};

}  // namespace detail

/// What a tier does otherwise than zero::TierState and zero::TierShards promise, a sentence each; empty if it conforms.
/// Needs no test framework: `assert(strata::testing::tier_failures<MyTier>().empty());`
///
/// Everything is host memory here: of a class whose memory is the device's this tries it on the CPU. That a call which
/// fails on one rank alone says so with fails_alone is for a test of one's own, with a disk or a network that fails.
template <OffloadTier Tier>
[[nodiscard]] std::vector<std::string> tier_failures(const TierConformanceOptions& options = {}) {
    std::vector<std::string> all;
    const auto add = [&](std::vector<std::string> failures) {
        all.insert(all.end(), failures.begin(), failures.end());
    };
    add(detail::StateLaws<Tier, float, 2, true>{options, "state<float, 2, true>"}.run());
    add(detail::StateLaws<Tier, float, 1, false>{options, "state<float, 1, false>"}.run());
    add(detail::StateLaws<Tier, bf16, 2, false>{options, "state<bf16, 2, false>"}.run());
    add(detail::ShardLaws<Tier, float>{options, "shards<float>"}.run());
    add(detail::ShardLaws<Tier, bf16>{options, "shards<bf16>"}.run());
    return all;
}

}  // namespace strata::testing
