#pragma once
// strata/families/impl/denoiser_names.ipp - the prefixes that are tried.

#include <algorithm>
#include <cstddef>
#include <string>

#include <strata/families/denoiser_names.hpp>

namespace strata::families {

STRATA_INLINE weights::LoadOptions denoiser_names(const std::vector<weights::WantedWeight>& wanted,
                                                  const weights::WeightFiles& files) {
    for (const char* const prefix : {"", "model.diffusion_model.", "diffusion_model.", "transformer.", "unet."}) {
        const auto is_there = [&](const std::string& name) { return files.find(prefix + name) != nullptr; };
        const auto met = std::count_if(wanted.begin(), wanted.end(), [&](const weights::WantedWeight& weight) {
            return std::any_of(weight.names.begin(), weight.names.end(), is_there);
        });
        // Half of them: what is wrong with the rest is then told by name.
        if (2 * static_cast<std::size_t>(met) >= wanted.size()) return {.prefix = prefix};
    }
    return {};
}

}  // namespace strata::families
