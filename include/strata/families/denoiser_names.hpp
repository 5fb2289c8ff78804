#pragma once
// strata/families/denoiser_names.hpp - denoiser_names(): what other programs put in front of a denoiser's names in files.

#include <vector>

#include <strata/core/inline.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/weights/weight_match.hpp>
#include <strata/weights/weight_names.hpp>

namespace strata::families {

/// With the prefix under which the files have the model's names: none, or `model.diffusion_model.`, `diffusion_model.`, `transformer.` and `unet.`,
/// which programs put in front that write a whole pipeline into one file. What has no such prefix there is another model's, and is not looked at.
/// Reads names only.
[[nodiscard]] weights::LoadOptions denoiser_names(const std::vector<weights::WantedWeight>& wanted,
                                                  const weights::WeightFiles& files);

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/denoiser_names.ipp>
#endif
