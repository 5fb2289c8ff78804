#include "train_plan.hpp"

#include <optional>
#include <utility>

#include <strata/config/dispatch.hpp>

#include "../config_output.hpp"
#include "compositions.hpp"

namespace strata::tools {

TrainPlan plan_training(const TrainSettings& settings, int ranks) {
    TrainPlan plan;
    plan.asked = settings.reading.intent;
    const std::optional<int> recompute = std::exchange(plan.asked.composition.recompute, std::nullopt);
    plan.recompute = recompute.value_or(0);
    constexpr auto all = config::listed_v<TrainCompositions>;
    plan.chosen = config::choose(plan.asked.composition, all, &settings.findings);
    config::Composition composed = all[plan.chosen].composition;
    composed.recompute = plan.recompute;
    const std::string policies = config::policies(composed);
    plan.text = understood_text(settings.findings.all());
    plan.text += "\nmodel    " + settings.model_words + "\ntrainer  Trainer<" + settings.model_type +
                 (policies.empty() ? "" : ", ") + policies + ">\nbatch    " + batch_line(settings, ranks) + "\n";
    return plan;
}

}  // namespace strata::tools
