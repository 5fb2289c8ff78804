#pragma once
// strata/zero/parts/trained_model.hpp - TrainedModel: a model's parameters, sorted and checked before an engine takes them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>
#include <strata/policy/zero_stage.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::zero {

/// Parameters that require a gradient, each with the number of its group, and those that do not. Exceptions come last in both.
struct TrainedModel {
    std::vector<Parameter> trained;
    std::vector<std::size_t> group_of;  ///< of `trained`
    std::vector<Parameter> frozen;

    /// Whether a parameter of a unit is among them, trained or frozen.
    [[nodiscard]] bool has_units() const {
        const auto in_unit = [](const Parameter& parameter) { return parameter.unit >= 0; };
        return std::any_of(trained.begin(), trained.end(), in_unit) ||
               std::any_of(frozen.begin(), frozen.end(), in_unit);
    }
};

/// Throws bad_parameter where a sharding policy shards the parameters of units, and the model has none. Local.
template <class Setup>
void require_units(const TrainedModel& model, bool computes_only) {
    if (Setup::sharding::shards_parameters == ShardedOver::nothing || model.has_units() || computes_only) return;
    throw Error{Errc::bad_parameter, "ZeroStage<3> shards the parameters of units, and this model has no unit",
                "hold its blocks as std::shared_ptr<strata::Unit<Block>>, or use ZeroStage<2>"};
}

/// The order of a model's tables: as they were given, exceptions last. Local.
[[nodiscard]] inline std::vector<Parameter> exceptions_last(std::vector<Parameter> parameters) {
    std::stable_partition(parameters.begin(), parameters.end(),
                          [](const Parameter& parameter) { return !parameter.excepted; });
    return parameters;
}

/// How many units have parameters among these. Local.
[[nodiscard]] inline std::int32_t unit_count(const std::vector<Parameter>& parameters) {
    std::set<std::int32_t> units;
    for (const Parameter& parameter : parameters) {
        if (parameter.unit >= 0) units.insert(parameter.unit);
    }
    return static_cast<std::int32_t>(units.size());
}

/// Collective. Throws no_parameters, bad_parameter, and rank_mismatch when ranks have different models or options.
///
///   parameters     exceptions last
///   groups         the number of each one's group
///   options        names and values that must be the same on every rank
///   device         where the engine computes
///   computes_only  no parameter may require a gradient
template <class Comm>
[[nodiscard]] TrainedModel sorted_model(Comm& comm, std::vector<Parameter> parameters,
                                        const std::vector<std::size_t>& groups, const std::string& options,
                                        at::Device device, bool computes_only) {
    detail::check_same_model(comm.all_gather_varied(detail::describe(parameters, groups, options)));
    TrainedModel model;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].tensor.requires_grad()) model.group_of.push_back(groups[i]);
    }
    model.frozen = std::move(parameters);
    model.trained = detail::split_off_frozen(model.frozen, device, computes_only);
    return model;
}

}  // namespace strata::zero
