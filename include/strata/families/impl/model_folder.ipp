#pragma once
// strata/families/impl/model_folder.ipp - the parts of a model, looked for one by one.

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <system_error>

#include <strata/config/document.hpp>
#include <strata/families/model_folder.hpp>

namespace strata::families {

namespace detail {

using config::ModelFamily;

/// "OWNER/NAME", as hubs call models.
inline bool is_name_of_a_hub(std::string_view path) {
    const std::size_t slash = path.find('/');
    const auto is_word = [](std::string_view word) {
        return !word.empty() && word.front() != '.' && word.front() != '~' &&
               std::all_of(word.begin(), word.end(),
                           [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
    };
    return slash != std::string_view::npos && is_word(path.substr(0, slash)) && is_word(path.substr(slash + 1));
}

inline bool is_there(const std::filesystem::path& path) {
    std::error_code none;
    return std::filesystem::exists(path, none);
}
inline bool is_folder(const std::filesystem::path& path) {
    std::error_code none;
    return std::filesystem::is_directory(path, none);
}

/// "transformer/, vae/, ...": the folders of a family, for people who fetch them.
inline std::string folders_of(std::optional<ModelFamily> family) {
    if (family == ModelFamily::sd15) return "unet/, vae/, text_encoder/, tokenizer/ and scheduler/";
    return std::string{family == ModelFamily::sdxl   ? "unet/"
                       : family == ModelFamily::flux ? "transformer/"
                                                     : "transformer/ or unet/"} +
           ", vae/, text_encoder/, text_encoder_2/, tokenizer/, tokenizer_2/ and scheduler/";
}

/// Looks for parts, and writes down what is not there.
class PartFinder {
public:
    PartFinder(const config::ModelSettings& settings, FolderProblems& problems)
        : settings_{settings}, problems_{problems}, root_{settings.path} {}

    [[nodiscard]] ModelFolder find() {
        ModelFolder folder;
        if (!has_places()) return folder;
        const auto family = family_of_files();
        if (!family) return folder;
        folder.family = *family;
        folder.zeros_for_empty_prompt = zeros_for_empty_prompt_;
        const bool is_flux = *family == ModelFamily::flux, is_sd15 = *family == ModelFamily::sd15;
        folder.denoiser =
            is_flux ? model("transformer", settings_.transformer, settings_.transformer_subfolder,
                            "pretrained_transformer_model_name_or_path")
                    : model("unet", settings_.unet, settings_.unet_subfolder, "pretrained_unet_model_name_or_path");
        folder.vae = model("vae", settings_.vae, {}, "pretrained_vae_model_name_or_path");
        folder.text_encoder = model("text_encoder", {}, {}, {});
        if (!is_sd15)
            folder.text_encoder_2 = model("text_encoder_2", is_flux ? settings_.t5 : std::filesystem::path{}, {},
                                          is_flux ? "pretrained_t5_model_name_or_path" : "");
        folder.tokenizer = tokenizer("tokenizer", {"vocab.json", "merges.txt"});
        if (is_flux)
            folder.tokenizer_2 = tokenizer("tokenizer_2", {"spiece.model"});
        else if (!is_sd15)
            folder.tokenizer_2 = tokenizer("tokenizer_2", {"vocab.json", "merges.txt"});
        if (const auto file = root_ / "scheduler" / "scheduler_config.json"; !root_.empty() && is_there(file))
            folder.scheduler = file;
        return folder;
    }

private:
    /// False where a place that is named is none, so that nothing below it need be looked for.
    bool has_places() {
        bool all = true;
        const auto look = [&](const std::filesystem::path& path, std::string_view key) {
            if (path.empty() || is_there(path)) return;
            all = false;
            const bool is_hub = is_name_of_a_hub(path.string());
            problems_.add("'" + std::string{key} + "' is '" + path.string() + "', which is not here" +
                          (is_hub ? ": strata does not fetch models of a hub. Fetch model_index.json, " +
                                        folders_of(settings_.kind()) + " of it, and name the folder they are in"
                                  : std::string{}));
        };
        look(root_, "pretrained_model_name_or_path");
        look(settings_.transformer, "pretrained_transformer_model_name_or_path");
        look(settings_.unet, "pretrained_unet_model_name_or_path");
        look(settings_.vae, "pretrained_vae_model_name_or_path");
        look(settings_.t5, "pretrained_t5_model_name_or_path");
        if (all && !root_.empty() && !is_folder(root_)) {
            all = false;
            problems_.add("'pretrained_model_name_or_path' is the file '" + root_.string() +
                          "': name a folder that has " + folders_of(settings_.kind()) +
                          ", and a single file as pretrained_transformer_model_name_or_path or "
                          "pretrained_unet_model_name_or_path");
        }
        return all;
    }

    /// What the settings say, held against model_index.json; without either what parts there are.
    std::optional<ModelFamily> family_of_files() {
        const std::optional<ModelFamily> said = settings_.kind();
        const std::filesystem::path index = root_ / "model_index.json";
        if (!root_.empty() && is_there(index)) {
            std::string name;
            const bool is_read = problems_.during([&] {
                const config::Document document = config::load_document(index);
                const config::Node* const node = document.root.find("_class_name");
                name = node != nullptr && node->is(config::NodeKind::text) ? node->scalar() : std::string{};
                const config::Node* const zeros = document.root.find("force_zeros_for_empty_prompt");
                if (zeros != nullptr) zeros_for_empty_prompt_ = zeros->flag().value_or(true);
            });
            const std::optional<ModelFamily> family = name.starts_with("StableDiffusionXL")  ? ModelFamily::sdxl
                                                      : name.starts_with("StableDiffusion3") ? std::nullopt
                                                      : name.starts_with("StableDiffusion")
                                                          ? std::optional{ModelFamily::sd15}
                                                      : name.starts_with("Flux") ? std::optional{ModelFamily::flux}
                                                                                 : std::nullopt;
            if (is_read && !family)
                problems_.add(
                    index.string() + " is of a '" + name +
                    "', and strata trains FluxPipeline, StableDiffusionXLPipeline and StableDiffusionPipeline");
            if (family && said && *family != *said)
                problems_.add(index.string() + " is of a '" + name + "', and 'model_family' is " + settings_.family);
            if (!is_read || !family) return std::nullopt;
            return said ? said : family;
        }
        if (said) return said;
        if (!settings_.transformer.empty() || is_folder(root_ / "transformer")) return ModelFamily::flux;
        if (!settings_.unet.empty() || is_folder(root_ / "unet"))
            return is_folder(root_ / "text_encoder_2") ? ModelFamily::sdxl : ModelFamily::sd15;
        problems_.add(root_.string() + " has no model_index.json, transformer/ or unet/: it is no model's folder");
        return std::nullopt;
    }

    ///   own, subfolder, key  of the part's own place, where it may have one
    ModelPart model(const std::string& name, const std::filesystem::path& own, const std::filesystem::path& subfolder,
                    std::string_view key) {
        std::filesystem::path place = own;
        if (own.empty()) {
            if (root_.empty()) {
                problems_.add(name + "/ is nowhere: 'pretrained_model_name_or_path'" +
                              (key.empty() ? " is" : " and '" + std::string{key} + "' are") + " not given");
                return {};
            }
            place = root_ / (subfolder.empty() ? std::filesystem::path{name} : subfolder);
        } else if (!subfolder.empty()) {
            place = own / subfolder;
        } else if (is_folder(own) && !is_there(own / "config.json") && is_folder(own / name)) {
            place = own / name;  // a whole model, of which this is one part
        }
        if (!is_there(place)) {
            problems_.add(place.string() + " is missing");
            return {};
        }
        const std::filesystem::path config = (is_folder(place) ? place : place.parent_path()) / "config.json";
        if (is_there(config)) return {place, config};
        // Weights alone, of a run say: their sizes are those of the model that they were trained from.
        const std::filesystem::path whole = root_ / name / "config.json";
        if (!own.empty() && !root_.empty() && is_there(whole)) return {place, whole};
        problems_.add(config.string() + " is missing");
        return {};
    }

    std::filesystem::path tokenizer(const std::string& name, std::initializer_list<const char*> files) {
        if (root_.empty()) {
            problems_.add(name + "/ is nowhere: 'pretrained_model_name_or_path' is not given");
            return {};
        }
        const std::filesystem::path place = root_ / name;
        if (!is_folder(place)) {
            problems_.add(place.string() + " is missing");
            return {};
        }
        bool all = true;
        for (const char* file : files) {
            if (is_there(place / file)) continue;
            problems_.add((place / file).string() + " is missing");
            all = false;
        }
        return all ? place : std::filesystem::path{};
    }

    const config::ModelSettings& settings_;
    FolderProblems& problems_;
    std::filesystem::path root_;
    bool zeros_for_empty_prompt_ = true;
};

}  // namespace detail

STRATA_INLINE bool FolderProblems::during(core::FunctionRef<void()> call) {
    try {
        call();
        return true;
    } catch (const Error& error) {
        add(error.problem());
        return false;
    }
}

STRATA_INLINE void FolderProblems::finish(const std::string& what) const {
    if (problems_.empty()) return;
    std::string all;
    for (const std::string& problem : problems_) all += (all.empty() ? "" : "; ") + problem;
    throw Error{
        Errc::bad_model_folder, what + " cannot be used: " + all,
        "put the files there as the model was published, with the names that they have there, or name their places"};
}

STRATA_INLINE ModelFolder find_model_parts(const config::ModelSettings& settings, FolderProblems& problems) {
    return detail::PartFinder{settings, problems}.find();
}

}  // namespace strata::families
