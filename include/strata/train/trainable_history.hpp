#pragma once
// strata/train/trainable_history.hpp - TrainableHistory: which parameters a run trained from when on, for its checkpoints.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/inline.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {

/// What set_trainable() has changed since a trainer was made, and what the program wants it to be. Local.
///
/// A checkpoint says which parameters were trained at its step, so that a program that is started again needs not know how far
/// it had come: resuming trains those, and set_trainable() calls that were done before that step change nothing again.
class TrainableHistory {
public:
    /// now  Engine::layout() of a trainer that was just made
    explicit TrainableHistory(const std::vector<zero::ParameterInfo>& now);

    /// The program chose these, after `step` steps.
    void chosen(std::int64_t step, const std::vector<zero::ParameterInfo>& now);
    /// The state is that of a checkpoint, whose parameters are trained.
    void resumed(const checkpoint::Manifest& found);

    /// Whether the program chose after the checkpoint of `step` what is to be trained from there on.
    [[nodiscard]] bool was_chosen_since(std::int64_t step) const noexcept { return step <= chosen_at_; }
    [[nodiscard]] bool is_chosen(std::string_view name) const { return chosen_.contains(name); }

    /// Writes what a checkpoint says about it.
    void describe(checkpoint::Manifest& manifest) const;

private:
    using Names = std::set<std::string, std::less<>>;
    [[nodiscard]] static Names names_of(const std::vector<zero::ParameterInfo>& parameters);
    void change_to(Names now);

    std::vector<std::string> began_with_;
    bool changed_ = false;
    Names now_;
    Names settled_;                // were trained, and are not
    Names chosen_;                 // by the program, the last time
    std::int64_t chosen_at_ = -1;  // steps that were done by then; -1: never
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/trainable_history.ipp>
#endif
