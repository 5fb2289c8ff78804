#pragma once
// strata/models/text_encoders.hpp - ClipTextEncoder and T5TextEncoder: a tokenizer and the encoder it is for, from
// captions to tensors.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/data/named_tensors.hpp>
#include <strata/models/clip_text.hpp>
#include <strata/models/t5_encoder.hpp>
#include <strata/tokenizers/clip_tokenizer.hpp>
#include <strata/tokenizers/t5_tokenizer.hpp>

namespace strata::models {

/// What is kept of a ClipText.
struct ClipTextEncoderOptions {
    bool last_hidden_state = true;  ///< "last_hidden_state" (L, D): Stable Diffusion 1.5
    bool hidden_states_m2 = false;  ///< "hidden_states_m2" (L, D): SDXL, of both encoders
    bool pooled = false;            ///< "pooled" (D): Flux.1
    bool text_embeds = false;       ///< "text_embeds" (E): SDXL, of the second encoder
    at::ScalarType type = at::kFloat;
};

/// Captions through a ClipText, whose copies share tokenizer and weights.
class ClipTextEncoder {
public:
    using Options = ClipTextEncoderOptions;

    ///   weights  names the numbers in `model`: a hash of the files that they were loaded from
    /// Throws Errc::bad_model_options where the tokenizer has more tokens, or makes longer texts, than the model has
    /// rows for, where text_embeds are asked of a model without projection, or nothing is asked for.
    ClipTextEncoder(std::shared_ptr<const tokenizers::ClipTokenizer> tokenizer, std::shared_ptr<ClipText> model,
                    std::string weights, const Options& options = {});

    /// Of tokenizer, weights, and the type that they compute in, and what is kept in which type: cached tensors of
    /// another id() are others.
    [[nodiscard]] std::string id() const;

    /// Tensors (B, ...) on the CPU of B captions, computed on `device`, where the model is moved if it is elsewhere;
    /// no gradients. A caption gives the same numbers in any batch up to rounding.
    [[nodiscard]] data::NamedTensors encode(std::span<const std::string> captions, at::Device device) const;

    [[nodiscard]] const tokenizers::ClipTokenizer& tokenizer() const noexcept { return *tokenizer_; }

private:
    std::shared_ptr<const tokenizers::ClipTokenizer> tokenizer_;
    std::shared_ptr<ClipText> model_;
    std::string weights_;
    Options options_;
};

struct T5TextEncoderOptions {
    /// Whether tokens look at the padding behind a text: Flux.1's pipelines let them. True hides it, and rows of
    /// padding mean nothing then.
    bool masks_padding = false;
    at::ScalarType type = at::kFloat;
};

/// Captions through a T5Encoder, whose copies share tokenizer and weights.
class T5TextEncoder {
public:
    using Options = T5TextEncoderOptions;

    ///   weights  names the numbers in `model`: a hash of the files that they were loaded from
    /// Throws Errc::bad_model_options where the tokenizer has more tokens than the model has rows for.
    T5TextEncoder(std::shared_ptr<const tokenizers::T5Tokenizer> tokenizer, std::shared_ptr<T5Encoder> model,
                  std::string weights, const Options& options = {});

    [[nodiscard]] std::string id() const;  ///< as of ClipTextEncoder

    /// As of ClipTextEncoder: "tokens" (B, L, D), and "mask" (B, L) of truth values, true where a token is one of the
    /// text or its end, whether padding was hidden or not.
    [[nodiscard]] data::NamedTensors encode(std::span<const std::string> captions, at::Device device) const;

    [[nodiscard]] const tokenizers::T5Tokenizer& tokenizer() const noexcept { return *tokenizer_; }

private:
    std::shared_ptr<const tokenizers::T5Tokenizer> tokenizer_;
    std::shared_ptr<T5Encoder> model_;
    std::string weights_;
    Options options_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/text_encoders.ipp>
#endif
