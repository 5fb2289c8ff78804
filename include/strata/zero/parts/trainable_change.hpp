#pragma once
// strata/zero/parts/trainable_change.hpp - TrainableChange: which parameters of a model are to be trained from now on.

#include <functional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/zero/parameters.hpp>
#include <strata/zero/parts/exchange.hpp>

namespace strata::zero {

/// A predicate over names becomes requires_grad of a model's parameters, on all ranks or on none.
class TrainableChange {
public:
    /// Asks `trains` for every parameter, in order. Collective. Throws on all ranks what `trains` threw on one, and
    /// rank_mismatch when ranks have different answers.
    ///
    ///   parameters  of the model, all of them; outlive this object
    ///   frozen      those that are not trained now, whatever their requires_grad says for the moment
    TrainableChange(const std::vector<Parameter>& parameters, const std::vector<Parameter>& frozen,
                    const std::function<bool(std::string_view name)>& trains, Exchange& exchange);

    /// Whether another set is to be trained than is now.
    [[nodiscard]] bool any() const { return trained_ != trains_; }
    /// Sets requires_grad. Throws no_parameters, and bad_parameter for what cannot be trained; nothing is set then. The
    /// same on every rank.
    ///
    ///   device  where the engine computes
    void apply(at::Device device) const;
    /// Sets it back.
    void undo() const;

private:
    const std::vector<Parameter>& parameters_;
    std::vector<char> required_;  // a gradient, by parameter
    std::vector<char> trained_;
    std::vector<char> trains_;  // from now on
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/trainable_change.ipp>
#endif
