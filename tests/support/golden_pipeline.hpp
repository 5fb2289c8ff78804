#pragma once
// tests/support/golden_pipeline.hpp - pipelines as in made_pipeline.hpp, with weights of the golden files.
//
//   if (!has_golden_pipelines()) GTEST_SKIP() << no_golden_pipelines;
//   write_golden_pipeline(folder, PipelineKind::sdxl);

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>

#include "made_pipeline.hpp"

namespace strata_test {

namespace made {

inline fs::path golden_file(const std::string& name) { return fs::path{STRATA_REFERENCE_DIR} / "golden" / name; }

/// config.json and weights of a golden model, whose weights stand beside cases in their file.
inline void write_golden(const fs::path& folder, const std::string& name) {
    const auto text = strata::storage::read_file(golden_file(name + ".json"));
    const json about = json::parse(reinterpret_cast<const char*>(text.data()),
                                   reinterpret_cast<const char*>(text.data() + text.size()));
    json config = about.at("config");
    config["_class_name"] = about.at("cls");
    write_json(folder / "config.json", config);

    const strata::storage::SafetensorsFile file{golden_file(name + ".safetensors")};
    std::vector<std::vector<std::byte>> values;
    std::vector<strata::storage::TensorBytes> weights;
    for (const auto& entry : file.header().tensors) {
        const std::string first = entry.name.substr(0, entry.name.find('.'));
        if (first == "in" || first == "out" || first == "grad" || first == "mid") continue;
        auto& bytes = values.emplace_back(entry.end - entry.begin);
        file.read(entry, bytes);
        weights.push_back({entry.name, entry.dtype, entry.shape, bytes});
    }
    strata::storage::write_safetensors(folder / "diffusion_pytorch_model.safetensors", weights, {{"format", "pt"}});
}

}  // namespace made

inline constexpr const char* no_golden_pipelines =
    "no golden weights of Flux, SDXL and its autoencoder: configure with -DSTRATA_REFERENCE_DIR=/path";

/// Whether the golden files of reference implementations are there.
inline bool has_golden_pipelines() {
    return !std::string{STRATA_REFERENCE_DIR}.empty() &&
           std::filesystem::exists(made::golden_file("flux.safetensors")) &&
           std::filesystem::exists(made::golden_file("unet_sdxl.safetensors")) &&
           std::filesystem::exists(made::golden_file("vae_sdxl.safetensors"));
}

/// A pipeline of Flux or SDXL whose transformer or U-Net, and autoencoder, are those of the golden files.
inline void write_golden_pipeline(const std::filesystem::path& folder, PipelineKind kind) {
    made::write_surroundings(folder, kind);
    made::write_golden(folder / "vae", "vae_sdxl");
    made::write_golden(folder / trained_part(kind), kind == PipelineKind::flux ? "flux" : "unet_sdxl");
}

}  // namespace strata_test
