#pragma once
// strata/train/impl/adapter_facts.ipp - facts of checkpoints become those that files of adapters have.

#include <cstddef>
#include <cstdlib>

#include <strata/train/adapter_facts.hpp>

namespace strata::train {

STRATA_INLINE std::optional<adapters::AdapterFacts> facts_of_tensors(const checkpoint::Facts& facts) {
    constexpr std::string_view own = "alpha of ", and_also = " and ";
    adapters::AdapterFacts found;
    bool is_known = false;
    for (const auto& [name, value] : facts) {
        const auto number = [&value = value] { return std::strtod(value.c_str(), nullptr); };
        if (name == "kind") is_known = value == "lora" || value == "lokr";
        if (name == "alpha") found.alpha = number();
        if (name == "dropout") found.dropout = number();
        if (!name.starts_with(own)) continue;
        const std::string layers = name.substr(own.size());
        const std::size_t also = layers.find(and_also);
        found.alphas.push_back({layers.substr(0, also), number(),
                                also == std::string::npos ? std::string{} : layers.substr(also + and_also.size())});
    }
    if (!is_known) return std::nullopt;
    return found;
}

}  // namespace strata::train
