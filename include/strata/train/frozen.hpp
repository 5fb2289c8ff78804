#pragma once
// strata/train/frozen.hpp - Frozen<Model, Policies...>: a model that only computes, sharded as its policies say.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/comm/agree.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/core/rule.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/compute.hpp>
#include <strata/train/session.hpp>
#include <strata/train/unit_rules.hpp>
#include <strata/zero/buffers.hpp>
#include <strata/zero/engine.hpp>

namespace strata {
namespace detail {

/// Prints a broken rule's sentence.
template <class Broken>
struct SentenceOf {
    static_assert(sizeof(typename Broken::Report) > 0);
};
template <>
struct SentenceOf<rule::None> {};

/// A composition without what only training has: no optimizer state and no gradients, wherever they were to be kept, and no average.
template <class Setup>
struct ComputesOnly : Setup {
    using offload = OffloadTarget<Device>;
    using gradient_offload = OffloadTarget<Device, Gradients>;
    using timing = Update<AfterBackward>;
    using averaging = NoEma;
};

}  // namespace detail

/// What a Frozen model can be told; names and meanings are those of zero::EngineOptions.
struct FrozenOptions {
    std::int64_t prefetch_bucket_bytes = -1;  ///< ZeroStage<3>
    std::int64_t max_live_parameters = 0;     ///< ZeroStage<3>
    std::string excepted_parameters{};        ///< Precision<Format, Except<Other>>
    zero::TierOptions tiers{};                ///< OffloadTarget<Nvme, Parameters>: nvme_path, units

    static void describe(auto& option) {
        option("prefetch_bucket_bytes", &FrozenOptions::prefetch_bucket_bytes, ranges::bytes_ahead,
               {.help = "Bytes of units that are gathered ahead of their use, at most; 0 gathers none ahead",
                .special = "-1 takes the largest unit"});
        option("max_live_parameters", &FrozenOptions::max_live_parameters, ranges::size,
               {.help = "No unit is gathered ahead while more parameters of units than this would be whole at once",
                .special = "0 is no bound"});
        option("excepted_parameters", &FrozenOptions::excepted_parameters,
               "Of a precision with exceptions: parts of the names of parameters that keep the other number format");
        option.part("tiers", &FrozenOptions::tiers, "");
    }
    void check(OptionCheck& check) const { check.described(*this); }
};

/// A model beside those that are trained: the teacher of a distillation, an encoder, a network that a loss looks through. It has
/// its parameters in the setup's precision and nothing else, no gradients and no optimizer state: under ZeroStage<3> each rank
/// has its share of units, which are gathered while they compute, and with OffloadTarget<Nvme, Parameters> those shares are on disk.
///
///   Frozen<Teacher, ZeroStage<3>, Precision<Bf16>> teacher{session, std::make_shared<Teacher>(...)};
///   ... in the student's loss(): const auto target = teacher(batch.x);
///
/// The model whose loss() uses it holds it by reference: registered there, it would be taken for a part that is trained. Under
/// ZeroStage<3> its calls are collective, as forward passes are: every rank makes the same ones in the same order.
///
///   Model     a torch::nn::Module; ZeroStage<3> wants it to name its units
///   Policies  as for Trainer: ZeroStage, Precision, OffloadTarget<Tier, Parameters>. What is about training has no effect
template <class Model, class... Policies>
class Frozen {
public:
    using setup = Setup<Policies...>;

private:
    using Wrong = rule::first_broken_t<rule::ModelHasUnits<typename setup::sharding, Model>>;
    static_assert(sizeof(detail::SentenceOf<Wrong>) > 0);

public:
    /// Freezes the model, switches it to evaluation and takes it over: its parameters and buffers get the values of rank 0. Collective. Throws
    /// Error: bad_parameter, bad_value, rank_mismatch, not_enough_memory; with OffloadTarget<Nvme, Parameters> also bad_reference,
    /// no_space, swap_in_use, swap_lock_timeout, io_failed.
    Frozen(Session& session, std::shared_ptr<Model> model, const FrozenOptions& options = {})
        : compute_{session.template ranks<typename Compute::Ranks>()},
          model_{train::with_buffers_taken(frozen(std::move(model)), compute_)},
          engine_{compute_.comm(), zero::parameters_of(*model_), engine_options(session, options), compute_.device()} {}
    Frozen(Session& session, Model model, const FrozenOptions& options = {})
        : Frozen{session, std::make_shared<Model>(std::move(model)), options} {}

    /// model().forward(args...), of which no graph is recorded.
    template <class... Args>
    auto operator()(Args&&... args) {
        const at::NoGradGuard no_grad;
        try {
            return model_->forward(std::forward<Args>(args)...);
        } catch (const c10::Error& error) {
            zero::explain_mixed_types(error, zero::tensors_of(*model_),
                                      zero::detail::dtype_v<typename setup::precision::element>);
            throw;
        }
    }

    /// For its other members, and for a loss whose gradient goes through it: its own parameters get none.
    [[nodiscard]] Model& model() noexcept { return *model_; }
    /// Where the model is, and where its inputs must be.
    [[nodiscard]] at::Device device() const { return compute_.device().device(); }
    /// Calls `body` while all parameters are whole on every rank: Trainer::with_whole_model(). Collective.
    template <class Body>
    void with_whole_model(Body&& body) {
        engine_.with_whole_model(std::forward<Body>(body));
    }
    /// Bytes that it takes on this rank.
    [[nodiscard]] const zero::MemoryMeter& memory() const noexcept { return engine_.memory(); }

private:
    using Compute = train::compute_of_t<setup>;
    using Engine = zero::Engine<detail::ComputesOnly<setup>, typename Compute::Comm, typename Compute::Device>;

    static std::shared_ptr<Model> frozen(std::shared_ptr<Model> model) {
        for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
        model->eval();
        return model;
    }
    static typename Engine::Options engine_options(Session& session, const FrozenOptions& given) {
        comm::agree(session.comm(), [&] {
            OptionCheck check;
            given.check(check);
            check.finish();
        });
        typename Engine::Options options;
        options.computes_only = true;
        options.tiers = given.tiers;
        options.excepted_parameters = given.excepted_parameters;
        options.prefetch_bucket_bytes = given.prefetch_bucket_bytes;
        options.max_live_parameters = given.max_live_parameters;
        return options;
    }

    Compute compute_;
    std::shared_ptr<Model> model_;
    Engine engine_;
};

}  // namespace strata
