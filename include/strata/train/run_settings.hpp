#pragma once
// strata/train/run_settings.hpp - RunSettings: what a run reads of a composition and its options.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <ATen/core/Tensor.h>

#include <strata/adapters/saved_adapter.hpp>
#include <strata/checkpoint/facts.hpp>
#include <strata/options/adapter_options.hpp>
#include <strata/options/export_options.hpp>
#include <strata/options/gradient_norms_options.hpp>
#include <strata/options/schedule.hpp>
#include <strata/train/adapter_facts.hpp>
#include <strata/train/options.hpp>
#include <strata/train/run_plan.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::train {

namespace detail {

constexpr adapters::FileNaming naming_of(AdapterNames names) noexcept {
    switch (names) {
        case AdapterNames::kohya:
            return adapters::FileNaming::kohya;
        case AdapterNames::comfyui:
            return adapters::FileNaming::comfyui;
        case AdapterNames::diffusers:
            break;
    }
    return adapters::FileNaming::peft;
}

}  // namespace detail

/// TrainOptions without the template arguments that they have, and facts of the composition.
struct RunSettings {
    std::int64_t max_steps = 0;
    std::uint64_t seed = 0;
    optim::Schedule schedule{};
    int micro_batches = 1;  ///< a step
    std::int64_t checkpoint_every = 0;
    std::int64_t checkpoints_kept = 0;
    bool reserve_checkpoint_room = false;
    GradientNormsOptions gradient_norms{};
    ExportOptions exported{};
    double straggler_factor = 1;  ///< HealthOptions'; so is the next
    int straggler_steps = 1;
    /// Adapters are trained, and what their files say; none: all weights are.
    std::optional<adapters::SaveAdapterOptions> adapter{};
    checkpoint::Facts adapter_facts{};    ///< of the same; empty: none are trained
    std::filesystem::path begins_with{};  ///< the file that adapters have their first values of; empty: none
    std::string name{};

    bool averages = false;             ///< the engine keeps an average of the weights
    bool trains_adapters = false;      ///< beside frozen weights, which checkpoints do not hold
    bool updates_in_backward = false;  ///< and wants to know the learning rate before
    at::ScalarType parameter_type = at::kFloat;
    std::string precision{};
    std::string state_names{};  ///< of the update rule, with commas between
};

///   options  as validate() returns them
template <class Setup>
[[nodiscard]] RunSettings run_settings(const train_options_t<Setup>& options) {
    RunSettings settings{.max_steps = options.max_steps,
                         .seed = options.seed,
                         .schedule = options.schedule,
                         .micro_batches = options.engine.gradient_accumulation_steps,
                         .checkpoint_every = options.checkpoint_every,
                         .checkpoints_kept = options.checkpoints_kept,
                         .reserve_checkpoint_room = options.reserve_checkpoint_room,
                         .gradient_norms = options.gradient_norms,
                         .exported = options.exported,
                         .straggler_factor = options.health.straggler_factor,
                         .straggler_steps = options.health.straggler_steps,
                         .name = options.name,
                         .averages = Setup::averaging::enabled,
                         .trains_adapters = Setup::adaptation::enabled,
                         .updates_in_backward = Setup::timing::in_backward,
                         .parameter_type = zero::detail::dtype_v<typename Setup::precision::element>,
                         .precision = std::string{precision_name<typename Setup::precision>()}};
    if constexpr (Setup::adaptation::enabled) {
        settings.begins_with = options.adapter.init;
        settings.adapter_facts = adapter_facts(options.adapter);
        settings.adapter = adapters::SaveAdapterOptions{.naming = detail::naming_of(options.adapter.names),
                                                        .facts = adapters::facts_of<typename Setup::adaptation::kind>(
                                                            options.adapter.kind, options.adapter.by_layer)};
    }
    for (const std::string_view state : Setup::optimizer::rule::state_names)
        (settings.state_names += settings.state_names.empty() ? "" : ",") += state;
    return settings;
}

}  // namespace strata::train
