#pragma once
// strata/train/impl/trainable_history.ipp - sets of names.

#include <algorithm>
#include <utility>

#include <strata/train/trainable_history.hpp>

namespace strata::train {

STRATA_INLINE TrainableHistory::TrainableHistory(const std::vector<zero::ParameterInfo>& now) : now_{names_of(now)} {
    for (const zero::ParameterInfo& parameter : now) began_with_.push_back(parameter.name);
}

STRATA_INLINE TrainableHistory::Names TrainableHistory::names_of(const std::vector<zero::ParameterInfo>& parameters) {
    Names names;
    for (const zero::ParameterInfo& parameter : parameters) names.insert(parameter.name);
    return names;
}

STRATA_INLINE void TrainableHistory::change_to(Names now) {
    if (now == now_) return;
    changed_ = true;
    settled_.merge(now_);
    for (const std::string& name : now) settled_.erase(name);
    now_ = std::move(now);
}

STRATA_INLINE void TrainableHistory::chosen(std::int64_t step, const std::vector<zero::ParameterInfo>& now,
                                            ChosenWhile when) {
    Names names = names_of(now);
    change_to(names);
    if (when == ChosenWhile::in_a_step) return;
    std::erase_if(choices_, [&](const Choice& choice) { return choice.step >= step; });
    choices_.push_back({step, when == ChosenWhile::after_failure, std::move(names)});
}

STRATA_INLINE const TrainableHistory::Names* TrainableHistory::choice_after(std::int64_t step) const noexcept {
    const auto found =
        std::find_if(choices_.begin(), choices_.end(), [&](const Choice& choice) { return choice.step == step; });
    return found == choices_.end() ? nullptr : &found->names;
}

STRATA_INLINE void TrainableHistory::resumed(const checkpoint::Manifest& found) {
    if (!choices_.empty() && std::exchange(choices_.back().after_failure, false) && found.step < choices_.back().step) {
        Choice last = std::move(choices_.back());  // the others of the steps that follow were made before it
        std::erase_if(choices_, [&](const Choice& choice) { return choice.step >= found.step; });
        choices_.push_back({found.step, false, std::move(last.names)});
    }
    changed_ = !found.began_with.empty();
    now_ = names_of(found.parameters);
    settled_ = Names(found.settled.begin(), found.settled.end());
}

STRATA_INLINE void TrainableHistory::describe(checkpoint::Manifest& manifest) const {
    manifest.began_with = changed_ ? began_with_ : std::vector<std::string>{};
    manifest.settled.assign(settled_.begin(), settled_.end());
}

}  // namespace strata::train
