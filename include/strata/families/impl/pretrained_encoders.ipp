#pragma once
// strata/families/impl/pretrained_encoders.ipp - encoders made in their own type and filled from files.

#include <array>
#include <optional>
#include <string_view>

#include <strata/adapters/adapter_file.hpp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/config/document.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/families/impl/model_folder.ipp>
#include <strata/families/impl/weights_id.ipp>
#include <strata/families/pretrained_encoders.hpp>
#include <strata/families/weights_id.hpp>
#include <strata/storage/content_hash.hpp>
#include <strata/storage/digest.hpp>
#include <strata/tokenizers/clip_tokenizer.hpp>
#include <strata/tokenizers/t5_tokenizer.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_match.hpp>
#include <strata/zero/in_units.hpp>

namespace strata::families {

namespace detail {

/// "clip-0f1e...": a hash of all that an encoder's numbers depend on.
inline std::string id_of(const std::string& name, const std::string& parts) {
    return name + "-" + storage::to_hex(storage::content_hash(core::bytes_of(parts)).bytes);
}

inline void check_vocabulary(const std::filesystem::path& tokenizer, std::int64_t tokens, const ModelPart& part,
                             std::int64_t rows) {
    if (tokens <= rows) return;
    throw Error{Errc::bad_model_options,
                tokenizer.string() + " has " + std::to_string(tokens) + " tokens, and " + part.config.string() +
                    " rows for " + std::to_string(rows),
                "put the tokenizer there that was published with these weights"};
}

/// Names that autoencoders' attention had in files of before 2023: models::AutoencoderKl::current_name().
inline weights::LoadOptions autoencoder_names() {
    constexpr std::array<std::array<std::string_view, 2>, 4> renamed{
        {{"query.", "to_q."}, {"key.", "to_k."}, {"value.", "to_v."}, {"proj_attn.", "to_out.0."}}};
    weights::LoadOptions options;
    for (const char* half : {"encoder", "decoder"})
        for (const auto& [old, current] : renamed) {
            const std::string stem = std::string{half} + ".mid_block.attentions.0.";
            options.renames.push_back({stem + std::string{old}, stem + std::string{current}});
        }
    return options;
}

template <class Model, class Options>
PretrainedAutoencoder load_autoencoder(const Options& options, const weights::WeightFiles& files,
                                       const weights::LoadOptions& names, const std::string& id, at::ScalarType type,
                                       at::Device device) {
    auto model = strata::in_units([&] { return std::make_shared<Model>(options); });
    weights::load_weights(*model, files, names);
    strata::make_whole(*model, type);
    model->to(device, type);
    model->eval();
    models::LatentOptions latents;
    latents.most_pixels_whole = std::int64_t{1} << 20;
    return {id, models::TrainedAutoencoder<Model>{std::move(model), id, latents}};
}

/// Throws weights_do_not_fit where `make` makes another model than the files are of. Neither is in memory.
template <class Make>
void check_weights(const Make& make, const weights::WeightFiles& files, const weights::LoadOptions& names) {
    static_cast<void>(weights::match_weights(weights::wanted_weights(make), files, names));
}

/// For a hash of what an encoder's numbers depend on.
inline std::string said_of(const std::vector<AddedAdapter>& added) {
    std::string text;
    for (const AddedAdapter& one : added)
        text += "\nwith " + weights_id(adapters::AdapterFile{one.file}.files()) + " at " +
                core::shortest_text(one.strength);
    return text;
}
template <class Model>
void merge(const std::vector<AddedAdapter>& added, adapters::ModelPart name, Model& model) {
    for (const AddedAdapter& one : added) adapters::merge_adapter_file(model, one.file, one.strength, {.part = name});
}

/// Old files keep the numbers of places as a tensor, and those of a CLIPTextModel may have a projection.
inline weights::LoadOptions clip_names() {
    return {.may_be_left = [](std::string_view name) {
        return name == "text_model.embeddings.position_ids" || name == "text_projection.weight";
    }};
}
/// The embedding has two names, of which files have one or both, and those of the whole T5 have a decoder.
inline weights::LoadOptions t5_names(const weights::WeightFiles& files) {
    weights::LoadOptions options;
    if (files.find("shared.weight") == nullptr) options.renames = {{"encoder.embed_tokens.weight", "shared.weight"}};
    options.may_be_left = [](std::string_view name) {
        return name == "encoder.embed_tokens.weight" || name.starts_with("decoder.") || name.starts_with("lm_head.");
    };
    return options;
}

template <class Model, class Options>
AutoencoderLoader autoencoder_of(const Options& options, std::int64_t pixels_per_latent, const ModelPart& part,
                                 const weights::LoadOptions& names, at::ScalarType type) {
    weights::WeightFiles files{part.weights};
    check_weights([&] { return std::make_shared<Model>(options); }, files, names);
    const std::string id = id_of("autoencoder", weights_id(files) + "\n" + c10::toString(type) + "\n" +
                                                    core::shortest_text(options.scaling_factor) + "\n" +
                                                    core::shortest_text(options.shift_factor));
    return {
        {.id = id, .latent_channels = options.latent_channels, .pixels_per_latent = pixels_per_latent, .type = type},
        [=](at::Device device) { return load_autoencoder<Model>(options, files, names, id, type, device); }};
}

}  // namespace detail

STRATA_INLINE std::int64_t PretrainedAutoencoder::latent_channels() const {
    return std::visit([](const auto& one) { return one.latent_channels(); }, of_);
}
STRATA_INLINE std::int64_t PretrainedAutoencoder::pixels_per_latent() const {
    return std::visit([](const auto& one) { return one.pixels_per_latent(); }, of_);
}
STRATA_INLINE at::Tensor PretrainedAutoencoder::encode(const at::Tensor& images_B3HW) const {
    return std::visit([&](const auto& one) { return one.encode(images_B3HW); }, of_);
}
STRATA_INLINE at::Tensor PretrainedAutoencoder::decode(const at::Tensor& latents_Chw) const {
    return std::visit([&](const auto& one) { return one.decode(latents_Chw); }, of_);
}

STRATA_INLINE AutoencoderLoader autoencoder_loader(const ModelPart& part, at::ScalarType type) {
    const config::Document document = config::load_document(part.config);
    const config::Node* const name = document.root.find("_class_name");
    if (name != nullptr && name->scalar() == "AutoencoderTiny") {
        const models::AutoencoderTinyOptions options = models::read_autoencoder_tiny(part.config);
        const std::int64_t pixels = std::int64_t{1} << (options.encoder_blocks.size() - 1);
        return detail::autoencoder_of<models::AutoencoderTiny>(options, pixels, part, {}, type);
    }
    const models::AutoencoderKlOptions options = models::read_autoencoder_kl(part.config);
    const std::int64_t pixels = std::int64_t{1} << (options.widths.size() - 1);
    return detail::autoencoder_of<models::AutoencoderKl>(options, pixels, part, detail::autoencoder_names(), type);
}

STRATA_INLINE ClipLoader clip_loader(const ModelPart& part, const std::filesystem::path& tokenizer,
                                     const models::ClipTextOptions& sizes, const models::ClipTextEncoderOptions& kept,
                                     const std::vector<AddedAdapter>& added, adapters::ModelPart name) {
    const weights::WeightFiles files{part.weights};
    const auto make = [=] { return std::make_shared<models::ClipText>(sizes, at::TensorOptions{}.dtype(kept.type)); };
    detail::check_weights(make, files, detail::clip_names());
    const auto reader = std::make_shared<const tokenizers::ClipTokenizer>(
        tokenizer, tokenizers::ClipTokenizerOptions{.max_length = sizes.longest, .pad = std::nullopt});
    detail::check_vocabulary(tokenizer, reader->vocabulary_size(), part, sizes.vocabulary);
    const std::string weights = weights_id(files) + detail::said_of(added);
    const std::string id = detail::id_of(
        "clip", reader->id() + "\n" + weights + "\n" + c10::toString(kept.type) + "\n" + std::to_string(sizes.eos) +
                    (kept.last_hidden_state ? "\nlast" : "") + (kept.hidden_states_m2 ? "\nm2" : "") +
                    (kept.pooled ? "\npooled" : "") + (kept.text_embeds ? "\nembeds" : ""));
    const auto load = [=](at::Device device) {
        auto model = make();
        weights::load_weights(*model, files, detail::clip_names());
        detail::merge(added, name, *model);
        model->to(device);
        model->eval();
        return models::ClipTextEncoder{reader, std::move(model), weights, kept};
    };
    return {{.id = id,
             .tokens = sizes.longest,
             .width = kept.text_embeds ? sizes.projection_width : sizes.width,
             .type = kept.type},
            load};
}

STRATA_INLINE T5Loader t5_loader(const ModelPart& part, const std::filesystem::path& tokenizer,
                                 const models::T5Options& sizes, std::int64_t tokens, at::ScalarType type,
                                 const std::vector<AddedAdapter>& added) {
    const weights::WeightFiles files{part.weights};
    const auto make = [=] { return std::make_shared<models::T5Encoder>(sizes, at::TensorOptions{}.dtype(type)); };
    const weights::LoadOptions names = detail::t5_names(files);
    detail::check_weights(make, files, names);
    // What the pipelines of Flux.1 read captions with knows </s> and <extra_id_0> in a text.
    const auto reader = std::make_shared<const tokenizers::T5Tokenizer>(
        tokenizer, tokenizers::T5TokenizerOptions{.max_length = tokens, .marks_in_text = true});
    detail::check_vocabulary(tokenizer, reader->vocabulary_size(), part, sizes.vocabulary);
    const std::string weights = weights_id(files) + detail::said_of(added);
    const std::string id =
        detail::id_of("t5", reader->id() + "\n" + weights + "\n" + c10::toString(type) + "\n" + std::to_string(tokens));
    const auto load = [=](at::Device device) {
        auto model = make();
        weights::load_weights(*model, files, names);
        detail::merge(added, adapters::ModelPart::text_encoder_2, *model);
        model->to(device);
        model->eval();
        return models::T5TextEncoder{reader, std::move(model), weights, {.type = type}};
    };
    return {{.id = id, .tokens = tokens, .width = sizes.width, .type = type}, load};
}

}  // namespace strata::families
