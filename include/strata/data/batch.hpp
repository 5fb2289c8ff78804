#pragma once
// strata/data/batch.hpp - ImageTextBatch: what a text-to-image model sees of one micro-batch.

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

namespace strata::data {

/// One micro-batch of pictures of one aspect bucket with their captions, encoded. Tensors are fp32 on the CPU.
struct ImageTextBatch {
    at::Tensor latents_BCHW;              ///< (B, C, H/8, W/8)
    at::Tensor text_BTE;                  ///< (B, T, E)
    at::Tensor pooled_BE;                 ///< (B, E)
    std::vector<std::string> captions;    ///< B; empty where the caption was dropped
    std::vector<std::string> samples;     ///< B paths of the pictures
    bool is_regularisation_data = false;  ///< the target is what the model predicts without its adapter
};

/// So that a trainer finds the tensors that belong on its device: zero::for_each_tensor().
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, ImageTextBatch>
void visit_tensors(Batch& batch, Call&& call) {
    call(batch.latents_BCHW);
    call(batch.text_BTE);
    call(batch.pooled_BE);
}

/// What a TextEncoder makes of one caption, fp32: tokens (T, E) and a summary (E) of the whole.
struct TextEmbedding {
    at::Tensor tokens;
    at::Tensor pooled;
};

}  // namespace strata::data
