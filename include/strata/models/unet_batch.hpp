#pragma once
// strata/models/unet_batch.hpp - UnetBatch: what a U-Net of SD 1.5's or SDXL's kind learns from.

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

namespace strata::models {

/// One micro-batch of pictures of one aspect bucket with their captions, encoded. Tensors are fp32. B pictures.
struct UnetBatch {
    at::Tensor latents_BCHW;              ///< scaled
    at::Tensor text_BSE;                  ///< text tokens
    at::Tensor pooled_BP;                 ///< SDXL: the pooled caption; undefined for SD 1.5
    at::Tensor time_ids_B6;               ///< SDXL: as UnetAddition has them; undefined for SD 1.5
    std::vector<std::string> captions;    ///< B; empty where the caption was dropped
    std::vector<std::string> samples;     ///< B paths of the pictures
    bool is_regularisation_data = false;  ///< the target is what the model predicts without its adapter
};

/// So that a trainer finds the tensors that belong on its device: zero::for_each_tensor().
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, UnetBatch>
void visit_tensors(Batch& batch, Call&& call) {
    call(batch.latents_BCHW);
    call(batch.text_BSE);
    call(batch.pooled_BP);
    call(batch.time_ids_B6);
}

}  // namespace strata::models
