#pragma once
// strata/models/impl/flux_recipe.ipp - examples to a batch.

#include <strata/models/flux_recipe.hpp>

namespace strata::models {

STRATA_INLINE FluxBatch collate_flux(std::span<const data::Example> examples) {
    std::vector<at::Tensor> latents, tokens, pooled, masks;
    FluxBatch batch;
    for (const data::Example& one : examples) {
        latents.push_back(one.picture.at("latents"));
        tokens.push_back(one.caption.at("tokens"));
        pooled.push_back(one.caption.at("pooled"));
        if (const auto mask = one.caption.find("mask"); mask != one.caption.end()) masks.push_back(mask->second);
        batch.captions.push_back(one.text);
        batch.samples.push_back(one.name);
        batch.is_regularisation_data = one.is_regularisation_data;
    }
    batch.latents_BCHW = data::stack_rows(latents).to(at::kFloat);
    batch.text_BTE = data::stack_rows(tokens);
    batch.pooled_BE = data::stack_rows(pooled);
    if (masks.size() == examples.size()) batch.text_mask_BT = data::stack_rows(masks);
    return batch;
}

}  // namespace strata::models
