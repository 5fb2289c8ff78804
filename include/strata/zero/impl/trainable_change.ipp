#pragma once
// strata/zero/impl/trainable_change.ipp - answers of a predicate, compared and applied.

#include <string>
#include <unordered_set>

#include <strata/core/error.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/trainable_change.hpp>

namespace strata::zero {

STRATA_INLINE TrainableChange::TrainableChange(const std::vector<Parameter>& parameters,
                                               const std::vector<Parameter>& frozen,
                                               const std::function<bool(std::string_view name)>& trains,
                                               Exchange& exchange)
    : parameters_{parameters} {
    std::unordered_set<const void*> not_trained;
    for (const Parameter& parameter : frozen) not_trained.insert(parameter.tensor.unsafeGetTensorImpl());
    exchange.agree([&] {
        if (!trains) {
            throw Error{Errc::bad_value, "set_trainable() was given an empty function",
                        "give it a function that takes a parameter's name and returns whether it is trained"};
        }
        for (const Parameter& parameter : parameters) {
            required_.push_back(parameter.tensor.requires_grad() ? 1 : 0);
            trained_.push_back(not_trained.contains(parameter.tensor.unsafeGetTensorImpl()) ? 0 : 1);
            trains_.push_back(trains(parameter.name) ? 1 : 0);
        }
    });
    const std::vector<std::string> answers = exchange.all_gather_texts({trains_.data(), trains_.size()});
    for (std::size_t rank = 1; rank < answers.size(); ++rank) {
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (answers[rank][i] == answers[0][i]) continue;
            const auto said = [&](std::size_t of) { return answers[of][i] != 0 ? "trained" : "frozen"; };
            throw Error{Errc::rank_mismatch,
                        "set_trainable() would make the parameter " + parameters[i].name + " " + said(rank) +
                            " on rank " + std::to_string(rank) + " and " + said(0) + " on rank 0",
                        "give every rank the same function of the name"};
        }
    }
}

STRATA_INLINE void TrainableChange::apply(at::Device device) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (trains_[i] == 0 || parameters_[i].tensor.is_floating_point()) continue;
        throw Error{Errc::bad_parameter,
                    "set_trainable() was told to train the parameter " + parameters_[i].name +
                        ", which holds no floating point numbers",
                    "return false for its name"};
    }
    try {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (required_[i] != trains_[i]) parameters_[i].tensor.set_requires_grad(trains_[i] != 0);
        }
        std::vector<Parameter> all = parameters_;
        static_cast<void>(detail::split_off_frozen(all, device, false));
    } catch (...) {
        undo();
        throw;
    }
}

STRATA_INLINE void TrainableChange::undo() const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (parameters_[i].tensor.requires_grad() != (required_[i] != 0))
            parameters_[i].tensor.set_requires_grad(required_[i] != 0);
    }
}

}  // namespace strata::zero
