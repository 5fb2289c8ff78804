#pragma once
// strata/models/encoder_loaders.hpp - encoders that are large: what is known of them without loading, and load(device).

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <strata/data/named_tensors.hpp>
#include <strata/models/encoders.hpp>

namespace strata::models {

/// What makes an Autoencoder where pictures are to be encoded, so that it is in memory for no longer.
///
/// Semantic requirements (not checked by the compiler):
///   * id(), latent_channels() and pixels_per_latent() are those of the autoencoder, and cost nothing
///   * type(): what it computes in, float or bf16, and so what latents are kept in; rounding them to it loses nothing
///     that it knew
///   * load(device): the autoencoder there
template <class L>
concept AutoencoderLoader = requires(const L& loader, at::Device device) {
    { loader.id() } -> std::convertible_to<std::string>;
    { loader.latent_channels() } -> std::convertible_to<std::int64_t>;
    { loader.pixels_per_latent() } -> std::convertible_to<std::int64_t>;
    { loader.type() } -> std::same_as<at::ScalarType>;
    { loader.load(device) } -> Autoencoder;
};

/// Several captions to tensors (B, ...) on the CPU, computed on `device`; the same bits for the same captions in a
/// batch of the same size.
///
///   "tokens"  (B, T, E), vectors of the tokens, and "mask" (B, T), true for tokens of the caption, its end among them,
///             and false for padding: of a token encoder
///   "pooled"  (B, E), one vector for the whole: of a pooled encoder
template <class T>
concept CaptionEncoder = requires(T& encoder, std::span<const std::string> captions, at::Device device) {
    { encoder.encode(captions, device) } -> std::same_as<data::NamedTensors>;
};

/// What makes a CaptionEncoder. id() names everything that vectors depend on: weights, tokenizer, type and length;
/// type() is what it computes in and vectors are kept in. Nothing of it costs anything but load().
template <class L>
concept CaptionEncoderLoader = requires(const L& loader, at::Device device) {
    { loader.id() } -> std::convertible_to<std::string>;
    { loader.type() } -> std::same_as<at::ScalarType>;
    { loader.load(device) } -> CaptionEncoder;
};

/// width() is E.
template <class L>
concept PooledEncoderLoader = CaptionEncoderLoader<L> && requires(const L& loader) {
    { loader.width() } -> std::convertible_to<std::int64_t>;
};

/// Every caption is as many tokens as tokens() says: T.
template <class L>
concept TokenEncoderLoader = PooledEncoderLoader<L> && requires(const L& loader) {
    { loader.tokens() } -> std::convertible_to<std::int64_t>;
};

/// Any autoencoder's loader, of what is known of it and a function that makes it.
template <Autoencoder A>
class DeferredAutoencoder {
public:
    struct Facts {
        std::string id;
        std::int64_t latent_channels = 16;
        std::int64_t pixels_per_latent = 8;
        at::ScalarType type = at::kBFloat16;
    };
    DeferredAutoencoder(Facts facts, std::function<A(at::Device)> load)
        : facts_{std::move(facts)}, load_{std::move(load)} {}
    [[nodiscard]] const std::string& id() const { return facts_.id; }
    [[nodiscard]] std::int64_t latent_channels() const { return facts_.latent_channels; }
    [[nodiscard]] std::int64_t pixels_per_latent() const { return facts_.pixels_per_latent; }
    [[nodiscard]] at::ScalarType type() const { return facts_.type; }
    [[nodiscard]] A load(at::Device device) const { return load_(device); }

private:
    Facts facts_;
    std::function<A(at::Device)> load_;
};

/// The same of a text encoder.
template <CaptionEncoder E>
class DeferredText {
public:
    struct Facts {
        std::string id;
        std::int64_t tokens = 512;  ///< of a pooled encoder not used
        std::int64_t width = 4096;
        at::ScalarType type = at::kBFloat16;
    };
    DeferredText(Facts facts, std::function<E(at::Device)> load) : facts_{std::move(facts)}, load_{std::move(load)} {}
    [[nodiscard]] const std::string& id() const { return facts_.id; }
    [[nodiscard]] std::int64_t tokens() const { return facts_.tokens; }
    [[nodiscard]] std::int64_t width() const { return facts_.width; }
    [[nodiscard]] at::ScalarType type() const { return facts_.type; }
    [[nodiscard]] E load(at::Device device) const { return load_(device); }

private:
    Facts facts_;
    std::function<E(at::Device)> load_;
};

/// The loader of an Autoencoder that costs little to keep: load() is a copy, where the encoder computes.
template <Autoencoder A>
class KeptAutoencoder {
public:
    explicit KeptAutoencoder(A autoencoder, at::ScalarType type = at::kFloat)
        : autoencoder_{std::move(autoencoder)}, type_{type} {}
    [[nodiscard]] std::string id() const { return autoencoder_.id(); }
    [[nodiscard]] std::int64_t latent_channels() const { return autoencoder_.latent_channels(); }
    [[nodiscard]] std::int64_t pixels_per_latent() const { return autoencoder_.pixels_per_latent(); }
    [[nodiscard]] at::ScalarType type() const { return type_; }
    /// Moved there where it has an `on(device)`.
    [[nodiscard]] A load(at::Device device) const {
        if constexpr (requires { A{autoencoder_.on(device)}; }) {
            return autoencoder_.on(device);
        } else {
            return autoencoder_;
        }
    }

private:
    A autoencoder_;
    at::ScalarType type_;
};

namespace archetype {

/// The least that the loaders may be.
struct AutoencoderLoader {
    AutoencoderLoader() = delete;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::int64_t latent_channels() const;
    [[nodiscard]] std::int64_t pixels_per_latent() const;
    [[nodiscard]] at::ScalarType type() const;
    [[nodiscard]] Autoencoder load(at::Device) const;
};
struct CaptionEncoder {
    CaptionEncoder() = delete;
    CaptionEncoder(CaptionEncoder&&) = delete;
    [[nodiscard]] data::NamedTensors encode(std::span<const std::string>, at::Device);
};
struct PooledEncoderLoader {
    PooledEncoderLoader() = delete;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::int64_t width() const;
    [[nodiscard]] at::ScalarType type() const;
    [[nodiscard]] CaptionEncoder load(at::Device) const;
};
struct TokenEncoderLoader {
    TokenEncoderLoader() = delete;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::int64_t tokens() const;
    [[nodiscard]] std::int64_t width() const;
    [[nodiscard]] at::ScalarType type() const;
    [[nodiscard]] CaptionEncoder load(at::Device) const;
};

}  // namespace archetype
static_assert(AutoencoderLoader<archetype::AutoencoderLoader> && TokenEncoderLoader<archetype::TokenEncoderLoader> &&
              PooledEncoderLoader<archetype::PooledEncoderLoader>);

}  // namespace strata::models
