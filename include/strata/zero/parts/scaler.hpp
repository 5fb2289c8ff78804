#pragma once
// strata/zero/parts/scaler.hpp - Scaler: the loss scale of an engine, or none, and how checkpoints name it.

#include <map>
#include <string>

#include <strata/core/inline.hpp>
#include <strata/optim/loss_scale.hpp>

namespace strata::zero {

/// optim::LossScale where a precision has one; otherwise 1, for ever.
class Scaler {
public:
    Scaler(bool scales, const optim::LossScaleOptions& options) : scales_{scales}, scale_{options} {}

    [[nodiscard]] bool scales() const noexcept { return scales_; }
    [[nodiscard]] double value() const noexcept { return scales_ ? scale_.value() : 1.0; }
    /// Ends a step. Throws loss_scale_exhausted.
    optim::LossScale::Step update(bool overflow) {
        return scales_ ? scale_.update(overflow) : optim::LossScale::Step{};
    }

    /// Its state by name; empty where there is none. Names that are missing leave their value as it is.
    [[nodiscard]] std::map<std::string, double> scalars() const;
    void restore(const std::map<std::string, double>& values);

private:
    bool scales_;
    optim::LossScale scale_;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/scaler.ipp>
#endif
