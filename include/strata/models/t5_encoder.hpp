#pragma once
// strata/models/t5_encoder.hpp - T5Encoder: the encoder of T5 v1.1, which Flux.1 reads captions with, under the names
// of its published weights.
//
// Raffel et al. 2020 (arXiv:1910.10683), in the version 1.1 of 2020: a gated feed-forward (Shazeer 2020,
// arXiv:2002.05202), no biases, root-mean-square norms before each part, and in place of positions a learnt number
// for each head and each range of distances, added to the scores.
//
// Shapes: B texts, L tokens, D width, H heads, K width of a head.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/norms.hpp>
#include <strata/models/projection.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// Sizes of a T5Encoder; the defaults are those of T5 v1.1 XXL, 4.76e9 parameters.
struct T5Options {
    std::int64_t vocabulary = 32128;          ///< vocab_size
    std::int64_t width = 4096;                ///< d_model: D
    std::int64_t head_width = 64;             ///< d_kv: K; H * K need not be D
    std::int64_t feed_forward_width = 10240;  ///< d_ff
    std::int64_t blocks = 24;                 ///< num_layers
    std::int64_t heads = 64;                  ///< num_heads: H
    std::int64_t distance_buckets = 32;       ///< relative_attention_num_buckets, 4 at least
    std::int64_t longest_distance = 128;      ///< relative_attention_max_distance: what is farther counts as this far
    double epsilon = 1e-6;                    ///< layer_norm_epsilon

    friend bool operator==(const T5Options&, const T5Options&) = default;
};

/// The `config.json` of a T5EncoderModel or T5ForConditionalGeneration. Dropout is passed over: the encoder computes
/// without. Throws Errc::unreadable_config, and Errc::bad_model_config with everything that is wrong.
[[nodiscard]] T5Options read_t5_config(const std::filesystem::path& file);
/// The same of a text; `source` stands for the file in messages.
[[nodiscard]] T5Options parse_t5_config(std::string_view json, std::string source);

/// The bucket of a key `distance` tokens behind its query, before it if negative: the upper half for those behind; of
/// each half the first half for single distances, and the rest for ranges that grow by a constant factor up to
/// `longest`.
[[nodiscard]] std::int64_t distance_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t longest);

/// A block: x + o(attention), then x + wo(gelu(wi_0 n) * wi_1 n), each of n, the norm of x. Parameters layer.0.* and
/// layer.1.*.
class T5Block : public torch::nn::Module {
public:
    T5Block(const T5Options& options, const at::TensorOptions& of);
    /// x (B, L, D), bias (1 or B, H, L, L) fp32 -> (B, L, D)
    at::Tensor forward(const at::Tensor& x_BLD, const at::Tensor& bias_BHLL);

protected:
    std::shared_ptr<torch::nn::Module> attention_;  ///< layer.0.SelfAttention

private:
    std::int64_t head_width_;
    std::shared_ptr<Projection> q_, k_, v_, o_, wi_0_, wi_1_, wo_;
    std::shared_ptr<RmsNorm> attention_norm_, feed_forward_norm_;
};

/// The first block, which has the numbers of distances, layer.0.SelfAttention.relative_attention_bias, that all
/// blocks add.
class T5FirstBlock : public T5Block {
public:
    T5FirstBlock(const T5Options& options, const at::TensorOptions& of);
    /// x (B, L, D), mask (B, 1, 1, L) fp32 to be added to scores, or undefined -> x and the bias of all blocks
    std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& x_BLD, const at::Tensor& mask_B11L);

private:
    std::int64_t distance_buckets_, longest_distance_;
    at::Tensor relative_bias_weight_;
};

/// The encoder. Every block is a Unit. Computes in the type of its parameters, fp32 or bf16, with norms, scores and
/// softmax in fp32; there is no dropout.
class T5Encoder : public torch::nn::Module {
public:
    using Units = UnitList<T5FirstBlock, T5Block>;

    /// Parameters of the type and on the device of `of`; zero until they are loaded, norms aside.
    /// Throws Errc::bad_model_options with all sizes that do not fit: less than one of something, fewer than 4
    /// buckets.
    explicit T5Encoder(const T5Options& options = {}, const at::TensorOptions& of = at::kFloat);

    /// What stands for each token, (B, L, D), in the type of the parameters: last_hidden_state.
    ///
    ///   ids   (B, L) of 64-bit integers
    ///   mask  (B, L), 1 where a token is one and 0 where it fills up: nobody looks at those then. Undefined: all are looked at,
    ///         padding too, which is how Flux.1 was trained
    at::Tensor forward(const at::Tensor& ids_BL, const at::Tensor& mask_BL = {});

    [[nodiscard]] const T5Options& options() const noexcept { return options_; }

private:
    T5Options options_;
    at::Tensor shared_;
    std::shared_ptr<Unit<T5FirstBlock>> first_;
    std::vector<std::shared_ptr<Unit<T5Block>>> rest_;
    std::shared_ptr<RmsNorm> final_layer_norm_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/t5_config.ipp>
#include <strata/models/impl/t5_encoder.ipp>
#endif
