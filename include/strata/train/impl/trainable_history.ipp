#pragma once
// strata/train/impl/trainable_history.ipp - sets of names.

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

STRATA_INLINE void TrainableHistory::chosen(std::int64_t step, const std::vector<zero::ParameterInfo>& now) {
    chosen_ = names_of(now);
    chosen_at_ = step;
    change_to(chosen_);
}

STRATA_INLINE void TrainableHistory::resumed(const checkpoint::Manifest& found) {
    changed_ = !found.began_with.empty();
    now_ = names_of(found.parameters);
    settled_ = Names(found.settled.begin(), found.settled.end());
}

STRATA_INLINE void TrainableHistory::describe(checkpoint::Manifest& manifest) const {
    manifest.began_with = changed_ ? began_with_ : std::vector<std::string>{};
    manifest.settled.assign(settled_.begin(), settled_.end());
}

}  // namespace strata::train
