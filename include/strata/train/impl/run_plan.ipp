#pragma once
// strata/train/impl/run_plan.ipp - the sentences about what changed.

#include <strata/train/run_plan.hpp>

namespace strata::train {

STRATA_INLINE checkpoint::Facts RunPlan::facts() const {
    return {{"samples a step", std::to_string(samples_per_step())},
            {"ranks", std::to_string(ranks)},
            {"samples of a rank in a micro-batch", std::to_string(samples_per_micro_batch)},
            {"gradient_accumulation_steps", std::to_string(gradient_accumulation_steps)},
            {"micro-batches an epoch", std::to_string(micro_batches_per_epoch)},
            {"precision", std::string{precision}}};
}

STRATA_INLINE std::vector<std::string> changes_since(const checkpoint::Manifest& then, const checkpoint::Manifest& now,
                                                     const RunPlan& plan) {
    std::vector<std::string> lines;
    if (!then.sealed)
        lines.emplace_back(
            "the checkpoint is of format 1, without a seal: an edited manifest and other data cannot be noticed");
    if (then.seed != now.seed)
        lines.push_back(
            checkpoint::FactChange{"the seed changed", std::to_string(then.seed), std::to_string(now.seed)}.text() +
            "; order, noise and dropout are those of another run from here on");
    const std::string dealt = "; the data goes on after " + std::to_string(then.samples) +
                              " samples, and what is left of the epoch is dealt anew";
    bool other_batch = false;
    if (then.sealed) {
        for (const checkpoint::FactChange& change : checkpoint::changes(then.plan, now.plan)) {
            // Its consequence, and not one of other data, where the effective batch changed.
            if (other_batch && change.name == "micro-batches an epoch") continue;
            const bool batch = change.name == "samples a step";
            other_batch = other_batch || batch;
            const bool deals = batch || change.name == "micro-batches an epoch";
            lines.push_back((batch ? "the effective batch changed, " : "") + change.text() +
                            (deals ? dealt : "; sums are rounded otherwise"));
        }
    } else if (then.samples != then.step * plan.samples_per_step()) {
        lines.push_back("the effective batch changed" + dealt);
    }
    for (const checkpoint::FactChange& change : checkpoint::changes(then.data, now.data))
        if (then.sealed)
            lines.push_back("the data changed, " + change.text() + "; what is left of the epoch is dealt anew");
    if (!then.adapter.empty() && !now.adapter.empty()) {
        for (const checkpoint::FactChange& change : checkpoint::changes(then.adapter, now.adapter)) {
            // The parameters fit, so that these name the same layers in other words.
            if (change.name == "targets" || change.name == "excluded") continue;
            // Layers with options of their own were not written once.
            if (change.then == "none" && change.name.starts_with("alpha of ")) continue;
            lines.push_back("the adapter changed, " + change.text() +
                            "; what is trained is another adapter from here on");
        }
    }
    for (const checkpoint::FactChange& change : checkpoint::changes(then.environment, now.environment))
        if (then.sealed) lines.push_back(change.text() + "; bits will differ from those of a run that was not stopped");
    return lines;
}

}  // namespace strata::train
