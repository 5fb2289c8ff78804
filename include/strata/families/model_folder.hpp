#pragma once
// strata/families/model_folder.hpp - ModelFolder: where the parts of a pretrained model lie, in the ecosystem's folder layout.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <strata/config/model_settings.hpp>
#include <strata/core/error.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>

namespace strata::families {

/// Everything that is wrong with the files of a model, told at once.
class FolderProblems {
public:
    void add(std::string problem) { problems_.push_back(std::move(problem)); }
    /// Runs `call`, and takes an Error that it throws as one more problem. True: it threw none.
    bool during(core::FunctionRef<void()> call);
    /// Throws Errc::bad_model_folder with all problems, if there are any.
    ///
    ///   what  "the model models/flux", for the beginning of the message
    void finish(const std::string& what) const;

private:
    std::vector<std::string> problems_;
};

/// A part of a model. Both paths are empty where something of it is missing.
struct ModelPart {
    std::filesystem::path weights;  ///< a folder, a file or an index, as weights::WeightFiles takes it
    std::filesystem::path config;   ///< config.json in that folder, or beside that file
    [[nodiscard]] explicit operator bool() const noexcept { return !config.empty(); }
};

/// A model as it is published: below its folder a folder for each part, and model_index.json, which says what it is.
struct ModelFolder {
    config::ModelFamily family = config::ModelFamily::small;
    ModelPart denoiser;                  ///< transformer/ of flux, unet/ of sdxl and sd15
    ModelPart vae;                       ///< vae/
    ModelPart text_encoder;              ///< text_encoder/: CLIP's L
    ModelPart text_encoder_2;            ///< text_encoder_2/: T5 of flux, bigG of sdxl
    std::filesystem::path tokenizer;     ///< vocab.json and merges.txt; empty where something is missing
    std::filesystem::path tokenizer_2;   ///< the same of sdxl; spiece.model of flux
    std::filesystem::path scheduler;     ///< scheduler/scheduler_config.json; empty: there is none
    bool zeros_for_empty_prompt = true;  ///< `force_zeros_for_empty_prompt` of an SDXL's model_index.json
};

/// Finds the parts that settings name, with each in its own place where they say so. What is missing goes into `problems`: folders,
/// config.json, files of weights and of tokenizers; and so does what contradicts: a model_index.json of another family. Not for small, which has no
/// files. Reads model_index.json and the names of files.
[[nodiscard]] ModelFolder find_model_parts(const config::ModelSettings& settings, FolderProblems& problems);

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/model_folder.ipp>
#endif
