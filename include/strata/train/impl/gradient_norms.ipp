#pragma once
// strata/train/impl/gradient_norms.ipp - parameters sorted into parts.

#include <cmath>
#include <map>

#include <strata/train/gradient_norms.hpp>

namespace strata::train {

STRATA_INLINE GradientNorms::GradientNorms(const std::vector<zero::Parameter>& parameters,
                                           const std::vector<zero::ParameterInfo>& trained, GradientNormsOf of) {
    std::map<std::string, std::string> unit_of;
    for (const zero::Parameter& parameter : parameters) {
        if (parameter.link) unit_of[parameter.name] = parameter.link->name;
    }
    const auto part_of = [&](const std::string& name) -> std::string {
        const std::size_t dot = name.rfind('.');
        if (of == GradientNormsOf::parameter || dot == std::string::npos) return name;
        const auto unit = unit_of.find(name);
        if (of == GradientNormsOf::unit && unit != unit_of.end()) return unit->second;
        return name.substr(0, dot);
    };
    std::map<std::string, std::size_t> place_of;
    for (const zero::ParameterInfo& info : trained) {
        const auto [place, is_new] = place_of.try_emplace(part_of(info.name), names_.size());
        if (is_new) names_.push_back(place->first);
        part_of_.push_back(place->second);
    }
}

STRATA_INLINE std::vector<NamedNorm> GradientNorms::of_parts(std::span<const double> norms) const {
    std::vector<NamedNorm> parts;
    for (const std::string& name : names_) parts.push_back({name, 0});
    for (std::size_t i = 0; i < part_of_.size(); ++i) parts[part_of_[i]].norm += norms[i] * norms[i];
    for (NamedNorm& part : parts) part.norm = std::sqrt(part.norm);
    return parts;
}

STRATA_INLINE std::vector<NamedNorm> norms_of_step(AnyEngine& engine, const AnyModel& model,
                                                   const GradientNormsOptions& wanted) {
    if (wanted.every == 0 || (engine.step_count() + 1) % wanted.every != 0) return {};
    const GradientNorms norms{model.parameters(), engine.layout(), wanted.of};
    return norms.of_parts(engine.gradient_norms());
}

}  // namespace strata::train
