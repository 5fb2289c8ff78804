#pragma once
// strata/options/train_options.hpp - TrainOptions: the numbers of a run that are chosen when it starts; the root of their tree.

#include <chrono>
#include <cstdint>
#include <string>

#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/options/adapter_options.hpp>
#include <strata/options/ema_options.hpp>
#include <strata/options/engine_options.hpp>
#include <strata/options/export_options.hpp>
#include <strata/options/gradient_norms_options.hpp>
#include <strata/options/health_options.hpp>
#include <strata/options/run_length.hpp>
#include <strata/options/schedule.hpp>

namespace strata {

///   Rule     the update rule, whose own numbers are in `engine.update`
///   Average  the options of the averaging policy, in `engine.ema`
///   Adapter  those of the policy about adapters
template <zero::HasOptions Rule, class Average = optim::EmaOptions, class Adapter = train::NoAdapterOptions>
struct TrainOptions {
    std::int64_t max_steps = 1000;  ///< optimizer steps in all, those of resumed runs included
    std::uint64_t seed = 42;
    optim::Schedule schedule{};  ///< learning rate by optimizer step; its total is max_steps unless it says more
    zero::EngineOptions<Rule, Average> engine{};   ///< its rounding_seed is this seed
    Adapter adapter{};                             ///< Adapter<Kind>: what it is like, and which layers have one
    std::chrono::seconds collective_timeout{600};  ///< a rank that waits longer for the others ends the job
    std::int64_t checkpoint_every = 0;             ///< steps; 0 saves at the end and on a stop signal only
    std::int64_t checkpoints_kept = 5;             ///< older ones are removed
    bool reserve_checkpoint_room = true;           ///< room for one checkpoint is kept on the disk while training
    train::GradientNormsOptions gradient_norms{};  ///< in metrics.jsonl, by layer
    train::ExportOptions exported{};               ///< the weights that a complete run ends with
    health::HealthOptions health{};  ///< of this rank's GPU and host; of a session's trainers those of the first count
    std::string name{};              ///< of a trainer with others in its session: it works in OUTPUT/NAME

    /// The name is the program's to give.
    static void describe(auto& option) {
        using T = TrainOptions;
        option("max_steps", &T::max_steps, {1}, "Optimizer steps of the run, those of resumed runs included");
        option("seed", &T::seed, {0}, "Start of every random sequence; equal seeds give equal runs");
        option.part("schedule", &T::schedule, "lr_");
        option.part("engine", &T::engine, "");
        option.part("adapter", &T::adapter, "adapter_");
        option("collective_timeout", &T::collective_timeout, ranges::timeout_s,
               {.help = "Seconds that a rank waits for the others before it ends the job and says who is missing",
                .unit = "seconds"});
        option("checkpoint_every", &T::checkpoint_every, ranges::count,
               {.help = "Optimizer steps between checkpoints",
                .special = "0 saves at the end and when asked to stop only",
                .key = "checkpoint_step_interval"});
        option("checkpoints_kept", &T::checkpoints_kept, ranges::positive,
               {.help = "Newest checkpoints that are kept", .key = "checkpoints_total_limit"});
        option.part("gradient_norms", &T::gradient_norms, "gradient_norms_");
        option.part("exported", &T::exported, "export_");
        option.part("health", &T::health, "health_");
        option("reserve_checkpoint_room", &T::reserve_checkpoint_room,
               "Room for one checkpoint is kept on the disk while training");
    }

    /// Everything, and how the schedule goes with the run's length.
    ///
    ///   run  max_steps, and what a person calls it
    void check(OptionCheck& check, const optim::RunLength& run) const {
        if (max_steps >= 1) check.inside("schedule", [&] { schedule.check(check, run); });
        check.described(*this);
    }
};

}  // namespace strata
