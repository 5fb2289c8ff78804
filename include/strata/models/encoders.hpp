#pragma once
// strata/models/encoders.hpp - Autoencoder and TextEncoder: what turns pictures and captions into what is trained on.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/data/named_tensors.hpp>

namespace strata::models {

/// What a TextEncoder makes of one caption, fp32: tokens (T, E) and a summary (E) of the whole.
struct TextEmbedding {
    at::Tensor tokens;
    at::Tensor pooled;
};

/// Pictures to latents and back, for recipes that are made of any such pair: FluxRecipe.
///
/// Semantic requirements (not checked by the compiler):
///   * id() names everything the latents depend on; another id() never meets a cached latent of this one
///   * encode: (B, 3, H, W) fp32, red first, in [-1, 1], H and W multiples of pixels_per_latent()
///     -> (B, latent_channels(), H / pixels_per_latent(), W / pixels_per_latent()) fp32; equal input, equal bits
///   * decode: one picture's latents back to (3, H, W); need not be clamped
/// One that computes on a device has on(device) as well, see on_device(): takes and gives tensors of any device, fp32.
template <class A>
concept Autoencoder = requires(const A& autoencoder, const at::Tensor& tensor) {
    { autoencoder.id() } -> std::convertible_to<std::string>;
    { autoencoder.latent_channels() } -> std::convertible_to<std::int64_t>;
    { autoencoder.pixels_per_latent() } -> std::convertible_to<std::int64_t>;
    { autoencoder.encode(tensor) } -> std::same_as<at::Tensor>;
    { autoencoder.decode(tensor) } -> std::same_as<at::Tensor>;
};

/// Captions to vectors.
///
/// Semantic requirements (not checked by the compiler):
///   * id() names everything the vectors depend on
///   * encode: UTF-8 text, possibly empty -> tokens (T, E) and pooled (E), fp32 on the CPU, T and E the same for
///     every caption; equal text, equal bits
template <class T>
concept TextEncoder = requires(const T& encoder, std::string_view caption) {
    { encoder.id() } -> std::convertible_to<std::string>;
    { encoder.encode(caption) } -> std::same_as<TextEmbedding>;
};

namespace archetype {

/// The least an Autoencoder and a TextEncoder may be.
struct Autoencoder {
    Autoencoder() = delete;
    Autoencoder(Autoencoder&&) = delete;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::int64_t latent_channels() const;
    [[nodiscard]] std::int64_t pixels_per_latent() const;
    [[nodiscard]] at::Tensor encode(const at::Tensor& images_B3HW) const;
    [[nodiscard]] at::Tensor decode(const at::Tensor& latents_Chw) const;
};
struct TextEncoder {
    TextEncoder() = delete;
    TextEncoder(TextEncoder&&) = delete;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] TextEmbedding encode(std::string_view caption) const;
};

}  // namespace archetype
static_assert(Autoencoder<archetype::Autoencoder> && TextEncoder<archetype::TextEncoder>);

/// An encoder ready for work on a device: encoder.on(device) where it has that call, and a copy where it computes on
/// the CPU alone.
template <class Encoder>
[[nodiscard]] Encoder on_device(const Encoder& encoder, at::Device device) {
    if constexpr (requires {
                      { encoder.on(device) } -> std::same_as<Encoder>;
                  }) {
        return encoder.on(device);
    } else {
        return encoder;
    }
}

/// Tensors (B, ...) of what was encoded together as B entries, views of them.
[[nodiscard]] inline std::vector<data::NamedTensors> entries_of(const data::NamedTensors& batch) {
    std::vector<data::NamedTensors> entries;
    for (const auto& [name, tensor] : batch) {
        entries.resize(static_cast<std::size_t>(tensor.size(0)));
        for (std::size_t i = 0; i < entries.size(); ++i)
            entries[i][name] = tensor.select(0, static_cast<std::int64_t>(i));
    }
    return entries;
}

}  // namespace strata::models
