#pragma once
// strata/train/evaluation.hpp - Evaluation: the loss on data that is not trained on, the same way each time.

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/communicator.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/buffer_copies.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/named_loss.hpp>
#include <strata/train/ranks_together.hpp>
#include <strata/train/seed.hpp>
#include <strata/train/step_failure.hpp>

namespace strata::train {

/// A model that says how it is judged: `evaluation_loss(batch)`, a scalar, the mean over the batch's samples, without any
/// randomness but what follows from the samples themselves, so that it is the same in every batch and on every rank. A model that
/// says nothing is judged by loss(batch), with generators seeded by the place of the micro-batch.
template <class M>
concept JudgesItself = requires(M& model, const typename M::Batch& batch) {
    { model.evaluation_loss(batch) } -> std::convertible_to<at::Tensor>;
};

/// A source whose micro-batches are not all of one size says how many samples of this rank count in each; 0 where there
/// is a batch only because other ranks have one.
template <class S>
concept CountsItsSamples = requires(const S& source, std::int64_t micro_batch) {
    { source.samples_in(micro_batch) } -> std::convertible_to<std::int64_t>;
};

/// Sets that are evaluated every so many steps, by the names they have in the log.
class Evaluations {
public:
    /// () -> losses, the same on every rank; collective.
    using Call = std::function<std::vector<NamedLoss>()>;

    /// Local. Throws bad_value: steps below 0, no name or one with characters that file names have not, a name twice.
    void add(std::int64_t steps, const std::string& name, Call call);
    [[nodiscard]] bool any_due(std::int64_t step, std::int64_t last_step) const noexcept;
    /// What is due after `step`, in the order of add(). Collective.
    [[nodiscard]] std::vector<NamedLoss> due(std::int64_t step, std::int64_t last_step) const;

private:
    struct Set {
        std::int64_t steps;
        std::string name;
        Call call;
    };
    std::vector<Set> sets_;
};

/// "step 100: faces 0.2513"
[[nodiscard]] std::string evaluation_line(std::int64_t step, const NamedLoss& loss);

/// What evaluated() is told besides.
struct EvaluationSettings {
    std::uint64_t seed = 0;
    at::Device device = at::kCPU;
    bool gathers_units = false;  ///< forward passes are collective
    std::string who;             ///< for a failure: "the evaluation of 'faces'"
};

/// The mean loss over the samples of an epoch of a source, from its first micro-batch on, in evaluation mode and
/// without gradients. Afterwards the model is in training mode and its buffers are as they were.
///
///   Model   with loss(batch), and evaluation_loss(batch) if it judges itself
///   source  this rank's batches; sought to 0. Each counts by its samples if the source says how many they are
///           (CountsItsSamples), else all count the same
/// Collective. Throws on all ranks what failed on one; in a model whose forward passes are collective, that rank's failure parts the ranks.
template <comm::Communicator Comm, class Model, class Source>
[[nodiscard]] double evaluated(Comm& comm, Model& model, Source& source, RanksTogether& together,
                               const EvaluationSettings& settings) {
    using Batch = typename Model::Batch;
    const at::NoGradGuard no_gradients;
    StepFailure failure{settings.who};
    const auto micro_batches = static_cast<std::int64_t>(source.micro_batches_per_epoch());
    std::array<double, 2> sums{};  // of losses times samples, and of samples
    BufferCopies buffers{model.buffers()};
    buffers.take();
    model.eval();
    failure.guard([&] { source.seek(0); });
    for (std::int64_t i = 0; i < micro_batches; ++i) {
        std::optional<Batch> batch;
        double samples = 1;
        failure.guard([&] {
            if constexpr (CountsItsSamples<Source>) samples = static_cast<double>(source.samples_in(i));
            batch.emplace(source.next());
            move_batch(*batch, settings.device);
        });
        if (settings.gathers_units) {
            end_if_shared(comm, together, failure);
            together.part();
        }
        if (samples == 0 && !settings.gathers_units) continue;
        failure.guard([&] {
            seed_generators(mixed_seed(~settings.seed, i, comm.rank(), comm.world()));
            at::Tensor loss;
            if constexpr (JudgesItself<Model>)
                loss = model.evaluation_loss(*batch);
            else
                loss = model.loss(*batch);
            const double value = loss.template item<double>();
            if (samples == 0) return;
            sums[0] += samples * value;
            sums[1] += samples;
        });
        if (failure && settings.gathers_units) std::rethrow_exception(failure.exception());
    }
    model.train();
    buffers.put_back();
    end_if_shared(comm, together, failure);
    together.through([&] { comm.all_reduce_sum(std::span<double>{sums}); });
    return sums[0] / sums[1];
}

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/evaluation.ipp>
#endif
