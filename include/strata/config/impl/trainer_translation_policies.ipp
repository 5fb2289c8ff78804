#pragma once
// strata/config/impl/trainer_translation_policies.ipp - keys of a trainer's configuration that are policies of strata's.

#include <string>

#include <strata/config/impl/trainer_translation.ipp>

namespace strata::config::detail {

inline void TrainerTranslation::pure_bf16(const Node& node) {
    const auto on = flag(node);
    if (on && *on) pure_ = &node;
    if (on)
        reading_.findings.mapped(node, *on ? "Precision<PureBf16>" : "",
                                 *on ? "weights are in bf16 alone" : "as `mixed_precision` says");
}

inline void TrainerTranslation::recompute(const Node& node) {
    const auto on = flag(node);
    if (!on) return;
    if (!reading_.intent.composition.recompute || !*on) reading_.intent.composition.recompute = *on ? 1 : 0;
    recompute_ = *on;
    reading_.findings.acts(node, *on ? "Recompute<Blocks>" : "Recompute<Nothing>");
}

inline void TrainerTranslation::recompute_interval(const Node& node) {
    const auto every = node.whole();
    if (!every || *every < 1 || *every > 1000)
        return refuse(node, Errc::bad_value, "is " + node.shown() + ", no number of blocks",
                      "write a whole number from 1 to 1000");
    recompute_every_ = static_cast<int>(*every);
    reading_.findings.mapped(
        node, *every == 1 ? "Recompute<Blocks>" : "Recompute<EveryOther<" + std::to_string(*every) + ">>",
        "one block of so many is computed again");
}

inline void TrainerTranslation::fsdp(const Node& node) {
    const auto on = flag(node);
    if (!on) return;
    is_fsdp_ = *on;
    reading_.findings.mapped(node, *on ? "ZeroStage<3>" : "",
                             *on ? "parameters, gradients and state are sharded" : "nothing is asked for");
}

inline void TrainerTranslation::fsdp_keeps_whole(const Node& node) {
    const auto reshards = flag(node);
    if (!reshards) return;
    fsdp_stage_ = *reshards ? 3 : 2;
    reading_.findings.mapped(node, "ZeroStage<" + std::to_string(fsdp_stage_) + ">", "of `fsdp_enable`");
}

inline void TrainerTranslation::fsdp_offload(const Node& node) {
    const auto on = flag(node);
    if (!on) return;
    fsdp_offloads_ = *on;
    reading_.findings.mapped(node, *on ? "OffloadTarget<Cpu>" : "",
                             *on ? "state is kept in host memory" : "nothing is asked for");
}

inline void TrainerTranslation::release_gradients(const Node& node) {
    const auto on = flag(node);
    if (!on) return;
    if (*on) {
        releases_gradients_ = &node;
    } else {
        reading_.intent.composition.moment = MomentName::after_backward;
        reading_.findings.acts(node, "Update<AfterBackward>");
    }
}

inline void TrainerTranslation::offload_gradients(const Node& node) {
    const auto on = flag(node);
    if (!on) return;
    if (*on) {
        offloads_gradients_ = &node;
    } else {
        reading_.intent.composition.gradients = KeptOn{};
        reading_.findings.acts(node, "OffloadTarget<Device, Gradients>");
    }
}

}  // namespace strata::config::detail
