#pragma once
// strata/config/intent.hpp - Intent: what a configuration asks for, in strata's own words, whatever format it was in.
//
// Every front door (DeepSpeed, Accelerate, SimpleTuner) makes one of these; what chooses a trainer, writes C++ or
// converts to another format reads it. It is plain data: two that ask for the same are equal.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/options/deepspeed_schedules.hpp>

namespace strata::config {

/// The tiers that strata brings (policy/tier.hpp).
enum class TierName : std::uint8_t { device, cpu, nvme };

/// Where something is kept: all of it on `first`, or `percent` of 100 elements there and the rest on `second`.
struct KeptOn {
    TierName first = TierName::device;
    TierName second = TierName::device;  ///< `first` where percent is 100
    int percent = 100;                   ///< 0 to 100

    [[nodiscard]] static constexpr KeptOn all_on(TierName tier) noexcept { return {tier, tier, 100}; }
    /// Whether anything is kept on that tier.
    [[nodiscard]] constexpr bool uses(TierName tier) const noexcept {
        return (percent > 0 && first == tier) || (percent < 100 && second == tier);
    }
    friend constexpr bool operator==(const KeptOn&, const KeptOn&) = default;
};
static_assert(KeptOn{TierName::cpu, TierName::nvme, 30}.uses(TierName::nvme));

/// The update rules that strata brings (policy/optimizer.hpp).
enum class RuleName : std::uint8_t { adagrad, adam, adamw, lamb, lion, sgd };
/// The number formats that strata brings (policy/precision.hpp).
enum class FormatName : std::uint8_t { fp32, bf16, fp16, pure_bf16 };
/// Where a moving average of the weights is kept, if there is one (policy/ema.hpp).
enum class AverageName : std::uint8_t { none, cpu, device };
/// When gradients change parameters (policy/update.hpp).
enum class MomentName : std::uint8_t { after_backward, in_backward };

/// The kinds of adapter that strata brings (policy/adapter.hpp), and none: every weight is trained.
enum class AdapterName : std::uint8_t { none, lora, lokr };
/// What weights that are not trained are kept in (policy/frozen_weights.hpp).
enum class FrozenName : std::uint8_t { as_computed, int8, nf4 };

// As C++ has them: "Nvme", "Split<Cpu, Nvme, 30>", "AdamW", "PureBf16".
[[nodiscard]] std::string type_name(TierName tier);
[[nodiscard]] std::string type_name(const KeptOn& kept);
[[nodiscard]] std::string type_name(RuleName rule);
[[nodiscard]] std::string type_name(FormatName format);
[[nodiscard]] std::string type_name(AdapterName adapter);  ///< "Lora"; of none "NoAdapter"
[[nodiscard]] std::string type_name(FrozenName frozen);    ///< "Nf4"; of as_computed "AsComputed"

/// The policies of a trainer. What a configuration does not say is empty, and left to the program or to another file.
struct Composition {
    std::optional<int> stage{};             ///< ZeroStage<N>: 0 to 3
    std::optional<KeptOn> state{};          ///< OffloadTarget<Tier>: the update rule's state and the master weights
    std::optional<KeptOn> parameters{};     ///< OffloadTarget<Tier, Parameters>; of effect at stage 3 only
    std::optional<RuleName> rule{};         ///< Optimizer<Rule>
    std::optional<FormatName> precision{};  ///< Precision<Format>
    std::optional<int> recompute{};         ///< Recompute<...>: 0 nothing, 1 every block, N one of N
    std::optional<AverageName> average{};   ///< Ema<Tier>
    std::optional<KeptOn> gradients{};      ///< OffloadTarget<Tier, Gradients>: their sums; of effect from stage 2 on
    std::optional<MomentName> moment{};     ///< Update<When>
    std::optional<AdapterName> adapter{};   ///< Adapter<Kind>
    std::optional<FrozenName> frozen{};     ///< FrozenWeights<Format>, of weights under an adapter

    /// What is said in `above`, and what is said here where that is silent.
    [[nodiscard]] Composition under(const Composition& above) const;
    /// With strata's default for every policy that is not said (policy/slots.hpp).
    [[nodiscard]] Composition completed() const;
    friend bool operator==(const Composition&, const Composition&) = default;
};

/// As the arguments of Setup<> and Trainer<>: "ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>"; what is not said, and
/// what is the default of its slot, is left out. Empty: Setup<>.
[[nodiscard]] std::string policies(const Composition& composition);

/// The value of an option.
using OptionScalar = std::variant<bool, std::int64_t, double, std::string>;

/// A number for the tree of options that strata::TrainOptions is the root of, and where a person gave it.
struct OptionValue {
    std::string path;  ///< of members: "engine.max_grad_norm", "schedule.lr", "engine.update.beta1"
    OptionScalar value;
    std::string place;  ///< "ds_config.json:3:26", "--gradient_clipping"; not compared

    friend bool operator==(const OptionValue& a, const OptionValue& b) {
        return a.path == b.path && a.value == b.value;
    }
};

/// A schedule of DeepSpeed's by its own type (options/deepspeed_schedules.hpp); none: the options' own schedule.* decide.
using RateIntent = std::variant<std::monostate, optim::WarmupLr, optim::WarmupDecayLr, optim::WarmupCosineLr,
                                optim::OneCycle, optim::LrRangeTest>;

/// How many samples make an optimizer step. Accumulation is an option: engine.gradient_accumulation_steps.
struct BatchIntent {
    std::optional<std::int64_t> global{};  ///< samples of one optimizer step on all ranks
    std::optional<std::int64_t> micro{};   ///< samples of one rank in one micro-batch
    friend bool operator==(const BatchIntent&, const BatchIntent&) = default;
};

/// Where ranks are to run; what `strata launch` takes. None of it changes what is computed.
struct LaunchIntent {
    std::optional<std::int64_t> ranks{};  ///< of all machines together
    std::optional<std::int64_t> machines{};
    std::optional<std::int64_t> machine_rank{};
    std::string main_address{};  ///< of rank 0's machine
    std::optional<std::int64_t> main_port{};
    std::string hostfile{};  ///< a path
    std::string include{};   ///< DeepSpeed's filters of hosts and slots
    std::string exclude{};
    std::string gpus{};  ///< of this machine, as CUDA_VISIBLE_DEVICES has them: "2,3"; empty: all
    friend bool operator==(const LaunchIntent&, const LaunchIntent&) = default;
};

/// A key that says "auto": who runs the configuration decides.
struct Automatic {
    std::string key;  ///< "optimizer.params.lr"
    std::string to;   ///< what it is about: "schedule.lr", "ZeroStage<N>"
    friend bool operator==(const Automatic&, const Automatic&) = default;
};

/// What is asked for.
struct Intent {
    Composition composition{};
    std::vector<OptionValue> options{};  ///< each path once, in the order of the configuration
    RateIntent rate{};
    /// The rate's highest value was not said, and is that of `schedule.lr`.
    bool rate_follows_lr = false;
    BatchIntent batch{};
    LaunchIntent launch{};
    std::vector<Automatic> automatic{};
    /// Files that were named and are not there: what they would have said is missing here. Who trains refuses them.
    std::vector<std::string> missing_files{};

    /// In place of what the path was given before.
    void set(std::string path, OptionScalar value, std::string place = {});
    [[nodiscard]] const OptionValue* find(std::string_view path) const noexcept;
    /// The option as a number; nothing where it is not given, or is none.
    [[nodiscard]] std::optional<double> number(std::string_view path) const;
    /// Whatever the order of options.
    friend bool operator==(const Intent& a, const Intent& b) { return a.same_as(b); }

private:
    [[nodiscard]] bool same_as(const Intent& other) const;
};

/// `above` over `base`: what it says goes before, everything else stays.
[[nodiscard]] Intent overlay(const Intent& base, const Intent& above);

/// The three numbers of a batch, once the number of ranks is known.
struct Batch {
    std::int64_t micro = 1;         ///< samples of one rank in one micro-batch
    std::int64_t accumulation = 1;  ///< micro-batches of one optimizer step
    std::int64_t global = 1;        ///< micro x accumulation x ranks
};
/// Completes what was given as DeepSpeed does. Throws Errc::bad_value, with the three ways to mend it, for numbers that
/// do not go together on so many ranks.
///
///   ranks     >= 1
///   fallback  samples of a micro-batch where neither micro nor global is given
[[nodiscard]] Batch batch_on(const Intent& intent, std::int64_t ranks, std::int64_t fallback = 1);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/intent.ipp>
#endif
