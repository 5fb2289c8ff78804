#pragma once
// strata/train/step_pass.hpp - StepPass: the micro-batches of one optimizer step, and what ranks tell one another of them.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/error.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/ranks_together.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/step_failure.hpp>
#include <strata/train/step_samples.hpp>
#include <strata/train/stragglers.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/tensors_in.hpp>

namespace strata::train {

/// What all ranks know of a step's micro-batches.
struct StepSums {
    double loss = 0;           ///< mean over ranks and micro-batches
    bool stop = false;         ///< a rank was asked to stop
    double seconds = 0;        ///< rank 0's
    double data_wait = 0;      ///< seconds in which the rank that waited longest waited for its batches
    std::int64_t samples = 0;  ///< of all ranks; 0: as many as the plan says
    std::vector<RankTimes> ranks{};
};

namespace detail {

/// What one rank tells the others at the end of its micro-batches. Plain bytes.
struct RankShare {
    double loss = 0;  // sum of its micro-batches
    double seconds = 0;
    double stop = 0;  // 1: yes; so is the next
    double failed = 0;
    RankTimes times{};
};

}  // namespace detail

/// What a step's micro-batches are run with.
struct StepPassSettings {
    std::uint64_t seed;
    int micro_batches;  ///< a step
    at::Device device;
    std::string who;                                   ///< "step 7 on rank 1"
    std::function<void(const c10::Error&)> explain{};  ///< throws an Error in the place of libtorch's, if it can
};

/// Runs one step's micro-batches forward and backward. A rank that fails says so at the end of the step, when all ranks meet
/// anyway, and gives zeros for gradients until then. Where forward passes are collective, they meet before each instead.
///
///   Comm    of the session
///   Model   with loss(batch)
///   Engine  with backward(), backward_without_loss(), gathers_units(), step_count() and a compute_device
template <class Comm, class Model, class Engine>
class StepPass {
public:
    using Batch = typename Model::Batch;
    static constexpr bool on_host = Engine::compute_device::is_host;

    StepPass(Comm& comm, Model& model, Engine& engine, RanksTogether& together, StepPassSettings settings)
        : comm_{comm},
          model_{model},
          engine_{engine},
          together_{together},
          settings_{std::move(settings)},
          failure_{settings_.who} {}

    /// Collective. Throws on all ranks what failed on one, where ranks can tell one another.
    ///
    ///   stop     asked when all micro-batches are done: this rank is to stop
    ///   seconds  on the rank's clock; asked then, too, and around each batch
    ///   worked   asked then: RankTimes::work
    template <class Source, std::invocable Stop, std::invocable Seconds, std::invocable Worked>
    [[nodiscard]] StepSums run(Source& source, Stop&& stop, Seconds&& seconds, Worked&& worked) {
        for (int i = 0; i < settings_.micro_batches; ++i) {
            const std::int64_t micro_batch = engine_.step_count() * settings_.micro_batches + i;
            seed_generators(mixed_seed(settings_.seed, micro_batch, comm_.rank(), comm_.world()));
            run_one(next_of(source, seconds));
        }
        const detail::RankShare mine{.loss = sum_,
                                     .seconds = seconds(),
                                     .stop = stop() ? 1.0 : 0.0,
                                     .failed = failure_ ? 1.0 : 0.0,
                                     .times = {.work = worked(), .data_wait = waited_}};
        std::vector<detail::RankShare> all(static_cast<std::size_t>(comm_.world()));
        with_others([&] {
            comm::host_of(comm_).all_gather(std::as_bytes(std::span{&mine, 1}), std::as_writable_bytes(std::span{all}));
        });
        return together_sums(all);
    }

    /// What this rank knows of the samples it saw.
    [[nodiscard]] const StepSamples& samples() const noexcept { return samples_; }

private:
    [[nodiscard]] StepSums together_sums(const std::vector<detail::RankShare>& all) {
        StepSums sums{.loss = all[0].loss, .seconds = all[0].seconds};
        double failed = all[0].failed;
        for (std::size_t rank = 1; rank < all.size(); ++rank) {  // in the order of the ranks: the same bits everywhere
            sums.loss += all[rank].loss;
            failed += all[rank].failed;
        }
        if (failed > 0) throw_shared();
        sums.loss /= static_cast<double>(comm_.world()) * settings_.micro_batches;
        for (const detail::RankShare& one : all) {
            sums.stop = sums.stop || one.stop > 0;
            sums.data_wait = std::max(sums.data_wait, one.times.data_wait);
            sums.ranks.push_back(one.times);
        }
        return sums;
    }

    template <class Source, class Seconds>
    [[nodiscard]] std::optional<Batch> next_of(Source& source, Seconds& seconds) {
        std::optional<Batch> batch;
        failure_.guard([&] {
            const double asked = seconds();
            batch.emplace(source.next());
            waited_ += seconds() - asked;
            if constexpr (!on_host) move_batch(*batch, settings_.device);
        });
        return batch;
    }

    void run_one(const std::optional<Batch>& batch) {
        if (engine_.gathers_units()) {
            end_if_shared(comm_, together_, failure_);
            together_.part();
        } else if (failure_) {
            return with_others([&] { engine_.backward_without_loss(); });
        }
        bool in_backward = false;
        failure_.guard([&] {
            const at::Tensor loss = loss_of(*batch);
            in_backward = true;
            engine_.backward(loss);
            note(*batch, loss.template item<double>());  // after it: a device computes while backward is queued
        });
        if (failure_ && engine_.gathers_units()) std::rethrow_exception(failure_.exception());
        if (failure_ && !in_backward) with_others([&] { engine_.backward_without_loss(); });
    }

    void note(const Batch& batch, double loss) {
        sum_ += loss;
        if constexpr (NamesItsSamples<Batch>) samples_.add(batch.samples, std::isfinite(loss));
    }

    [[nodiscard]] at::Tensor loss_of(const Batch& batch) {
        try {
            return model_.loss(batch);
        } catch (const c10::Error& error) {
            zero::detail::explain_missing_memory(error);
            if (settings_.explain) settings_.explain(error);
            if constexpr (!on_host && !zero::holds_tensors_v<Batch>)
                zero::detail::explain_unseen_batch(error, settings_.device);
            throw;
        }
    }

    [[noreturn]] void throw_shared() {
        std::optional<Error> error;
        with_others([&] { error = failure_.told(comm_); });
        failure_.throw_as(*error);
    }

    /// What this rank met says more than that it then lost the others.
    template <std::invocable Work>
    void with_others(Work&& work) {
        try {
            together_.through(std::forward<Work>(work));
        } catch (...) {
            if (failure_) std::rethrow_exception(failure_.exception());
            throw;
        }
    }

    Comm& comm_;
    Model& model_;
    Engine& engine_;
    RanksTogether& together_;
    StepPassSettings settings_;
    StepFailure failure_;
    StepSamples samples_;
    double sum_ = 0;
    double waited_ = 0;
};

}  // namespace strata::train
