#pragma once
// strata/train/options.hpp - the numbers of a run that are chosen when it starts.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <strata/optim/ema.hpp>
#include <strata/optim/loss_scale.hpp>
#include <strata/optim/schedule.hpp>
#include <strata/zero/engine_options.hpp>

namespace strata {

using zero::OnNonFinite;

///   Rule  the update rule, whose own numbers are in `update`
template <class Rule>
struct TrainOptions {
    std::int64_t max_steps = 1000;          ///< optimizer steps in all, those of resumed runs included
    std::uint64_t seed = 42;
    optim::Schedule schedule{};             ///< learning rate by optimizer step; its total is max_steps unless it says more
    typename Rule::Options update{};
    std::vector<zero::ParameterGroup<Rule>> groups{};  ///< parameters with settings of their own
    int gradient_accumulation_steps = 1;    ///< micro-batches a step
    double max_grad_norm = 0;               ///< global L2 norm gradients are clipped to; 0 leaves them
    double max_grad_value = 0;              ///< instead: what every element of the mean gradient is clamped to; 0 leaves them
    OnNonFinite on_non_finite = OnNonFinite::stop;  ///< of a step whose loss or gradients are not finite
    std::int64_t non_finite_limit = 10;     ///< OnNonFinite::skip: steps in a row that are skipped at most
    optim::LossScaleOptions loss_scale{};   ///< Precision<Fp16>
    optim::EmaSchedule ema{};               ///< Ema<>: the average's decay by optimizer step
    std::int64_t ema_interval = 1;          ///< Ema<>: steps between updates of the average
    std::filesystem::path nvme_path{};      ///< OffloadTarget<Nvme>: a folder on a local disk, which must exist
    std::chrono::seconds nvme_lock_timeout{60};  ///< OffloadTarget<Nvme>: how long another run may keep that folder's lock
    std::size_t nvme_buffer_bytes = 0;      ///< OffloadTarget<Nvme>: of host memory, on each rank; 0 chooses
    std::int64_t bucket_numel = 0;          ///< elements of a gradient bucket outside units; 0 takes the engine's default
    std::int64_t prefetch_bucket_bytes = -1;  ///< ZeroStage<3>: of units, gathered ahead at most; -1: the largest unit, 0: none
    std::int64_t max_live_parameters = 0;   ///< ZeroStage<3>: no unit is gathered ahead beyond it; 0: no such bound
    std::chrono::seconds collective_timeout{600};  ///< a rank that waits longer for the others ends the job
    std::int64_t checkpoint_every = 0;      ///< steps; 0 saves at the end and on a stop signal only
    std::int64_t checkpoints_kept = 5;      ///< older ones are removed
    bool reserve_checkpoint_room = true;    ///< room for one checkpoint is kept on the disk while training
    std::string name{};                     ///< of a trainer with others in its session: it works in OUTPUT/NAME
};

}  // namespace strata
