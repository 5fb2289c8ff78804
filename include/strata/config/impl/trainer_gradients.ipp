#pragma once
// strata/config/impl/trainer_gradients.ipp - SimpleTuner's keys about gradients, once all numbers of the run are known.

#include <string>

#include <strata/config/impl/trainer_translation.ipp>
#include <strata/config/trainer_config.hpp>

namespace strata::config::detail {

/// What needs all gradients of a step before a weight may change; empty: nothing does.
inline std::string needs_all_gradients(const TrainerConfig& config, const Composition& composition) {
    const auto& engine = config.options.engine;
    if (engine.gradient_accumulation_steps > 1)
        return "a step has " + std::to_string(engine.gradient_accumulation_steps) + " micro-batches";
    if (engine.max_grad_norm > 0 && config.grad_clip_method == GradClipMethod::norm)
        return "`max_grad_norm` is about the norm of all gradients; write 0, or \"grad_clip_method\": \"value\"";
    if (engine.on_non_finite == zero::OnNonFinite::skip) return "`on_non_finite` may skip a step";
    if (composition.precision == FormatName::fp16) return "fp16 scales the loss, and may skip a step";
    if (composition.rule == RuleName::lamb) return "Lamb takes norms of whole parameters";
    return {};
}

/// Updates in backward and gradients in host memory change no result, so what stands in their way is a warning.
inline void take_gradients(const TrainerTranslation& translation, const TrainerConfig& config,
                           TrainerReading& reading) {
    Composition& composition = reading.intent.composition;
    if (const Node* const node = translation.releases_gradients()) {
        const std::string needed_by = needs_all_gradients(config, composition);
        if (needed_by.empty()) {
            composition.moment = MomentName::in_backward;
            reading.findings.mapped(*node, "Update<InBackward>", "the same numbers, in less memory");
        } else {
            reading.findings.warn_no_effect(*node, "gradients stay until the update: " + needed_by);
        }
    }
    const Node* const node = translation.offloads_gradients();
    if (node == nullptr) return;
    const bool has_shares = composition.stage.value_or(0) >= 2;
    const bool is_off = composition.state && composition.state->uses(TierName::cpu);
    if (composition.moment == MomentName::in_backward) {
        reading.findings.warn_no_effect(*node, "an update in backward leaves no gradients to keep");
    } else if (has_shares && is_off) {
        composition.gradients = KeptOn::all_on(TierName::cpu);
        reading.findings.mapped(*node, "OffloadTarget<Cpu, Gradients>", "sums of gradients, beside the state");
    } else {
        reading.findings.warn_no_effect(
            *node, "gradients stay on the device: they follow state that is in host memory at stage 2 or 3",
            "say so in `deepspeed_config`: {\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": "
            "\"cpu\"}}}");
    }
}

}  // namespace strata::config::detail
