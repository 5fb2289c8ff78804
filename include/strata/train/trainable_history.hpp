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

/// Where a program was when it called set_trainable().
enum class ChosenWhile : std::uint8_t {
    between_fits,  ///< the choice holds behind its step, whenever that step is done
    in_a_step,     ///< an action made it, and makes it again where its step is done again
    after_failure  ///< of a fit(): it holds from where the next one resumes
};

/// What set_trainable() has changed since a trainer was made, and what the program wants it to be. Local.
///
/// A checkpoint says which parameters were trained at its step, so that a program that is started again needs not know how far
/// it had come: resuming trains those, and set_trainable() calls that were done before that step change nothing again. Steps that
/// are done once more in the same program, because a fit() failed, meet the same choices as the first time.
class TrainableHistory {
public:
    using Names = std::set<std::string, std::less<>>;

    /// now  Engine::layout() of a trainer that was just made
    explicit TrainableHistory(const std::vector<zero::ParameterInfo>& now);

    /// The program chose these, after `step` steps.
    void chosen(std::int64_t step, const std::vector<zero::ParameterInfo>& now,
                ChosenWhile when = ChosenWhile::between_fits);
    /// The state is that of a checkpoint, whose parameters are trained.
    void resumed(const checkpoint::Manifest& found);
    /// These are trained now, by a choice that was repeated.
    void repeated(const std::vector<zero::ParameterInfo>& now) { change_to(names_of(now)); }

    /// What the program chose after `step` steps, as far as nobody makes that choice again; nullptr: nothing.
    [[nodiscard]] const Names* choice_after(std::int64_t step) const noexcept;

    /// Writes what a checkpoint says about it.
    void describe(checkpoint::Manifest& manifest) const;

private:
    struct Choice {
        std::int64_t step;  // that were done by then
        bool after_failure;
        Names names;
    };
    [[nodiscard]] static Names names_of(const std::vector<zero::ParameterInfo>& parameters);
    void change_to(Names now);

    std::vector<std::string> began_with_;
    bool changed_ = false;
    Names now_;
    Names settled_;                // were trained, and are not
    std::vector<Choice> choices_;  // between calls of fit(), in order of their steps
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/trainable_history.ipp>
#endif
