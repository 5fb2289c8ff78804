#pragma once
// strata/models/impl/sdxl_recipe.ipp - examples to a batch of a U-Net.

#include <vector>

#include <ATen/ops/empty.h>

#include <strata/data/named_tensors.hpp>
#include <strata/models/sdxl_recipe.hpp>

namespace strata::models {

STRATA_INLINE at::Tensor sdxl_time_ids(const data::Geometry& geometry) {
    const auto& [original, frame] = geometry;
    const double ids[] = {
        static_cast<double>(original.height),     static_cast<double>(original.width),    frame.top, frame.left,
        static_cast<double>(frame.target.height), static_cast<double>(frame.target.width)};
    at::Tensor tensor = at::empty({6}, at::TensorOptions().dtype(at::kFloat));
    auto* const out = static_cast<float*>(tensor.data_ptr());
    for (std::size_t i = 0; i < 6; ++i) out[i] = static_cast<float>(ids[i]);
    return tensor;
}

STRATA_INLINE UnetBatch collate_unet(std::span<const data::Example> examples, bool dropped_is_zeros) {
    std::vector<at::Tensor> latents, tokens, pooled, ids;
    UnetBatch batch;
    for (const data::Example& one : examples) {
        const auto of_caption = [&](const char* name) {
            const at::Tensor wide = one.caption.at(name).to(at::kFloat);
            return one.is_dropped && dropped_is_zeros ? wide.mul(0) : wide;
        };
        latents.push_back(one.picture.at("latents").to(at::kFloat));
        tokens.push_back(of_caption("tokens"));
        if (one.caption.contains("pooled")) {
            pooled.push_back(of_caption("pooled"));
            ids.push_back(sdxl_time_ids(one.geometry));
        }
        batch.captions.push_back(one.is_dropped ? std::string{} : one.text);
        batch.samples.push_back(one.name);
        batch.is_regularisation_data = one.is_regularisation_data;
    }
    batch.latents_BCHW = data::stack_rows(latents);
    batch.text_BSE = data::stack_rows(tokens);
    if (pooled.empty()) return batch;
    batch.pooled_BP = data::stack_rows(pooled);
    batch.time_ids_B6 = data::stack_rows(ids);
    return batch;
}

}  // namespace strata::models
