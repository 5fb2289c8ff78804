#pragma once
// strata/train/rescue.hpp - what becomes of the steps that were done when one fails.

#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>

namespace strata::train {

/// A run whose step failed, as far as saving what was done before it goes.
class Rescuable {
public:
    Rescuable() = default;
    Rescuable(const Rescuable&) = delete;
    Rescuable& operator=(const Rescuable&) = delete;

    [[nodiscard]] virtual std::int64_t step() const = 0;  ///< the last that was done
    [[nodiscard]] virtual int world() const = 0;
    [[nodiscard]] virtual bool is_saved() const = 0;                 ///< that step is
    [[nodiscard]] virtual bool has_failed() const = 0;               ///< it was tried to save it, and that failed
    [[nodiscard]] virtual std::filesystem::path newest() const = 0;  ///< checkpoint
    [[nodiscard]] virtual std::string newest_text() const = 0;  ///< a clause that names it, or says that there is none
    [[nodiscard]] virtual bool state_is_whole() const = 0;      ///< no update broke off half way
    virtual void undo_step() = 0;                               ///< back to where the last step ended
    virtual void write() = 0;                                   ///< saves; collective
    virtual void complete_log() = 0;                            ///< what the log and the report lack; throws nothing

protected:
    ~Rescuable() = default;
};

/// Saves the state after the last step that was done; returns what was saved where, or why it was not: "step 4 is saved in
/// OUT/checkpoints/step_00000004". Collective if ranks are together.
///
///   code      of the error that the run ends with
///   together  all ranks are at the same place
[[nodiscard]] std::string rescued(Rescuable& run, Errc code, bool together);

/// Throws `failure`, as an Error whose sentence goes on with what became of the run, and that has it nested: a program may look for an exception of its
/// own. Local.
///
///   who     what failed, for an exception that is no Error: "step 7 on rank 1"
///   became  rescued()
[[noreturn]] void throw_rescued(const std::exception_ptr& failure, const std::string& who, const std::string& became);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/rescue.ipp>
#endif
