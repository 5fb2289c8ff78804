#pragma once
// strata/models/impl/text_encoders.ipp - captions tokenised, encoded and brought to the host.

#include <algorithm>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/models/impl/clip_text.ipp>
#include <strata/models/impl/t5_encoder.ipp>
#include <strata/models/text_encoders.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>
#include <strata/tokenizers/clip_tokenizer.hpp>
#include <strata/tokenizers/t5_tokenizer.hpp>

namespace strata::models {

namespace detail {

/// (B, L) numbers of captions, and which of them are no padding.
struct TokenBatch {
    at::Tensor ids_BL;
    at::Tensor mask_BL;
};
template <tokenizers::Tokenizer T>
TokenBatch tokens_of(const T& tokenizer, std::span<const std::string> captions) {
    const auto B = static_cast<std::int64_t>(captions.size());
    const std::int64_t L = tokenizer.max_length();
    const TokenBatch batch{at::empty({B, L}, at::kLong), at::zeros({B, L}, at::kBool)};
    for (std::int64_t i = 0; i < B; ++i) {
        const tokenizers::Tokens tokens = tokenizer.encode(captions[static_cast<std::size_t>(i)]);
        std::copy(tokens.ids.begin(), tokens.ids.end(), batch.ids_BL.data_ptr<std::int64_t>() + i * L);
        batch.mask_BL[i].narrow(0, 0, tokens.length).fill_(true);
    }
    return batch;
}

template <class Model>
at::Tensor any_parameter_of(Model& model, at::Device device) {
    at::Tensor parameter = model.parameters(true).front();
    if (parameter.device() != device) {
        model.to(device);
        parameter = model.parameters(true).front();
    }
    return parameter;
}

/// "clip-text-v1-0f1e..": a hash of all that numbers depend on.
inline std::string encoder_id(const std::string& name, const std::string& parts) {
    return name + "-" + storage::to_hex(storage::content_hash(core::bytes_of(parts)).bytes);
}

}  // namespace detail

STRATA_INLINE ClipTextEncoder::ClipTextEncoder(std::shared_ptr<const tokenizers::ClipTokenizer> tokenizer,
                                               std::shared_ptr<ClipText> model, std::string weights,
                                               const Options& options)
    : tokenizer_(std::move(tokenizer)), model_(std::move(model)), weights_(std::move(weights)), options_(options) {
    const ClipTextOptions& sizes = model_->options();
    if (tokenizer_->vocabulary_size() > sizes.vocabulary || tokenizer_->max_length() > sizes.longest)
        throw Error{Errc::bad_model_options,
                    "a tokenizer of " + std::to_string(tokenizer_->vocabulary_size()) + " tokens and texts of " +
                        std::to_string(tokenizer_->max_length()) + " does not go with a ClipText of " +
                        std::to_string(sizes.vocabulary) + " and " + std::to_string(sizes.longest),
                    "give the tokenizer that was published with these weights, and its max_length"};
    if (options.text_embeds && !sizes.has_projection)
        throw Error{Errc::bad_model_options,
                    "ClipTextEncoderOptions::text_embeds are asked of a ClipText without projection",
                    "take the second text encoder of SDXL, a CLIPTextModelWithProjection, or ask for pooled"};
    if (!options.last_hidden_state && !options.hidden_states_m2 && !options.pooled && !options.text_embeds)
        throw Error{Errc::bad_model_options, "ClipTextEncoderOptions ask for no tensor",
                    "ask for one of last_hidden_state, hidden_states_m2, pooled and text_embeds"};
}

STRATA_INLINE std::string ClipTextEncoder::id() const {
    const std::string kept = std::string{options_.last_hidden_state ? "last " : ""} +
                             (options_.hidden_states_m2 ? "m2 " : "") + (options_.pooled ? "pooled " : "") +
                             (options_.text_embeds ? "embeds " : "");
    return detail::encoder_id("clip-text-v1", tokenizer_->id() + "\n" + weights_ + "\n" +
                                                  at::toString(model_->parameters().front().scalar_type()) + "\n" +
                                                  kept + "\n" + at::toString(options_.type) + "\n" +
                                                  std::to_string(model_->options().eos));
}

STRATA_INLINE data::NamedTensors ClipTextEncoder::encode(std::span<const std::string> captions,
                                                         at::Device device) const {
    const at::NoGradGuard no_gradients;
    (void)detail::any_parameter_of(*model_, device);
    const ClipTextOutput out = model_->forward(detail::tokens_of(*tokenizer_, captions).ids_BL.to(device));
    data::NamedTensors kept;
    const auto keep = [&](bool wanted, const char* name, const at::Tensor& tensor) {
        if (wanted) kept.emplace(name, tensor.to(at::kCPU, options_.type).contiguous());
    };
    keep(options_.last_hidden_state, "last_hidden_state", out.last_hidden_state);
    keep(options_.hidden_states_m2, "hidden_states_m2", out.hidden_states_m2());
    keep(options_.pooled, "pooled", out.pooled);
    keep(options_.text_embeds, "text_embeds", out.text_embeds);
    return kept;
}

STRATA_INLINE T5TextEncoder::T5TextEncoder(std::shared_ptr<const tokenizers::T5Tokenizer> tokenizer,
                                           std::shared_ptr<T5Encoder> model, std::string weights,
                                           const Options& options)
    : tokenizer_(std::move(tokenizer)), model_(std::move(model)), weights_(std::move(weights)), options_(options) {
    if (tokenizer_->vocabulary_size() > model_->options().vocabulary)
        throw Error{Errc::bad_model_options,
                    "a tokenizer of " + std::to_string(tokenizer_->vocabulary_size()) +
                        " tokens does not go with a T5Encoder of " + std::to_string(model_->options().vocabulary),
                    "give the tokenizer that was published with these weights"};
}

STRATA_INLINE std::string T5TextEncoder::id() const {
    return detail::encoder_id("t5-text-v1", tokenizer_->id() + "\n" + weights_ + "\n" +
                                                at::toString(model_->parameters().front().scalar_type()) + "\n" +
                                                (options_.masks_padding ? "masked" : "unmasked") + "\n" +
                                                at::toString(options_.type));
}

STRATA_INLINE data::NamedTensors T5TextEncoder::encode(std::span<const std::string> captions, at::Device device) const {
    const at::NoGradGuard no_gradients;
    (void)detail::any_parameter_of(*model_, device);
    const detail::TokenBatch batch = detail::tokens_of(*tokenizer_, captions);
    const at::Tensor mask = options_.masks_padding ? batch.mask_BL.to(device) : at::Tensor{};
    const at::Tensor tokens = model_->forward(batch.ids_BL.to(device), mask);
    return {{"tokens", tokens.to(at::kCPU, options_.type).contiguous()}, {"mask", batch.mask_BL}};
}

}  // namespace strata::models
