#pragma once
// strata/adapters/load_adapter_file.hpp - load_adapter_file(): a model's adapters begin with those of a file.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <strata/adapters/adapter_match.hpp>
#include <strata/adapters/saved_adapter.hpp>
#include <strata/core/inline.hpp>
#include <strata/weights/load_weights.hpp>

namespace strata::adapters {

/// What load_adapter_file() found.
struct LoadedAdapterFile {
    FileNaming naming = FileNaming::peft;
    std::size_t layers = 0;          ///< whose adapters are the file's now
    std::size_t of_other_parts = 0;  ///< layers of other models of the pipeline that the file has adapters of
    std::vector<std::string>
        missing{};  ///< adapted layers of the model that the file has nothing for: they begin as they would
};

/// "12 layers of lora.safetensors, and anew 2 layers that it has nothing for: a, b; it has 72 layers of other models besides, which are left": for people,
/// with three names at most.
[[nodiscard]] std::string words_of(const LoadedAdapterFile& loaded, const std::filesystem::path& file);

/// load_adapter_file() for what is no module.
LoadedAdapterFile load_adapter_into(const std::vector<weights::LoadTarget>& targets, const std::filesystem::path& file,
                                    const AdapterFacts& facts, const AdapterFileOptions& options = {});

/// Gives the adapters of a model, which adapt() has attached, the values of a file: what init_lora asks for.
///
/// The kind, its parts and its ranks are the model's, and the file has to have the same; names are any of those that merge_adapter_file() reads. Where the file's alpha
/// is another than the model's, its second matrix (of a LoKr, its first factor) is scaled so that the layer computes what the file's author saw; else values have the file's bits. DoRA's
/// magnitudes are divided by the norms of the base weight's rows, which have to be those of the run by then: load_weights() comes first. Local: each
/// rank that makes the model calls it, before an engine has the model.
///
///   facts  of the model's adapters
/// Throws adapter_does_not_fit with all that does not fit, after which the model is as it was; what merge_adapter_file() throws.
template <class Module>
LoadedAdapterFile load_adapter_file(Module& model, const std::filesystem::path& file, const AdapterFacts& facts = {},
                                    const AdapterFileOptions& options = {}) {
    return load_adapter_into(weights::load_targets_of(model), file, facts, options);
}

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/load_adapter_file.ipp>
#endif
