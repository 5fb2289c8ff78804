#pragma once
// strata/data/impl/source_identity.ipp - the facts of a source: encoders, seed, and a line for each data set.

#include <array>
#include <charconv>
#include <cstdint>

#include <strata/core/random.hpp>
#include <strata/core/text.hpp>
#include <strata/data/detail/source_identity.hpp>
#include <strata/data/detail/source_texts.hpp>
#include <strata/data/impl/source_texts.ipp>
#include <strata/datasets/cache_identity.hpp>
#include <strata/datasets/latent_caching.hpp>

namespace strata::data::detail {

inline std::string hexadecimal(std::uint64_t number) {
    std::array<char, 16> digits{};
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr};
}

/// Of what its pictures and captions are, wherever they lie. A file's version is left out: a copy has another one. What
/// files hold is in it where every run knows it before its first step, because the latents are made by then.
inline std::uint64_t contents_of(const datasets::PictureSet& set) {
    std::uint64_t hash = core::combine({set.samples.size()});
    const bool is_read = datasets::latent_caching(set.settings) == datasets::LatentCaching::ahead;
    for (const datasets::Sample& sample : set.samples) {
        hash = core::combine({hash, core::number_of(sample.key), sample.bytes,
                              static_cast<std::uint64_t>(sample.size.width),
                              static_cast<std::uint64_t>(sample.size.height), core::number_of(sample.caption)});
        if (is_read) hash = core::combine({hash, core::number_of(sample.content.text())});
        for (const std::string& caption : sample.other_captions) hash = core::combine({hash, core::number_of(caption)});
        for (const datasets::ConditioningPicture& one : sample.conditioning) {
            hash = core::combine({hash, core::number_of(one.key), one.bytes, static_cast<std::uint64_t>(one.kind)});
            if (is_read) hash = core::combine({hash, core::number_of(one.content.text())});
        }
    }
    return hash;
}

/// Of everything a person sets, but for how steps are cut, which a trainer compares, and for folders.
inline std::uint64_t settings_of(const SourceOptions& options, const datasets::PictureSet& set) {
    SourceOptions plain;
    plain.seed = 0;
    plain.train_batch_size = plain.gradient_accumulation_steps = 1;
    plain.caption_dropout_probability = 0;
    plain.aspect_bucket_alignment = options.aspect_bucket_alignment;
    plain.aspect_bucket_rounding = options.aspect_bucket_rounding;
    plain.bucket_mode = options.bucket_mode;
    config::DatasetList list;
    list.images.push_back(set.settings);
    return core::number_of(settings_text(plain, list));
}

STRATA_INLINE std::vector<std::pair<std::string, std::string>> source_identity(const SourceOptions& options,
                                                                               const datasets::Collection& collection,
                                                                               std::string_view autoencoder,
                                                                               std::string_view text_encoder) {
    std::vector<std::pair<std::string, std::string>> facts{
        {"autoencoder", std::string{autoencoder}},
        {"text encoder", std::string{text_encoder}},
        {"seed of the samples' order", std::to_string(options.seed)},
        {"caption_dropout_probability", core::shortest_text(options.caption_dropout_probability)}};
    if (options.data_backend_sampling == config::DataBackendSampling::uniform)
        facts.emplace_back("data_backend_sampling", "uniform");
    for (const datasets::PictureSet& set : collection.sets())
        facts.emplace_back("data set '" + set.settings.id + "'",
                           std::to_string(set.samples.size()) + " samples, repeats " +
                               std::to_string(set.settings.repeats) + ", probability " +
                               core::shortest_text(set.settings.probability) + ", contents " +
                               hexadecimal(contents_of(set)) + ", settings " + hexadecimal(settings_of(options, set)));
    return facts;
}

}  // namespace strata::data::detail
